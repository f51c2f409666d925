"""Worker process: runs a sync function in a fresh process of its own, which is killed when the call is cancelled.

A process for each call, and none kept: whatever a function has left in one, the next never meets, and none is idle when
the run ends. The rule to know: the function, its arguments and what it returns are pickled. `worker` is the program
at the other end.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import trio

from .ladder import kill_process, wait_ended
from .nursery import open_nursery
from .worker import LENGTH, frame

_PROGRAM = Path(__file__).with_name("worker.py")

# Seconds for the rest of what a worker wrote before it ended, if a process that it forked holds the pipe open.
_LAST_WORDS = 0.5


def check_portable(function: Callable[..., Any]) -> None:
    """Raises TypeError for a function that another process cannot find: by its name, in a module that is imported."""
    if getattr(function, "__module__", None) == "__main__":
        raise TypeError(
            f"{function!r} is defined in the program that is run, which a worker process must not run again; "
            "put it into a module of its own"
        )
    try:
        pickle.dumps(function)
    except Exception as error:
        raise TypeError(f"{function!r} cannot be pickled for a worker process: {error}") from error


class WorkerCall:
    """One call of a function in a worker process. `reports` is the name of the parameter through which it reports."""

    def __init__(self, function: Callable[..., Any], arguments: Mapping[str, Any], reports: str | None = None) -> None:
        self._name = getattr(function, "__qualname__", repr(function))
        self._call = pickle.dumps((function, dict(arguments), reports))

    async def run(self, report: Callable[[str], None]) -> Any:
        """What the function returns. Raises what it raises, with the worker's traceback as a note.

        Cancelled: the worker and all that it has started are killed, and have ended when Cancelled goes on; however the
        call ends, nothing of it is left. Exit handlers do not run. Raises ChildProcessError if the worker ended without
        an answer, and what pickle raises.
        """
        process = await trio.lowlevel.open_process(
            # P: the folder of the program is no place to import from.
            [sys.executable, "-P", str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdio is not None
        try:
            answer = await self._converse(process, report)
        finally:
            try:
                await kill_process(process)  # shields itself, with a limit
            finally:
                await trio.aclose_forcefully(process.stdio)
        match answer:
            case ("result", content):
                return content
            case ("error", Exception() as error):
                raise error
        code = process.returncode
        raise ChildProcessError(f"the worker process of {self._name} ended without an answer, with exit code {code}")

    async def _converse(self, process: trio.Process, report: Callable[[str], None]) -> tuple[str, object] | None:
        """The answer; None if the worker has ended without one."""
        answer: tuple[str, object] | None = None
        async with open_nursery() as nursery:
            reading = trio.CancelScope()
            nursery.start_soon(_stop_when_ended, process, reading)
            with reading:
                answer = await self._exchange(process, report)
                if answer is None:
                    await wait_ended(process)
            nursery.cancel_scope.cancel(reason="the worker has answered")
        return answer

    async def _exchange(self, process: trio.Process, report: Callable[[str], None]) -> tuple[str, object] | None:
        assert process.stdio is not None
        with suppress(trio.BrokenResourceError):  # it has ended already, which the end of its answers will show
            await process.stdio.send_all(frame(sys.path) + frame(self._call))
        received = bytearray()
        async for data in process.stdio:
            received += data
            while (length := _whole(received)) is not None:
                kind, content = pickle.loads(received[LENGTH.size : length])
                if kind != "report":
                    return kind, content
                del received[:length]
                report(content)
        return None


def _whole(received: bytearray) -> int | None:
    """How long the first frame is with its length; None if it is not whole yet."""
    if len(received) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack_from(received)
    return LENGTH.size + length if len(received) >= LENGTH.size + length else None


async def _stop_when_ended(process: trio.Process, reading: trio.CancelScope) -> None:
    """A process that the worker forked may hold its pipe open for ever."""
    await wait_ended(process)
    reading.deadline = trio.current_time() + _LAST_WORDS
