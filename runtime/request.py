"""Request: one message that is, or will be, a round. It stands in line, runs, and ends once."""

from __future__ import annotations

import contextvars
import copy
from collections.abc import Callable

import trio

from .ids import Ids
from .json_value import frozen
from .post import USER, Marks, Post
from .signal import Signal
from .user_message import UserMessage


class Request:
    """Ends with the reply, or with the error that `send` raises."""

    __slots__ = ("_over", "_result", "followers", "objection", "outlasts_stop", "report", "round", "variables", "words")

    def __init__(self, words: UserMessage, report: Post | None = None) -> None:
        self.words = words
        self.report = report
        """What a role that worked in the background has to say; such a round was asked for by nobody."""
        self.outlasts_stop = False
        """Whether it stays in line when a round is stopped."""
        self.variables = contextvars.copy_context()
        """The host's context variables, in which the round runs."""
        self.round: str | None = None
        """The id of its round, once that has begun."""
        self.objection: Callable[[Post], UserMessage | None] = _no_objection
        """What the root is told about an answer that is none; None if the answer stands."""
        self.followers: tuple[Callable[[], None], ...] = ()
        """Called when the outcome is there."""
        self._result: Post | Exception | None = None
        self._over = Signal()

    def first_post(self, root: str, ids: Ids) -> Post:
        """The post with which its round begins: to the root, or to whom a report is for."""
        words, report = self.words, self.report
        post_id, at = ids.create_at("post")
        if report is not None:
            marks = Marks(at=at, extra=frozen({"report": report.id}))
            text, attachments = report.text, report.attachment_list
            return Post(post_id, report.send_from, report.send_to, text.string, attachments, marks, text.spans)
        marks = Marks(at=at, words=words.id, system_message=words.system_message, extra=frozen(words.extra))
        return Post(post_id, USER, root, words.message, words.attachments, marks)

    @property
    def ended(self) -> bool:
        """Whether the round is over."""
        return self._result is not None

    def end(self, result: Post | Exception) -> None:
        """The outcome is there; wakes all that wait for it."""
        self._result = result
        self._over.fire()
        for follower in self.followers:
            follower()

    async def wait_ended(self) -> None:
        """Until the round is over. Cancelled: nothing happens to the round."""
        if self._result is None:
            await self._over.wait()
        else:
            await trio.lowlevel.checkpoint()

    def unwrap(self) -> Post:
        """The reply; raises the round's error. Many may wait, so each gets an exception of its own."""
        if isinstance(self._result, Post):
            return self._result
        assert self._result is not None, "unwrapped before its end"
        error = copy.copy(self._result)
        raise error from self._result.__cause__


def _no_objection(answer: Post) -> None:
    """Every answer stands."""
