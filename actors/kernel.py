"""Kernel: a Python process that runs one piece of code after another and keeps their variables, also when interrupted.

POSIX only. The rule to know: a run ends at once, its state with it or not, and what it says last tells which. SIGINT
keeps the state. Only if the code goes on is the process ended, first asked and then killed, and the next run has a new
one. What earlier code has started lives as long as the process and no longer, as far as `process_group` can find it.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

import trio

from .kernel_link import KernelFailed, KernelLink
from .plugin import Plugin
from .printed import Printed
from .sandbox import Isolation, SandboxLimits, check_isolation, own_user, sandboxed

Ended = Literal["done", "failed", "stopped", "lost"]

_PROGRAM = Path(__file__).with_name("kernel_process.py")
_INHERITED = ("PATH", "LD_LIBRARY_PATH", "TZ")

# utf8: the output is UTF-8 in any locale. u: output comes as it is printed, and in order. s: no packages of the host's
# user. P: the program's folder is no place to import from.
_FLAGS = ("-X", "utf8", "-u", "-s", "-P")

_START = 60.0
"""Seconds that a process may take to start."""
_LOST = "all variables, imports and functions of earlier code are gone; files stay"


@dataclass(frozen=True, slots=True)
class KernelResult:
    """What became of a run."""

    output: str
    """What was printed, errors and notes included. Of more than `most_output` bytes the middle is left out."""
    ended: Ended
    """`stopped`: by its limit of time or of output, its state kept. `lost`: the process has ended, and its state with
    it."""

    @property
    def succeeded(self) -> bool:
        """Whether it ended by itself and without an error."""
        return self.ended == "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOptions:
    """What runs of code may take, and what they see."""

    timeout: float = 60.0
    """Seconds for one run."""
    most_output: int = 20_000
    """Bytes of output that are kept of one run."""
    ladder: float = 2.0
    """Seconds for SIGINT, which is sent again at the half of them, and as many for SIGTERM; then comes SIGKILL."""
    isolation: Isolation = "bubblewrap"
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    plugins: tuple[Plugin, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the code sees besides PATH, LD_LIBRARY_PATH and TZ of the host's environment."""

    def __post_init__(self) -> None:
        for name in ("timeout", "ladder"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is a number of seconds from 0 on, not {getattr(self, name)!r}")


class Kernel:
    """Runs code in `folder`. Made by `open_kernel`; its process starts with the first run."""

    def __init__(self, folder: Path, options: KernelOptions) -> None:
        self._folder = folder.resolve()
        self._options = options
        self._user = own_user(options.isolation)
        self._link: KernelLink | None = None
        self._one_at_a_time = trio.Lock()

    async def run(
        self, code: str, on_output: Callable[[str], None], variables: Mapping[str, Any] | None = None
    ) -> KernelResult:
        """What became of the code, which has seen the session's `variables`, values that JSON can hold.

        `on_output` is called with output as it comes, `most_output` bytes in all, and with notes in brackets: that the
        code was stopped, and whether its state was kept. One run at a time; another waits.

        Cancelled: the code is ended by the ladder, shielded, `on_output` gets what it prints meanwhile and whether the
        state was kept. Raises KernelFailed if no process can be started, ValueError for code or variables that cannot
        be sent. An error of `on_output` ends the kernel and comes out.
        """
        marker = f"\0{secrets.token_hex(16)}\0"
        printed = Printed(marker.encode(), on_output, self._options.most_output)
        plugins = [plugin.shipment for plugin in self._options.plugins]
        request = {"code": code, "marker": marker, "variables": dict(variables or {}), "plugins": plugins}
        code.encode()
        async with self._one_at_a_time:
            before = await self._send(request)
            if before:
                on_output(before)
            ended, note = await self._follow(printed)
            if note:
                on_output(note)
        return KernelResult(before + printed.text() + note, ended)

    async def _follow(self, printed: Printed) -> tuple[Ended, str]:
        """How the run under way has ended, and what is to be told of that."""
        link = self._link
        assert link is not None
        try:
            with trio.move_on_after(self._options.timeout):
                await link.read(printed)
            if link.reply is not None and printed.complete:
                return ("failed" if link.reply.get("error") else "done"), ""
            if link.ended or link.broken:
                printed.end()
                return "lost", printed.line_end + await self._lose("the kernel has ended")
            why = f"stopped after {self._options.timeout:g} s"
            return await self._end(link, printed, "stopped: it printed too much" if printed.flooded else why)
        except trio.Cancelled:
            _, note = await self._end(link, printed, "interrupted")
            printed.tell(note)
            raise
        except BaseException:
            await self.close()
            raise

    async def _end(self, link: KernelLink, printed: Printed, why: str) -> tuple[Ended, str]:
        """Ends the code by the ladder, shielded."""
        kept = False
        with trio.CancelScope(shield=True):  # each rung has its limit
            try:
                kept = await link.climb(printed, self._options.ladder)
            finally:
                if not kept:
                    await self.close()
        if kept:
            return "stopped", f"{printed.line_end}[{why}; the variables are kept]\n"
        printed.end()
        return "lost", f"{printed.line_end}[{why}; it went on and had to be killed: {_LOST}]\n"

    async def _send(self, request: Mapping[str, Any]) -> str:
        """What is to be told of an earlier process, which has ended meanwhile; a new one is started if none is left."""
        told = ""
        if self._link is not None and self._link.ended:
            told = await self._lose("the kernel has ended since the last code")
        for _ in range(2):
            link = self._link or await self._started()
            if await link.send(request):
                return told
            told = await self._lose("the kernel took no more code")
        await self._fail("it takes none", "")

    async def _started(self) -> KernelLink:
        options = self._options
        folder = str(self._folder)
        command = [sys.executable, *_FLAGS, str(_PROGRAM)]
        if options.isolation == "bubblewrap":
            command = sandboxed(command, self._folder, options.limits, (_PROGRAM,))
        if self._user:
            await trio.to_thread.run_sync(_give, self._folder, self._user)
        setup = {"folder": folder, "user": self._user, "limits": options.limits.of_system(options.isolation)}
        self._link = KernelLink(command, setup, folder, _environment(folder, options.environment))
        said = Printed(b"\0", lambda text: None, 2_000)
        try:
            with trio.move_on_after(_START):
                await self._link.read(said)
        finally:
            if self._link.reply is None:
                await self.close()
        if self._link is None:
            await self._fail("its process did not start", said.text())
        self._link.find()
        return self._link

    async def _fail(self, what: str, said: str) -> NoReturn:
        await self.close()
        raise KernelFailed(f"the kernel cannot run code: {what}{said and ': '}{said.strip()}")

    async def _lose(self, why: str) -> str:
        code = await self.close()
        return f"[{why} ({_exit(code)}): {_LOST}]\n"

    async def close(self) -> int | None:
        """Kills the process with all that it has started, shielded; gives its exit code. Runs start another."""
        link, self._link = self._link, None
        if link is None:
            return None
        await link.close()
        return link.exit_code


@asynccontextmanager
async def open_kernel(folder: Path, options: KernelOptions | None = None) -> AsyncIterator[Kernel]:
    """A kernel that works in `folder`, until the block ends; then its process is killed with all that it has started.

    Cancelled: the same, shielded. Raises SandboxMissing if it may not run here.
    """
    options = options or KernelOptions()
    await check_isolation(options.isolation)
    kernel = Kernel(folder, options)
    try:
        yield kernel
    finally:
        await kernel.close()


def _environment(folder: str, further: Mapping[str, str]) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    own = {"LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder, "MPLBACKEND": "agg"}
    return {**inherited, **own, **further}


def _exit(code: int | None) -> str:
    # bubblewrap says 128 and the number for a signal.
    number = -code if code and code < 0 else code - 128 if code and code > 128 else 0
    if number in (signal.SIGXCPU, signal.SIGKILL):
        return f"killed by signal {number}: perhaps by the system, for memory or processor time"
    return f"killed by signal {number}" if number else f"exit code {code}"


def _give(folder: Path, user: int) -> None:
    """Makes the folder, and all that is in it, the user's."""
    os.chown(folder, user, user)
    for above, folders, names in os.walk(folder):
        for name in (*folders, *names):
            os.chown(os.path.join(above, name), user, user, follow_symlinks=False)
