"""Leftovers: what is alive that was not before: tasks of trio's, child processes, file descriptors, threads.

It only looks. Processes and descriptors are read from /proc; where that is missing, none are found.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass

from trio.lowlevel import Task, current_root_task

from .turn import Turn, current_turn

TRIO_WORKERS = "Trio thread "
"""How trio names the threads that it keeps for later and that run nothing."""
GRACE = 0.1
"""Real seconds that a thread or a process which is just ending is given."""
_THREADS = "/proc/self/task"
_DESCRIPTORS = "/proc/self/fd"
_MOST = 1 << 16
"""Bytes of ids of child processes that are read."""


def tasks(leave_out: Collection[Task] = ()) -> Iterator[Task]:
    """Every task of the running trio, without those in `leave_out` and all below them."""
    root = current_root_task()
    waiting = [] if root is None else [root]
    while waiting:
        task = waiting.pop()
        if task not in leave_out:
            yield task
            for nursery in task.child_nurseries:
                waiting.extend(nursery.child_tasks)


def started_by(turns: Collection[Turn], leave_out: Collection[Task] = ()) -> list[str]:
    """The names of the tasks that were started in one of these turns and are alive.

    What is below a task in `leave_out` may stay: under an actor's own task stands what its `live` has opened.
    """
    turn_of = {task: task.context.get(current_turn) for task in tasks(leave_out)}
    return sorted(task.name for task, turn in turn_of.items() if turn is not None and turn in turns)


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the process has open, as of one moment."""

    processes: frozenset[str]
    descriptors: frozenset[str]
    threads: frozenset[threading.Thread]

    @classmethod
    def now(cls) -> Holdings:
        """As of now; some 50 microseconds."""
        busy = [thread for thread in threading.enumerate() if not thread.name.startswith(TRIO_WORKERS)]
        return cls(frozenset(_children()), frozenset(_open_descriptors()), frozenset(busy))

    def left_behind(self) -> list[str]:
        """What has come since and does not end within a tenth of a second, each named."""
        left = self._come_since()
        until = time.monotonic() + GRACE
        while left and time.monotonic() < until:
            time.sleep(GRACE / 10)
            left = self._come_since()
        return left

    def _come_since(self) -> list[str]:
        now = Holdings.now()
        processes = [f"process {pid}" for pid in now.processes - self.processes]
        descriptors = [f"descriptor {_target(number)}" for number in now.descriptors - self.descriptors]
        return sorted([*processes, *descriptors, *(f"thread {one.name}" for one in now.threads - self.threads)])


def _children() -> Iterator[str]:
    """The ids of the child processes; a child belongs to the thread that started it."""
    try:
        threads = os.listdir(_THREADS)
    except OSError:
        return
    for thread in threads:
        try:
            file = os.open(f"{_THREADS}/{thread}/children", os.O_RDONLY)
        except OSError:  # the thread has ended, or this Linux does not list children
            continue
        try:
            yield from os.read(file, _MOST).decode().split()
        finally:
            os.close(file)


def _open_descriptors() -> Iterator[str]:
    """Those that are still open when they have been listed: listing takes one itself."""
    try:
        numbers = os.listdir(_DESCRIPTORS)
    except OSError:
        return
    for number in numbers:
        with suppress(OSError):
            os.fstat(int(number))
            yield number


def _target(number: str) -> str:
    try:
        return f"{number} to {os.readlink(f'{_DESCRIPTORS}/{number}')}"
    except OSError:
        return number
