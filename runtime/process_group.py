"""Process group: a child process with all that it has started, found so that all of it can be signalled.

The child is started with `start_new_session=True`. The rule to know: a number that may belong to a stranger by now is
never signalled. So nothing is once the child was reaped; until then its number is taken, and that of each other process
is held by a descriptor.

On Linux a process belongs to it that has the child's group or session, or an ancestor in it that is alive when this
looks, whatever session it made for itself. What it cannot find is a daemon: one whose parent ended before anybody
looked, in a session of its own. To adopt those, the host itself would have to be a child subreaper, which would hand
it the orphans of every library in it, to be reaped for ever; and who daemonizes has said that he means to outlive.
Elsewhere it is the process group alone, on Windows the child alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import trio

Process = trio.Process | subprocess.Popen[bytes]
Order = Literal["interrupt", "terminate", "kill"]

# Seconds between two looks at a child where the system gives no descriptor to wait on.
_LOOK = 0.01

# How often what a killed process started in its last moment is looked for.
_LOOKS = 10


@dataclass(frozen=True, slots=True)
class _Row:
    """A process as /proc shows it; `born` tells it from a later one of the same number."""

    parent: int
    group: int
    session: int
    born: int


class ProcessGroup:
    """Signals a child and what it started, and waits for their end. Close it: it holds a descriptor for each."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._held: dict[int, tuple[_Row, int]] = {}

    @property
    def reaped(self) -> bool:
        """Whether the child's number is free again. Asking reaps nothing."""
        # trio's own `returncode` reaps what has ended.
        popen = self._process if isinstance(self._process, subprocess.Popen) else self._process._proc
        return popen.returncode is not None

    @property
    def ended(self) -> bool:
        """Whether the child has ended; where the system can tell without reaping it, it is not reaped."""
        if self.reaped:
            return True
        if hasattr(os, "waitid"):
            with suppress(ChildProcessError):
                return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return self._process.poll() is not None

    def signal(self, order: Order) -> None:
        """One signal to all of it. Windows knows no interruption of a process: there it does nothing."""
        if self.reaped:
            return
        if sys.platform == "win32":
            if order != "interrupt":
                self._process.kill()
            return
        number = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}[order]
        self.find()
        # macOS says PermissionError for a group of zombies.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
        for row, descriptor in self._held.values():
            if row.group != self._process.pid:
                _send(descriptor, number)

    def kill(self) -> None:
        """SIGKILL to all of it, and to what that started meanwhile."""
        known = 0 if self.ended else -1
        for _ in range(_LOOKS):
            self.signal("kill")
            if len(self._held) == known:
                return
            known = len(self._held)

    def find(self) -> None:
        """Holds all of it that is there. Who has lost its parent is only found if its ancestors were held before."""
        if self.reaped or not hasattr(signal, "pidfd_send_signal") or not hasattr(os, "pidfd_open"):
            return
        table = _read_table()
        own = self._process.pid
        roots = {own, *(pid for pid, (row, _) in self._held.items() if _same(table.get(pid), row))}
        roots |= {pid for pid, row in table.items() if own in (row.group, row.session)}
        for pid in _below(roots, table) - {own, os.getpid()}:
            if not _same(table[pid], self._held.get(pid, (None, -1))[0]):
                self._hold(pid, table[pid])

    async def wait_ended(self) -> None:
        """Returns when the child has ended, not yet reaped. Cancelled: nothing happens to it."""
        await trio.lowlevel.checkpoint()
        if self.ended:
            return
        try:
            descriptor = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            while not self.ended:  # noqa: ASYNC110 (the system gives nothing to wait on)
                await trio.sleep(_LOOK)
            return
        try:
            await trio.lowlevel.wait_readable(descriptor)
        finally:
            os.close(descriptor)

    async def wait_gone(self) -> None:
        """Returns when all others that are held have ended. Cancelled: nothing happens to them."""
        for _, descriptor in self._held.values():
            await trio.lowlevel.wait_readable(descriptor)

    def close(self) -> None:
        """Lets go of all, and does nothing to any."""
        for _, descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()

    def _hold(self, pid: int, row: _Row) -> None:
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:  # it has gone
            return
        if not _same(_read_row(pid), row):
            os.close(descriptor)
            return
        if pid in self._held:
            os.close(self._held[pid][1])
        self._held[pid] = (row, descriptor)

    def __repr__(self) -> str:
        return f"<ProcessGroup {self._process.pid} and {len(self._held)} more>"


def _send(descriptor: int, number: signal.Signals) -> None:
    # PermissionError: it has become somebody else's, such as a program that is installed setuid.
    with suppress(ProcessLookupError, PermissionError):
        signal.pidfd_send_signal(descriptor, number)


def _read_table() -> dict[int, _Row]:
    rows = ((int(name), _read_row(int(name))) for name in os.listdir("/proc") if name.isdecimal())
    return {pid: row for pid, row in rows if row is not None}


def _read_row(pid: int) -> _Row | None:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read()
    except OSError:  # it has gone
        return None
    # The second field is the program's name in brackets, which may hold anything.
    fields = text.rpartition(b")")[2].split(None, 20)
    return _Row(int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def _same(now: _Row | None, before: _Row | None) -> bool:
    return now is not None and before is not None and now.born == before.born


def _below(roots: set[int], table: dict[int, _Row]) -> set[int]:
    """The processes of the table that are among the roots or descend from one."""
    children: dict[int, list[int]] = {}
    for pid, row in table.items():
        children.setdefault(row.parent, []).append(pid)
    found: set[int] = set()
    todo = [pid for pid in roots if pid in table]
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo += children.get(pid, ())
    return found
