"""Mailbox: what waits for one actor, first in first out. One receiver, many senders.

An item stays here until the receiver takes it, in the receiver's own step: waking the receiver hands nothing over. So
a receiver that is cancelled at the same tick loses nothing, and a recall works until the very step of taking.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import trio
from trio.lowlevel import Abort, Task, current_task, enable_ki_protection, reschedule, wait_task_rescheduled

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MailboxStatistics:
    """What a mailbox holds at this moment."""

    waiting: int
    """Items that the receiver has not taken."""
    capacity: float
    """How many there may be before senders wait; infinite for memory and supervisor."""
    senders_waiting: int
    """Senders that wait for room."""
    receiver_waiting: bool
    """Whether the receiver is parked here."""


class _Sender(Generic[T]):
    """One that waits in line for room."""

    __slots__ = ("item", "key", "turned_away")

    def __init__(self, key: str, item: T) -> None:
        self.key = key
        self.item = item
        self.turned_away = False


class Mailbox(Generic[T]):
    """Items under keys, at most `capacity` of them; senders beyond that wait in line."""

    __slots__ = ("_capacity", "_items", "_receiver", "_senders", "closed")

    def __init__(self, capacity: float = math.inf) -> None:
        self._items: OrderedDict[str, T] = OrderedDict()
        self._capacity = capacity
        self._receiver: Task | None = None
        self._senders: OrderedDict[Task, _Sender[T]] | None = None
        self.closed = False

    @property
    def receiver(self) -> Task | None:
        """The task that is parked in `get`, if one is."""
        return self._receiver

    def put_nowait(self, key: str, item: T) -> None:
        """Adds an item. No checkpoint. Raises trio.WouldBlock if full, trio.ClosedResourceError if closed."""
        if self._senders or len(self._items) >= self._capacity:
            if self.closed:
                raise trio.ClosedResourceError
            raise trio.WouldBlock
        self.admit(key, item)

    def admit(self, key: str, item: T) -> None:
        """Adds an item for which room was promised elsewhere, even if full. Raises trio.ClosedResourceError."""
        if self.closed:
            raise trio.ClosedResourceError
        self._items[key] = item
        if self._receiver is not None:
            task, self._receiver = self._receiver, None
            reschedule(task)

    async def put(self, key: str, item: T) -> None:
        """Waits in line while the mailbox is full. Cancelled: the item was not put.

        Returns also when the item was recalled while it waited. Raises trio.ClosedResourceError.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            self.put_nowait(key, item)
        except trio.WouldBlock:
            await self._wait_for_room(key, item)
        else:
            await trio.lowlevel.cancel_shielded_checkpoint()

    @enable_ki_protection  # as Subscription._wait
    async def get(self) -> T:
        """The next item. Always a checkpoint; cancelled: nothing was taken. Raises trio.EndOfChannel once closed."""
        if self._items:
            await trio.lowlevel.checkpoint()
        while not self._items:
            if self.closed:
                raise trio.EndOfChannel
            self._receiver = current_task()
            await wait_task_rescheduled(self._abort_get)
        _, item = self._items.popitem(last=False)
        if self._senders:
            self._refill()
        return item

    def get_nowait(self) -> T:
        """The next item. No checkpoint. Raises trio.WouldBlock if there is none."""
        if not self._items:
            raise trio.WouldBlock
        _, item = self._items.popitem(last=False)
        self._refill()
        return item

    def recall(self, key: str) -> bool:
        """Takes an item back, from the line too; False if the receiver has it already, or it never came."""
        if self._items.pop(key, None) is not None:
            self._refill()
            return True
        for task, sender in (self._senders or {}).items():
            if sender.key == key and self._senders is not None:
                del self._senders[task]
                reschedule(task)
                return True
        return False

    def close(self) -> tuple[T, ...]:
        """No more items. Those left go to the caller, who owes each sender an answer; senders in line get an error."""
        left, self.closed = tuple(self._items.values()), True
        self._items.clear()
        senders, self._senders = self._senders, None
        for task, sender in (senders or {}).items():
            sender.turned_away = True
            reschedule(task)
        if self._receiver is not None:
            task, self._receiver = self._receiver, None
            reschedule(task)
        return left

    def statistics(self) -> MailboxStatistics:
        """What it holds now."""
        senders = len(self._senders or ())
        return MailboxStatistics(len(self._items), self._capacity, senders, self._receiver is not None)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<Mailbox {len(self._items)} of {self._capacity}{' closed' if self.closed else ''}>"

    @enable_ki_protection
    async def _wait_for_room(self, key: str, item: T) -> None:
        task = current_task()
        if self._senders is None:
            self._senders = OrderedDict()
        sender = self._senders[task] = _Sender(key, item)

        def abort(_: Callable[[], None]) -> Abort:
            if self._senders is not None:
                self._senders.pop(task, None)
            return Abort.SUCCEEDED

        await wait_task_rescheduled(abort)
        if sender.turned_away:
            raise trio.ClosedResourceError

    def _refill(self) -> None:
        while self._senders and len(self._items) < self._capacity:
            task, sender = self._senders.popitem(last=False)
            self._items[sender.key] = sender.item
            reschedule(task)

    def _abort_get(self, _: Callable[[], None]) -> Abort:
        self._receiver = None
        return Abort.SUCCEEDED
