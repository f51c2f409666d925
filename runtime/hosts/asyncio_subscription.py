"""AsyncioSubscription: `async for` in an asyncio task over what a conversation publishes in trio's thread."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Generic, TypeVar

from ..errors import ConversationClosed
from .asyncio_bridge import AsyncioBridge
from .job import SyncJob
from .reader import Reader

T = TypeVar("T")


class AsyncioSubscription(Generic[T]):
    """It ends with the conversation. A subscription that is dropped is forgotten; nothing needs to be closed."""

    def __init__(self, bridge: AsyncioBridge, subscribe: Callable[[], AsyncIterator[T]]) -> None:
        self._bridge = bridge
        self._reader: Reader[T] = Reader()
        bridge.submit(SyncJob(partial(bridge.thread.open_reader, self._reader, subscribe)))
        weakref.finalize(self, bridge.thread.soon, self._reader.drop).atexit = False

    def __aiter__(self) -> AsyncioSubscription[T]:
        return self

    async def __anext__(self) -> T:
        """The next item. Cancelled: nothing was taken."""
        reader = self._reader
        while True:
            ended = reader.ended  # looked at first: what was handed over before is there now
            if reader.items:
                return reader.items.popleft()
            if ended:
                raise StopAsyncIteration
            try:
                await self._bridge.run(self._reader.fill)
            except ConversationClosed:
                await asyncio.wait([self._bridge.ended])  # until what is left has been handed over
                reader.ended = True
