"""Straggler: an async call that was cancelled and does not end. Nothing in the process can stop it, so it is reported.

The rule to know: a call that is not cancelled starts no task. trio has no call back for a cancelled scope: a scope
tells the tasks that are in it. So a listener stands among those, under the private names of trio that `HEARD` looks
for. In a trio without them calls run all the same, and only the report is missing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any, TypeVar

import trio

Result = TypeVar("Result")

HEARD = hasattr(trio.lowlevel.Task, "_attempt_delivery_of_any_pending_cancel")
"""Whether this trio tells tasks that they are cancelled in the way that is known here."""


async def run_reported(call: Callable[[], Awaitable[Result]], *, after: float, report: Callable[[], None]) -> Result:
    """What the call returns. Raises what it raises.

    Cancelled: the call is, where it waits. If it has not ended `after` seconds later, `report` is called once, in the
    caller's context variables, and it is waited for as before. An error of `report` comes out beside the call's own.
    """
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        listener = _Listener(nursery, after, report)
        listener.listen()
        try:
            result = await call()
        except Exception as error:  # raised below: the nursery would make a group of it
            failure = error
        finally:
            listener.close()
    if failure is None:
        return result
    try:
        raise failure
    finally:
        del failure  # its traceback holds this frame


class _Listener:
    """Stands among the tasks of a nursery's scope, hears that it was cancelled, and only then starts a task in it."""

    __slots__ = ("_after", "_closed", "_deadline", "_nursery", "_report", "_tasks", "_variables", "_waiting")

    def __init__(self, nursery: trio.Nursery, after: float, report: Callable[[], None]) -> None:
        self._nursery = nursery
        self._after = after
        self._report = report
        self._variables = copy_context()
        self._deadline: float | None = None
        self._waiting: trio.CancelScope | None = None
        self._closed = False
        self._tasks: Any = set()

    def listen(self) -> None:
        status: Any = getattr(self._nursery.cancel_scope, "_cancel_status", None)
        if not HEARD or status is None:
            return
        self._tasks = status._tasks
        self._tasks.add(self)
        if status.effectively_cancelled:
            self._attempt_delivery_of_any_pending_cancel()

    def close(self) -> None:
        self._closed = True
        self._tasks.discard(self)
        if self._waiting is not None:
            self._waiting.cancel(reason="the call has ended")

    def _attempt_delivery_of_any_pending_cancel(self) -> None:
        """Called by trio when the scope is cancelled, in the middle of telling its tasks: none may be added now."""
        if self._deadline is None:
            self._deadline = trio.current_time() + self._after
            trio.lowlevel.current_trio_token().run_sync_soon(self._start)

    def _start(self) -> None:
        if not self._closed:
            self._variables.run(self._nursery.start_soon, self._wait)

    async def _wait(self) -> None:
        assert self._deadline is not None
        with trio.CancelScope(shield=True, deadline=self._deadline) as self._waiting:
            if not self._closed:
                await trio.sleep_forever()
        if not self._closed:
            self._report()
