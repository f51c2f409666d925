"""Outbox: what trio's thread has for an asyncio loop, brought there in batches: one wake-up for all that gathered."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class Outbox:
    """Any thread may put something in; the loop calls it, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._armed = False
        self.on_loop_gone: Callable[[], None] = lambda: None
        """Called, in the thread that found it, when the loop was closed with somebody still to be told."""

    def put(self, function: Callable[[], None]) -> None:
        """Has the function called by the loop. It must not raise."""
        self._waiting.append(function)
        if not self._armed:
            self._armed = True
            try:
                self._loop.call_soon_threadsafe(self._empty)
            except RuntimeError:
                self.on_loop_gone()

    def _empty(self) -> None:
        self._armed = False  # before anything is taken out, or what comes in between would not be told
        while self._waiting:
            self._waiting.popleft()()
