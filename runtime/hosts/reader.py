"""Reader: what a host reads of a conversation as it happens, handed over in batches.

Nothing is read ahead: a host takes what has gathered, and what it does not take waits in the subscription, which is
bounded and says what it drops. So a slow reader slows nobody down, and loses what a slow reader in trio would lose.
What is left when the host is closed is handed over then.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

import trio

T = TypeVar("T")


class Reader(Generic[T]):
    """The half in trio's thread. A publisher forgets a subscription where it is dropped: that must happen here."""

    def __init__(self) -> None:
        self._subscription: AsyncIterator[T] | None = None
        self._error: Exception | None = None
        self.items: deque[T] = deque()
        """What was handed over and not read yet; shared with the host's thread."""
        self.ended = False
        """Whether nothing more will come."""

    def open(self, subscribe: Callable[[], AsyncIterator[T]]) -> None:
        """Subscribes; what that raises, the first `fill` raises."""
        try:
            self._subscription = subscribe()
        except Exception as error:
            self._error = error

    def drop(self) -> None:
        """Forgets the subscription."""
        self._subscription = None

    async def fill(self) -> None:
        """Waits for something, then hands over all that is there. Cancelled: nothing is lost."""
        if self._error is not None:
            raise self._error
        if self._subscription is None:
            self.ended = True
            return
        with trio.CancelScope() as scope:
            async for item in self._subscription:
                self.items.append(item)
                if scope.deadline == math.inf:
                    # The rest comes without a wait, up to the reader's next real checkpoint, where this ends it.
                    scope.deadline = -math.inf
            self.ended = True

    async def finish(self) -> None:
        """Hands over all that is left, of a conversation that has ended."""
        while self._subscription is not None and not self.ended:
            await self.fill()
