"""Signal: tasks wait for it, one step wakes them all. It costs nothing while nobody waits."""

from __future__ import annotations

from collections.abc import Callable

from trio.lowlevel import (
    Abort,
    RaiseCancelT,
    Task,
    current_task,
    enable_ki_protection,
    reschedule,
    wait_task_rescheduled,
)


class Signal:
    """Lighter than a trio.Event, and it keeps no state: what has happened is known elsewhere."""

    __slots__ = ("_successor", "_tasks")

    def __init__(self) -> None:
        self._tasks: tuple[Task, ...] = ()
        self._successor: Signal | None = None

    @enable_ki_protection  # as Subscription._wait
    async def wait(self) -> None:
        """Until the next `fire`. Always a checkpoint. Cancelled: nothing happens."""
        task = current_task()

        def abort(_: Callable[[], None]) -> Abort:
            holder = self
            while holder._successor is not None:
                holder = holder._successor
            holder._tasks = tuple(other for other in holder._tasks if other is not task)
            return Abort.SUCCEEDED

        self._tasks = (*self._tasks, task)
        await wait_task_rescheduled(abort)

    @enable_ki_protection
    async def wait_through(self, on_cancelled: Callable[[], None]) -> None:
        """Until the next `fire`, even if cancelled; then `on_cancelled` is called in the step of the cancellation.

        Raises Cancelled after the `fire`: a task that must wait on is woken once, not twice.
        """
        raise_cancelled: RaiseCancelT | None = None

        def abort(raise_cancel: RaiseCancelT) -> Abort:
            nonlocal raise_cancelled
            raise_cancelled = raise_cancel
            on_cancelled()
            return Abort.FAILED

        self._tasks = (*self._tasks, current_task())
        await wait_task_rescheduled(abort)
        if raise_cancelled is not None:
            raise_cancelled()

    def fire(self) -> None:
        """Wakes all that wait."""
        tasks, self._tasks = self._tasks, ()
        for task in tasks:
            reschedule(task)

    def hand_over(self, successor: Signal) -> None:
        """Those that wait here wait there from now on; nobody is woken."""
        successor._tasks += self._tasks
        self._tasks = ()
        self._successor = successor
