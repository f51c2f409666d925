"""Server: an actor of the runtime itself, such as memory. It answers questions in order, each in one sync step.

A question is a frozen value, one class a question. Since an answer is one step, a question is either answered or
never begun: an asker that is cancelled has nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import trio
from trio.lowlevel import Abort, Task, current_task, enable_ki_protection, reschedule, wait_task_rescheduled

from .mailbox import Mailbox


class _Inquiry:
    """A question on its way, and the task that waits for its answer."""

    __slots__ = ("answer", "asker", "error", "key", "question")

    def __init__(self, key: str, question: object, asker: Task) -> None:
        self.key = key
        self.question = question
        self.asker: Task | None = asker
        self.answer: Any = None
        self.error: Exception | None = None


class Server:
    """The mailbox of questions and the loop that answers them with `answer`, a sync function.

    `start` is called when a question comes and no task serves; it must start one that runs `serve`.
    """

    __slots__ = ("_answer", "_keys", "_mailbox", "name", "scope", "start")

    def __init__(self, name: str, answer: Callable[[Any], object]) -> None:
        self.name = name
        self._answer = answer
        self._keys = count()
        self._mailbox: Mailbox[_Inquiry] = Mailbox()
        self.start: Callable[[], None] | None = None
        self.scope: trio.CancelScope | None = None
        """Round the task that serves."""

    @enable_ki_protection  # as Subscription._wait
    async def ask(self, question: object) -> Any:
        """The answer. Raises what answering raised, trio.ClosedResourceError once closed.

        Cancelled: the question was not answered, or its answer is thrown away.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        inquiry = _Inquiry(str(next(self._keys)), question, current_task())
        self._mailbox.put_nowait(inquiry.key, inquiry)
        if self.start is not None:
            self.start()

        def abort(_: Callable[[], None]) -> Abort:
            inquiry.asker = None
            self._mailbox.recall(inquiry.key)
            return Abort.SUCCEEDED

        await wait_task_rescheduled(abort)
        if inquiry.error is not None:
            raise inquiry.error
        return inquiry.answer

    async def serve(self) -> None:
        """Answers until the mailbox is closed, or `scope` is cancelled. Shielded from every other cancellation."""
        with trio.CancelScope(shield=True) as self.scope:
            while True:
                try:
                    inquiry = await self._mailbox.get()
                except trio.EndOfChannel:
                    return
                try:
                    inquiry.answer = self._answer(inquiry.question)
                except Exception as error:
                    inquiry.error = error
                _wake(inquiry)

    @property
    def idle(self) -> bool:
        """Whether the serving task is parked and nothing waits."""
        return self._mailbox.receiver is not None and not len(self._mailbox)

    def close(self) -> None:
        """Ends `serve`. Whoever still waits gets trio.ClosedResourceError."""
        for inquiry in self._mailbox.close():
            inquiry.error = trio.ClosedResourceError(f"{self.name} has closed")
            _wake(inquiry)


def _wake(inquiry: _Inquiry) -> None:
    if inquiry.asker is not None:
        task, inquiry.asker = inquiry.asker, None
        reschedule(task)
