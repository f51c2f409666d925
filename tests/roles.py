"""Roles made of one function, and a conversation in which they are at work: for tests with a shape of their own."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from callboard.prompts.library import packaged
from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.receipt import Receipt

Work = Callable[[Post, TurnContext], Awaitable[object]]


class Does(Actor):
    """Works by one function, answers questions by another; text that they return is the reply."""

    def __init__(self, name: str, work: Work, *subordinates: Actor, answers: Work | None = None) -> None:
        self.name = name
        self.subordinates = subordinates
        self._work = work
        self._answers = answers

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        return _reply(post, await self._work(post, context))

    async def on_question(self, post: Post, context: TurnContext) -> Post | None:
        if self._answers is None:
            return await super().on_question(post, context)
        return _reply(post, await self._answers(post, context))


def _reply(post: Post, said: Any) -> Post | None:
    return post.reply(said) if isinstance(said, str) else said


def asking(*names: str) -> Work:
    """Asks these roles at once; answers with what it heard and with their answers."""

    async def work(post: Post, context: TurnContext) -> str:
        words = [said.message for said in context.user_words]
        answers: list[str] = []

        async def ask(name: str) -> None:
            answers.append((await context.ask(name, "do")).message)

        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(ask, name)
        await trio.lowlevel.checkpoint()
        return f"{context.role}{words}{sorted(answers)}"

    return work


def stepping(*seconds: float) -> Work:
    """Works in steps of so many seconds; a step that is cut leaves a partial post."""

    async def work(post: Post, context: TurnContext) -> str:
        words = [said.message for said in context.user_words]
        for number, length in enumerate(seconds):
            await step(context, f"step {number}", length)
        return f"{context.role}{words}"

    return work


def sleeping(seconds: float) -> Work:
    """Works without steps."""

    async def work(post: Post, context: TurnContext) -> str:
        words = [said.message for said in context.user_words]
        context.draft.write(f"{context.role} began;")
        await trio.sleep(seconds)
        return f"{context.role}{words}"

    return work


async def step(context: TurnContext, name: str, seconds: float) -> None:
    """One step, which is recorded as a note when it is done."""
    async with context.step() as draft:
        draft.write(name)
        await trio.sleep(seconds)
        draft.take()
        context.record(name)


@asynccontextmanager
async def at_work(
    root: Actor, *others: Actor, seconds: float = 0.5, **options: Any
) -> AsyncIterator[tuple[Conversation, Receipt]]:
    """A conversation in which the round "q" has run for a while, and the receipt of "q"; left when all is done."""
    made = ConversationOptions(**options)
    with trio.fail_after(1000):
        async with open_conversation(root, *others, options=made) as conversation:
            started = conversation.communicate("q")
            await trio.sleep(seconds)
            yield conversation, started
            await conversation.wait_idle()


def posts(conversation: Conversation) -> list[Post]:
    """All that was recorded, in order."""
    return [post for round_ in conversation.transcript().rounds for post in round_.post_list]


def log(conversation: Conversation) -> list[str]:
    """Every post as a line."""
    return [
        f"{post.send_from} > {post.send_to} {post.marks.kind} {post.marks.state} {post.message}".replace(" whole", "")
        for post in posts(conversation)
    ]


def cut_off(conversation: Conversation) -> list[str]:
    """What was interrupted in the middle: the text of every partial post."""
    return [post.message for post in posts(conversation) if post.marks.state == "partial" and post.message]


def template(name: str) -> str:
    """The text of a packaged template, without its last line end."""
    return packaged.find(name).source.text.rstrip("\n")
