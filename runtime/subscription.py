"""Subscriptions: one publisher, any number of readers, each with a bounded buffer of its own.

Publishing is sync and never waits: a reader that is too slow loses the least important items, is told how many, and
slows nobody down. A reader that is dropped is forgotten with it; nothing needs to be closed.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

import trio
from trio.lowlevel import (
    Abort,
    Task,
    checkpoint,
    checkpoint_if_cancelled,
    current_task,
    enable_ki_protection,
    reschedule,
    wait_task_rescheduled,
)

T = TypeVar("T")
LINGER = 0.001
"""Seconds between two wakes of one reader that gets many items: a wake for each would cost more than all else."""

MOST_IN_A_ROW = 100
"""Items that a reader takes from its buffer before other tasks run."""


class Subscription(Generic[T]):
    """An async iterator over what is published from its making on; it ends when the publisher closes.

    Each step is a point of cancellation; it lets other tasks run when the buffer is empty, and after a hundred items
    in a row, so that a reader who causes what it reads starves nobody. `minor` picks the items that
    are dropped first, oldest first, when `capacity` is reached; `gap` makes the item that stands for those dropped.
    """

    def __init__(
        self, capacity: float = math.inf, minor: type[T] | None = None, gap: Callable[[int], T] | None = None
    ) -> None:
        self._items: deque[T] = deque()
        self._dropped = 0
        self._minors = 0
        self._in_a_row = 0
        self._woken = -math.inf
        self._capacity = capacity
        self._minor = minor
        self._gap = gap
        self._reader: Task | None = None
        self._closed = False

    def put(self, item: T) -> None:
        """Buffers an item and wakes the reader. No checkpoint; drops what the rule above says if full."""
        if len(self._items) >= self._capacity:
            self._drop_one()
        self._items.append(item)
        if self._minor is not None and isinstance(item, self._minor):
            self._minors += 1
        if self._reader is not None:
            self._wake()

    def close(self) -> None:
        """The iteration ends after what is buffered."""
        self._closed = True
        self._wake()

    def __aiter__(self) -> Subscription[T]:
        return self

    async def __anext__(self) -> T:
        """The next item. Cancelled: nothing was taken."""
        self._in_a_row += 1
        if not self._items:
            await checkpoint_if_cancelled()
            await self._wait()
        elif self._in_a_row < MOST_IN_A_ROW:
            await checkpoint_if_cancelled()
        else:
            self._in_a_row = 0
            await checkpoint()
        if self._dropped and self._gap is not None:
            count, self._dropped = self._dropped, 0
            return self._gap(count)
        item = self._items.popleft()
        if self._minor is not None and isinstance(item, self._minor):
            self._minors -= 1
        return item

    @enable_ki_protection  # Ctrl-C between noting the task and parking it would have trio wake a task that has ended
    async def _wait(self) -> None:
        if trio.current_time() < self._woken + LINGER:
            await _linger(self._woken + LINGER)
        while not self._items:
            if self._closed:
                raise StopAsyncIteration
            if self._reader is not None:
                raise RuntimeError("two tasks read one subscription; make one for each")
            self._reader = current_task()
            await wait_task_rescheduled(self._abort)
        self._woken = trio.current_time()
        self._in_a_row = 0

    def _drop_one(self) -> None:
        self._dropped += 1
        if self._minors and self._minor is not None:
            for number, item in enumerate(self._items):
                if isinstance(item, self._minor):
                    del self._items[number]
                    self._minors -= 1
                    return
        self._items.popleft()

    def _wake(self) -> None:
        if self._reader is not None:
            task, self._reader = self._reader, None
            reschedule(task)

    def _abort(self, _: Callable[[], None]) -> Abort:
        self._reader = None
        return Abort.SUCCEEDED


async def _linger(until: float) -> None:
    """Waits where time passes by itself. A clock that a test moves must not keep what is there from its reader."""
    pause = trio.lowlevel.current_clock().deadline_to_sleep_time(until)
    if pause <= 2 * LINGER:
        await trio.sleep_until(until)


class Publisher(Generic[T]):
    """Hands each item to every subscription that somebody still holds."""

    __slots__ = ("_closed", "_readers", "wanted")

    def __init__(self) -> None:
        self._readers: tuple[weakref.ref[Subscription[T]], ...] = ()
        self._closed = False
        self.wanted = False
        """Whether anybody listens; an item that nobody wants need not be made."""

    def subscribe(self, subscription: Subscription[T]) -> Subscription[T]:
        """Adds a reader and gives it back; one that comes after the end is closed at once."""
        if self._closed:
            subscription.close()
        else:
            self._readers = (*self._readers, weakref.ref(subscription, self._forget))
            self.wanted = True
        return subscription

    def publish(self, item: T) -> None:
        """Puts the item in every buffer."""
        for reader in self._readers:
            subscription = reader()
            if subscription is not None:
                subscription.put(item)

    def close(self) -> None:
        """Ends every subscription, those to come included."""
        self._closed = True
        for reader in self._readers:
            subscription = reader()
            if subscription is not None:
                subscription.close()

    def _forget(self, reader: weakref.ref[Subscription[T]]) -> None:
        self._readers = tuple(other for other in self._readers if other is not reader)
        self.wanted = bool(self._readers)
