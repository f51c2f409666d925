"""Code runner: Python code in a fresh process of its own, which is gone with all that it started when the call returns.

POSIX only. This is no sandbox: the code may do what the host's user may. The rule to know: what the code has started
does not outlive the call, however it ends, as far as `process_group` can find it: a daemon escapes.
"""

from __future__ import annotations

import codecs
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import trio

from callboard.runtime.ladder import end_process, wait_ended
from callboard.runtime.nursery import open_nursery

# utf8: the output is UTF-8 in any locale. u: output comes as it is printed, and in order. s: no packages of the
# host's user. Not I or P, which would hide modules that earlier code wrote into the folder. Not E: the environment
# is made anew, so a PYTHON* variable in it was put there on purpose.
_FLAGS = ("-X", "utf8", "-u", "-s")

_INHERITED = ("PATH", "LD_LIBRARY_PATH", "TZ")

# Seconds for what is still in the pipe once the group is dead; only a process that escaped the group makes it wait.
_LAST_OUTPUT = 0.5


def _check_seconds(name: str, seconds: float) -> None:
    if not seconds >= 0:
        raise ValueError(f"{name} is a number of seconds from 0 on, not {seconds!r}")


@dataclass(frozen=True, slots=True)
class CodeResult:
    """What became of code that was run."""

    output: str
    """stdout and stderr in order of arrival. Of more than `most_output` characters the middle is left out, and a
    line in its place says how many were."""
    exit_code: int
    """As `subprocess` has it: a signal's number is negative."""
    timed_out: bool
    """Whether it was stopped for taking too long."""

    @property
    def succeeded(self) -> bool:
        """Whether it ended by itself and without an error."""
        return self.exit_code == 0 and not self.timed_out


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run of code may take, and what it sees."""

    timeout: float = 60.0
    """Seconds."""
    most_output: int = 20_000
    """Characters of output that are kept."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the code sees besides PATH, LD_LIBRARY_PATH and TZ of the host's environment."""
    ladder: float = 2.0
    """Seconds that SIGINT and then SIGTERM are given before the next signal, the last being SIGKILL. SIGINT is a
    KeyboardInterrupt in the code; a host that ignores SIGINT itself makes its code ignore it."""

    def __post_init__(self) -> None:
        for name in ("timeout", "ladder"):
            _check_seconds(name, getattr(self, name))


async def run_code(
    code: str, folder: Path, on_output: Callable[[str], None], options: RunOptions | None = None
) -> CodeResult:
    """The result of code that ran in `folder`, where it stays as `code-N.py`.

    `on_output` is called with output as it comes, `most_output` characters in all.

    Cancelled or after `timeout` seconds, the code is ended by `end_process`, shielded; `on_output` gets what it prints
    meanwhile. What it has started and left is killed in any case.

    Raises ValueError for code that is not UTF-8, and OSError if there is no such folder, both before anything has
    started; TimeoutError if the process outlives SIGKILL. An error of `on_output` stops the code and comes out.
    """
    options = options or RunOptions()
    output = _Output(on_output, options.most_output)
    file = await trio.to_thread.run_sync(_write, code.encode(), folder)
    process = await _start(file, options.environment)
    assert process.stdout is not None
    reading = trio.CancelScope(shield=True)
    async with open_nursery() as nursery:
        nursery.start_soon(output.read, process.stdout, reading)
        try:
            timed_out = await _finish(process, options)
        finally:
            reading.deadline = trio.current_time() + _LAST_OUTPUT
    return CodeResult(output.text(), await process.wait(), timed_out)


class _Output:
    """What has been printed: its beginning and its end, in bounded memory."""

    def __init__(self, on_output: Callable[[str], None], most: int) -> None:
        if most < 1:
            raise ValueError(f"most_output is a number of characters from 1 on, not {most!r}")
        self._on_output = on_output
        self._most = most
        self._count = 0
        self._head = ""
        self._tail = ""

    async def read(self, pipe: trio.abc.ReceiveStream, scope: trio.CancelScope) -> None:
        """Returns when the pipe has ended or the scope is cancelled, with the pipe closed."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with scope:
            async with pipe:
                async for data in pipe:
                    self._add(decoder.decode(data))
        self._add(decoder.decode(b"", final=True))

    def text(self) -> str:
        """The whole, or both ends of it."""
        left_out = self._count - len(self._head) - len(self._tail)
        mark = f"\n[{left_out} characters left out]\n" if left_out else ""
        return self._head + mark + self._tail

    def _add(self, text: str) -> None:
        room = max(0, self._most - self._count)
        self._count += len(text)
        half = self._most // 2 - len(self._head)
        self._head += text[:half]
        self._tail = (self._tail + text[half:])[-(self._most - self._most // 2) :]
        if shown := text[:room]:
            self._on_output(shown)


def _write(source: bytes, folder: Path) -> Path:
    number = sum(name.startswith("code-") for name in os.listdir(folder))
    while True:
        number += 1
        file = folder.absolute() / f"code-{number}.py"
        # Another run in the same folder may have taken the name.
        with suppress(FileExistsError), file.open("xb") as opened:
            opened.write(source)
            return file


async def _start(file: Path, environment: Mapping[str, str]) -> trio.Process:
    folder = str(file.parent)
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return await trio.lowlevel.open_process(
        [sys.executable, *_FLAGS, str(file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env={**inherited, "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder, **environment},
        start_new_session=True,
    )


async def _finish(process: trio.Process, options: RunOptions) -> bool:
    """Whether it took too long. However it is left, what it started is dead and the process reaped."""
    ended = False
    try:
        with trio.move_on_after(options.timeout):
            await wait_ended(process)
            ended = True
    finally:
        await end_process(process, ladder=options.ladder)  # shields itself, and has limits
    return not ended
