"""Thread call: a sync function in a thread of trio's, which is left behind if it does not end in time.

The rule to know: nothing can stop a thread. Who leaves it behind says so, and gives its place to another thread, so
that threads that never end use up nobody's.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import trio

MOST_THREADS = 40
"""How many calls may run in threads at once in one trio run, those that were left behind not counted."""

_places: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("callboard_threads")


class ThreadCall:
    """One call. It stands for its own place among the threads: trio gives that back when the thread has ended."""

    def __init__(self, on_late: Callable[[object], None] | None = None) -> None:
        self._on_late = on_late
        self._variables = copy_context()
        self._started = False
        self._finished = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._ended = trio.Event()
        self._late = False
        self._abandoned = False

    async def run(
        self, function: Callable[[], Any], *, ladder: float, on_abandoned: Callable[[], None] | None = None
    ) -> Any:
        """What the function returns. Raises what it raises.

        Cancelled: what has finished stands. Else the thread has `ladder` seconds, shielded, and Cancelled goes on when
        it ends; if it does not, it is abandoned, and `on_abandoned` called. Whenever it ends after the cancellation,
        `on_late` gets what it returned or raised, in trio's thread and the caller's context variables; not what ended
        because it asked `trio.from_thread.check_cancelled`, and nothing once the trio run is over. Neither may raise.
        """
        # trio takes whatever acquires and releases; its types know its own class alone.
        limiter: Any = self
        try:
            return await trio.to_thread.run_sync(self._work, function, abandon_on_cancel=True, limiter=limiter)
        except trio.Cancelled:
            if not self._started:
                raise
            if self._finished:
                return self._unwrap()
            self._late = True
            with trio.CancelScope(shield=True, relative_deadline=ladder):
                await self._ended.wait()
            if not self._ended.is_set():
                self._abandon(on_abandoned)
            raise

    def report(self, report: Callable[[str], None], text: str) -> None:
        """Called in the thread: `report(text)` in trio's. Nothing happens once the call was left behind."""
        with suppress(trio.RunFinishedError):
            trio.from_thread.run_sync(self._report, report, text)

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        """Called by trio before it starts the thread."""
        await _all_places().acquire_on_behalf_of(self)
        self._started = True

    def release_on_behalf_of(self, borrower: object) -> None:
        """Called by trio in its own thread when the thread has ended, however late."""
        self._ended.set()
        if not self._abandoned:
            _all_places().release_on_behalf_of(self)
        if self._late and self._on_late is not None and not isinstance(self._error, trio.Cancelled):
            self._variables.run(self._on_late, self._result if self._error is None else self._error)

    def _work(self, function: Callable[[], Any]) -> Any:
        # Kept, because trio drops what comes from a thread for which it does not wait any more.
        try:
            self._result = function()
        except BaseException as error:
            self._error = error
            raise
        finally:
            self._finished = True
        return self._result

    def _unwrap(self) -> Any:
        error, self._error = self._error, None
        if error is None:
            return self._result
        try:
            raise error
        finally:
            del error  # its traceback holds this frame

    def _abandon(self, on_abandoned: Callable[[], None] | None) -> None:
        self._abandoned = True
        _all_places().release_on_behalf_of(self)
        if on_abandoned is not None:
            on_abandoned()

    def _report(self, report: Callable[[str], None], text: str) -> None:
        if not self._abandoned:
            report(text)


def _all_places() -> trio.CapacityLimiter:
    try:
        return _places.get()
    except LookupError:
        places = trio.CapacityLimiter(MOST_THREADS)
        _places.set(places)
        return places
