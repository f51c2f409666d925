"""The baseline: conversations behind anyio's blocking portal to trio, for tasks of asyncio and for threads.

A verb is one call of the portal. Events are handed over one by one, by a task in trio that reads them.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from anyio.from_thread import BlockingPortal, start_blocking_portal

from benchmarks import _embedded_tasks, _embedded_threads
from benchmarks._embedded import OPTIONS
from callboard.runtime.actor import Actor
from callboard.runtime.conversation import Conversation
from callboard.runtime.event import Event
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post


class _Handle:
    def __init__(self, portal: BlockingPortal, handled: Conversation) -> None:
        self._portal = portal
        self._handled = handled

    def _pump(self, buffer: int, put: Callable[[Event], object]) -> None:
        self._portal.start_task_soon(self._read, buffer, put)

    async def _read(self, buffer: int, put: Callable[[Event], object]) -> None:
        async for event in self._handled.events(buffer):
            put(event)


class AsyncioHandle(_Handle):
    """A conversation for tasks of an asyncio loop."""

    async def send(self, message: str) -> Post:
        """Cancelled: so is the call, and this returns when its clean-up is done."""
        reply: Post = await self._portal.call_async(self._handled.send, message)
        return reply

    async def events(self, buffer: int) -> AsyncIterator[Event]:
        """What happens from the first reading on."""
        loop, events = asyncio.get_running_loop(), asyncio.Queue[Event]()
        self._pump(buffer, lambda event: loop.call_soon_threadsafe(events.put_nowait, event))
        while True:
            yield await events.get()


class ThreadsHandle(_Handle):
    """A conversation for threads."""

    def send(self, message: str) -> Post:
        """A round; gives its reply."""
        reply: Post = self._portal.call(self._handled.send, message)
        return reply

    def stop(self, reason: str) -> None:
        """Ends the round."""
        self._portal.call(self._handled.stop, reason)

    def events(self, buffer: int) -> Iterator[Event]:
        """What happens from now on."""
        events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._pump(buffer, events.put)
        return iter(events.get, None)


@asynccontextmanager
async def for_asyncio() -> AsyncIterator[_embedded_tasks.Open]:
    """A portal for the tasks of this loop."""
    with start_blocking_portal("trio") as portal:

        @asynccontextmanager
        async def open_one(root: Actor) -> AsyncIterator[AsyncioHandle]:
            with portal.wrap_async_context_manager(open_conversation(root, options=OPTIONS)) as conversation:
                yield AsyncioHandle(portal, conversation)

        yield open_one


@contextmanager
def for_threads() -> Iterator[_embedded_threads.Open]:
    """A portal for threads."""
    with start_blocking_portal("trio") as portal:

        @contextmanager
        def open_one(root: Actor) -> Iterator[ThreadsHandle]:
            with portal.wrap_async_context_manager(open_conversation(root, options=OPTIONS)) as conversation:
                yield ThreadsHandle(portal, conversation)

        yield open_one
