"""AsyncioHeld: an `async with` block of an asyncio task over a context manager that lives in trio's thread."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Generic, TypeVar

from ..nursery import raise_failures
from .asyncio_bridge import AsyncioBridge, Future, wait_through
from .held import Held
from .job import Job

T = TypeVar("T")


class AsyncioHeld(Generic[T]):
    """What the manager gives is what the block gets; leaving it waits until the manager has been left in trio's thread.

    If that fails while the block runs, the block is cancelled, and the error leaves it. A host that is closed meanwhile
    only ends what the block holds.
    """

    def __init__(self, bridge: AsyncioBridge, manager: AbstractAsyncContextManager[T], *, keeps: bool = False) -> None:
        self._bridge = bridge
        self._held = Held(manager)
        self._job = Job(self._held.hold, keeps=keeps)
        self._ended: Future
        self._task: asyncio.Task[object] | None = None
        """The task whose block runs; None before and after it."""
        self._cut = False
        """Whether the block was cancelled from here."""

    async def __aenter__(self) -> T:
        """Cancelled: it is left again before this returns. Raises what entering raises, ConversationClosed."""
        entered, self._held.on_entered = self._bridge.future()
        self._ended = self._bridge.submit(self._job)
        try:
            await asyncio.wait([entered, self._ended], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._bridge.thread.soon(self._job.cancel)
            await wait_through(self._ended)
            if self._job.error is not None:
                self._job.unwrap()
            raise
        if not self._held.entered:
            self._job.unwrap()
        self._task = asyncio.current_task()
        self._ended.add_done_callback(self._cut_block)
        return self._held.value

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leaves the manager and waits for it, cancelled or not. Beside the manager's error a cancellation is not
        raised; two errors leave as a group."""
        task, self._task = self._task, None
        self._bridge.thread.soon(self._held.leave)
        cancelled = await wait_through(self._ended)
        if self._cut and task is not None:
            task.uncancel()
        failure = self._job.error
        if failure is not None:
            raise_failures([failure] if error is None or _is_cancellation(error) else [error, failure])
        if cancelled:
            raise asyncio.CancelledError

    async def hand_over(self) -> T:
        """What entering gives, for good: the manager is left at once. Cancelled: left as by an error."""
        value = await self.__aenter__()
        self._task = None
        self._bridge.thread.soon(self._held.leave)
        return value

    def _cut_block(self, _: Future) -> None:
        if self._task is not None and self._job.error is not None:
            self._cut = True
            self._task.cancel("what the block holds has failed")


def _is_cancellation(error: BaseException) -> bool:
    return isinstance(error, asyncio.CancelledError)
