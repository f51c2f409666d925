"""Straggler: async work that was cancelled and does not end. Nothing in the process can stop it, so it is reported.

The rule to know: work that is not cancelled costs no task and no scope. trio has no callback for a cancelled scope: a
scope tells the tasks that are in it. So a watch stands among those, under the private names of trio that `HEARD` looks
for. In a trio without them work goes on all the same, and only the report is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import trio

HEARD = hasattr(trio.lowlevel.Task, "_attempt_delivery_of_any_pending_cancel") and hasattr(
    trio.lowlevel.Task, "_cancel_status"
)
"""Whether this trio tells tasks that they are cancelled in the way that is known here."""


class StragglerWatch:
    """A block, and who is told if it goes on for `after` seconds after the scope around it was cancelled.

    Then `report` is called, once, in the context variables in which the block was entered, and the block goes on. It
    must not raise: its error would end the nursery that the caller's task is in. In that nursery stands the one task
    that is started when the block is cancelled and does not end at once; it ends with the block. The nursery cannot
    close before, since the caller's task is in it. A scope inside the block is none of the watch's.
    """

    __slots__ = ("_after", "_deadline", "_left", "_report", "_status", "_task", "_variables", "_waiting")

    def __init__(self, after: float, report: Callable[[], None]) -> None:
        self._after = after
        self._report = report
        self._deadline: float | None = None
        self._waiting: trio.CancelScope | None = None
        self._left = False
        self._status: Any = None

    def __enter__(self) -> None:
        self._task = trio.lowlevel.current_task()
        self._variables = copy_context()
        if HEARD:
            self._activate_cancel_status(self._task._cancel_status)

    def __exit__(self, *_: object) -> None:
        self._left = True
        self._activate_cancel_status(None)
        if self._waiting is not None:
            self._waiting.cancel(reason="the block has ended")

    def _activate_cancel_status(self, status: Any) -> None:
        """Called by trio, too, for the tasks that `nursery.start` hands over to another scope."""
        if self._status is not None:
            self._status._tasks.discard(self)
        self._status = status
        if status is not None:
            status._tasks.add(self)
            if status.effectively_cancelled:
                self._attempt_delivery_of_any_pending_cancel()

    def _attempt_delivery_of_any_pending_cancel(self) -> None:
        """Called by trio while it tells the tasks of a scope that it was cancelled: it can take no new one now."""
        if self._deadline is None:
            self._deadline = trio.current_time() + self._after
            trio.lowlevel.current_trio_token().run_sync_soon(self._start)

    def _start(self) -> None:
        if not self._left:
            nursery = self._task.parent_nursery
            assert nursery is not None  # only trio's own first task has none
            self._variables.run(nursery.start_soon, self._wait)

    async def _wait(self) -> None:
        assert self._deadline is not None
        with trio.CancelScope(shield=True, deadline=self._deadline) as self._waiting:
            if not self._left:
                await trio.sleep_forever()
        if not self._left:
            self._report()
