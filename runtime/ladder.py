"""Ladder: how a child process is ended: asked, then told, then killed, each with all that it has started.

The rule to know: start the child with `start_new_session=True`, else its group is the host's own and would be
signalled with it. What belongs to a child, and what escapes, `process_group` says.
"""

from __future__ import annotations

import os
import sys
from typing import Literal

import trio

from .process_group import Order, Process, ProcessGroup

EndedBy = Literal["itself", "interrupt", "terminate", "kill"]

# Seconds for what was killed to be gone; beyond, it is stuck in the kernel.
_KILLED = 2.0


async def end_process(process: Process, *, ladder: float = 2.0) -> EndedBy:
    """What ended the child: itself, or the signal that it was sent last.

    SIGINT, after `ladder` seconds SIGTERM, after as many again SIGKILL, each to the child and all that it started; what
    of that is left when the child has ended is killed. The child is reaped. One that was reaped before is let alone,
    and so is then all that it started. On Windows there are two rungs, no SIGINT, and the child alone.

    Cancelled: it goes on, shielded; it takes two rungs and two seconds at most. Raises TimeoutError if the child
    outlives SIGKILL by two seconds, and ValueError for a child in the host's own group, or a ladder below 0.
    """
    if not ladder >= 0:
        raise ValueError(f"ladder is a number of seconds from 0 on, not {ladder!r}")
    _check_group(process)
    group = ProcessGroup(process)
    # Each rung has its limit.
    with trio.CancelScope(shield=True):
        try:
            ended_by = await _climb(group, ladder)
            await _clear(group, process)
        finally:
            group.close()
    return ended_by


async def kill_process(process: Process) -> None:
    """Kills the child and all that it started, without asking; both have ended on return, and the child is reaped.

    Cancelled: it goes on, shielded, for two seconds at most. Raises as `end_process` does.
    """
    _check_group(process)
    group = ProcessGroup(process)
    with trio.CancelScope(shield=True):
        try:
            await _clear(group, process)
        finally:
            group.close()


async def wait_ended(process: Process) -> None:
    """Returns when the child has ended; not yet reaped where that can be, so what it left can still be found.

    Cancelled: nothing happens to it.
    """
    await ProcessGroup(process).wait_ended()


async def _climb(group: ProcessGroup, ladder: float) -> EndedBy:
    orders: tuple[Order, ...] = ("terminate",) if sys.platform == "win32" else ("interrupt", "terminate")
    if group.ended:
        return "itself"
    for order in orders:
        group.signal(order)
        with trio.move_on_after(ladder):
            await group.wait_ended()
        if group.ended:
            return order
    return "kill"


async def _clear(group: ProcessGroup, process: Process) -> None:
    """Nothing of the group is left alive, and the child is reaped."""
    group.kill()
    with trio.move_on_after(_KILLED):
        await group.wait_ended()
        await group.wait_gone()
    if not group.ended:
        raise TimeoutError(f"process {process.pid} is still there {_KILLED:g} s after SIGKILL")
    process.poll()


def _check_group(process: Process) -> None:
    if sys.platform == "win32":
        return
    try:
        own = os.getpgid(process.pid) == os.getpgrp()
    except ProcessLookupError:  # it was reaped, or is somebody else's
        return
    if own and not ProcessGroup(process).reaped:
        raise ValueError(f"process {process.pid} is in the host's own group: start it with start_new_session=True")
