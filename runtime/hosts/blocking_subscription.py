"""BlockingSubscription: `for` in code that blocks over what a conversation publishes in trio's thread."""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

from ..errors import ConversationClosed
from .blocking_bridge import BlockingBridge
from .reader import Reader

T = TypeVar("T")


class BlockingSubscription(Generic[T]):
    """It ends with the conversation. A subscription that is dropped is forgotten; nothing needs to be closed."""

    def __init__(self, bridge: BlockingBridge, subscribe: Callable[[], AsyncIterator[T]]) -> None:
        self._bridge = bridge
        self._reader: Reader[T] = Reader()
        bridge.call(bridge.thread.open_reader, self._reader, subscribe)
        weakref.finalize(self, bridge.thread.soon, self._reader.drop).atexit = False

    def __iter__(self) -> BlockingSubscription[T]:
        return self

    def __next__(self) -> T:
        """The next item. Interrupted: nothing was taken."""
        reader = self._reader
        while True:
            ended = reader.ended  # looked at first: what was handed over before is there now
            if reader.items:
                return reader.items.popleft()
            if ended:
                raise StopIteration
            try:
                self._bridge.run(self._reader.fill)
            except ConversationClosed:
                self._bridge.thread.ended.wait()  # until what is left has been handed over
                reader.ended = True
