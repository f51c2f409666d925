"""User: the person behind the host, as a role that others may ask; and the questions that wait for that person.

The rule to know: all questions to the person take one way, that of `context.ask_superior`, to the handler that the
host has set as `ConversationOptions(on_question=…)`. Deadlines stand still meanwhile.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import trio

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.post import Post
from callboard.runtime.signal import Signal

QuestionState: TypeAlias = Literal["open", "answered", "withdrawn"]


class User(Actor):
    """The person behind the host: knows what only a person can know, and decides what only a person may decide."""

    introduction = "The person whom all this is for: ask what only they can know or decide, one question at a time."

    def __init__(self, name: str = "Person") -> None:
        self.name = name

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """What the host's handler answers, or a role in between that answers questions itself.

        Cancelled: the question is withdrawn. Raises NobodyToAsk if the host answers none, RoleFailed if it fails.
        """
        answer = await context.ask_superior(post.text, post.attachment_list)
        return post.reply(answer.text, answer.attachment_list)


class Question:
    """One question to the person, until it is answered or withdrawn."""

    def __init__(self, post: Post) -> None:
        self.post = post
        """Who asks, and what."""
        self.state: QuestionState = "open"
        self._answer: Post | str = ""
        self._settled = Signal()

    def answer(self, said: Post | str) -> bool:
        """Answers; False if the question is open no more, and nobody gets the answer."""
        if self.state != "open":
            return False
        self._answer = said
        self._settle("answered")
        return True

    async def wait_settled(self) -> QuestionState:
        """`answered` or `withdrawn`, once it is. Cancelled: nothing happens to the question."""
        while self.state == "open":
            await self._settled.wait()
        return self.state

    def _settle(self, state: QuestionState) -> None:
        self.state = state
        self._settled.fire()

    async def _wait_answer(self) -> Post | str:
        try:
            await self.wait_settled()
        finally:
            if self.state == "open":
                self._settle("withdrawn")
        return self._answer

    def __repr__(self) -> str:
        return f"<Question of {self.post.send_from}, {self.state}>"


class Questions:
    """The channel between the roles that ask and the person: `ConversationOptions(on_question=Questions())`.

    The person's side is `async for question in questions`, which gives each open question once, and `open`. One object
    may serve any number of conversations in one trio run.
    """

    def __init__(self) -> None:
        self._open: list[Question] = []
        self._new: list[Question] = []
        """Those of the open ones that nobody has taken."""
        self._came = Signal()

    @property
    def open(self) -> tuple[Question, ...]:
        """The questions that wait for an answer, oldest first."""
        return tuple(self._open)

    async def __call__(self, post: Post) -> Post | str:
        """The person's answer. Cancelled: the question is withdrawn, and no longer open."""
        question = Question(post)
        self._open.append(question)
        self._new.append(question)
        self._came.fire()
        try:
            return await question._wait_answer()
        finally:
            self._open.remove(question)
            if question in self._new:
                self._new.remove(question)

    def __aiter__(self) -> Questions:
        return self

    async def __anext__(self) -> Question:
        """The next open question. Cancelled: none is taken."""
        await trio.lowlevel.checkpoint()
        while not self._new:
            await self._came.wait()
        return self._new.pop(0)
