"""The measuring in async programs, written once for all of them, over anyio's tasks.

What differs between them is how a conversation is opened and how a task is cancelled.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Protocol

import anyio
import anyio.to_thread
import trio

from benchmarks._embedded import BUFFER, OPTIONS, TICK, Clerk, Figures, Sizes, growth, p99
from callboard.runtime.actor import Actor
from callboard.runtime.event import Event, RoundEnded
from callboard.runtime.hosts import TrioHost
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post


class Spoken(Protocol):
    """What the measuring needs of a conversation, or of a handle of one."""

    async def send(self, message: str) -> Post:
        """A round; gives its reply."""
        ...

    def events(self, buffer: int) -> AsyncIterator[Event]:
        """What happens from now on."""
        ...


Open = Callable[[Actor], AbstractAsyncContextManager[Spoken]]
Cut = Callable[[Callable[[], Awaitable[None]], Callable[[], Awaitable[None]]], Awaitable[float]]
"""Runs the first function in a task, cancels it after the second has returned, and gives the time of cancelling."""


async def cut_on_asyncio(waiting: Callable[[], Awaitable[None]], ready: Callable[[], Awaitable[None]]) -> float:
    """By `Task.cancel`."""
    task = asyncio.ensure_future(waiting())
    await ready()
    began = time.perf_counter()
    task.cancel()
    await asyncio.wait([task])
    return began


async def cut_on_trio(waiting: Callable[[], Awaitable[None]], ready: Callable[[], Awaitable[None]]) -> float:
    """By a nursery's scope."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting)
        await ready()
        began = time.perf_counter()
        nursery.cancel_scope.cancel()
    return began


@asynccontextmanager
async def in_trio() -> AsyncIterator[Open]:
    """No host: the program runs on trio itself."""
    yield lambda root: open_conversation(root, options=OPTIONS)


@asynccontextmanager
async def in_host() -> AsyncIterator[Open]:
    """A TrioHost."""
    async with TrioHost() as host:
        yield lambda root: host.open_conversation(root, options=OPTIONS)


async def measure(enter: Callable[[], AbstractAsyncContextManager[Open]], cut: Cut, sizes: Sizes) -> Figures:
    """All of one async program."""
    clerk = Clerk()
    async with enter() as open_one:
        async with open_one(clerk) as conversation:
            trips = sorted([await _round_trip(conversation) for _ in range(sizes.sends + 10)][10:])
            events = await _events([conversation], sizes.events)
            cuts = [await _cut(conversation, clerk, cut) for _ in range(sizes.cancels)]
            stall = max(await _lateness(conversation, f"block {sizes.stall}"))
            busy = await _lateness(conversation, f"work {sizes.busy}")
        async with AsyncExitStack() as stack:
            many = [await stack.enter_async_context(open_one(Clerk())) for _ in range(sizes.conversations)]
            events_of_many = await _events(many, sizes.events)
    cleaned_up, went_on = map(statistics.median, zip(*cuts, strict=True))
    return Figures(statistics.median(trips), p99(trips), events, events_of_many, cleaned_up, went_on, stall, p99(busy))


async def _round_trip(conversation: Spoken) -> float:
    began = time.perf_counter()
    await conversation.send("hello")
    return time.perf_counter() - began


async def _events(conversations: Sequence[Spoken], count: int) -> float:
    each = count // len(conversations)
    read: list[int] = []

    async def read_all(events: AsyncIterator[Event]) -> None:
        seen = []
        async for event in events:
            seen.append(event)
            if isinstance(event, RoundEnded):
                break
        read.append(growth(seen))

    began = time.perf_counter()
    async with anyio.create_task_group() as group:
        for conversation in conversations:
            group.start_soon(read_all, conversation.events(BUFFER))
            group.start_soon(conversation.send, f"write {each}")
    return sum(read) / (time.perf_counter() - began)


async def _cut(conversation: Spoken, clerk: Clerk, cut: Cut) -> tuple[float, float]:
    went_on: list[float] = []
    clerk.at_work.clear()

    async def waiting() -> None:
        try:
            await conversation.send("wait")
        finally:
            went_on.append(time.perf_counter())

    async def ready() -> None:
        await anyio.to_thread.run_sync(clerk.at_work.wait)
        await anyio.sleep(TICK)  # until trio's thread sleeps

    began = await cut(waiting, ready)
    return clerk.cleaned_up - began, went_on[0] - began


async def _lateness(conversation: Spoken, message: str) -> list[float]:
    late: list[float] = []

    async def tick() -> None:
        while True:
            began = time.perf_counter()
            await anyio.sleep(TICK)
            late.append(time.perf_counter() - began - TICK)

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await anyio.sleep(3 * TICK)  # or the role may run before the first tick
        await conversation.send(message)
        await anyio.sleep(3 * TICK)  # what was late is noted
        group.cancel_scope.cancel()
    return late
