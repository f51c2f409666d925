"""BlockingHeld: a `with` block of code that blocks, over a context manager that lives in trio's thread."""

from __future__ import annotations

import threading
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Generic, TypeVar

from ..nursery import raise_failures
from .blocking_bridge import BlockingBridge, wait_through
from .held import Held
from .job import Job

T = TypeVar("T")


class BlockingHeld(Generic[T]):
    """What the manager gives is what the block gets; leaving it waits until the manager has been left in trio's thread.

    If that fails while the block runs, the error leaves the block at its end; until then what it holds is closed.
    """

    def __init__(self, bridge: BlockingBridge, manager: AbstractAsyncContextManager[T], *, keeps: bool = False) -> None:
        self._bridge = bridge
        self._held = Held(manager)
        self._job = Job(self._held.hold, keeps=keeps)
        self._ended: threading.Event

    def __enter__(self) -> T:
        """Interrupted: it is left again before that goes on. Raises what entering raises, ConversationClosed."""
        decided = threading.Event()
        self._held.on_entered = decided.set
        self._ended = self._bridge.perform(self._job, decided)
        if not self._held.entered:
            self._job.unwrap()
        return self._held.value

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leaves the manager and waits for it; two errors leave as a group."""
        self._bridge.thread.soon(self._held.leave)
        interruption = wait_through(self._ended)
        failure = self._job.error
        if failure is not None:
            raise_failures([one for one in (error or interruption, failure) if one is not None])
        if interruption is not None:
            raise interruption

    def hand_over(self) -> T:
        """What entering gives, for good: the manager is left at once. Interrupted: left as by an error."""
        value = self.__enter__()
        self._bridge.thread.soon(self._held.leave)
        return value
