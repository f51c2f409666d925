"""Worker: the program of a worker process. It reads one call, runs it, and writes its reports and its outcome.

It is run as a file, so that it starts fast: it imports nothing but the standard library, and nothing of callboard.
What the function prints goes to stderr, since stdout carries the frames; what it reads is empty. When the host has
gone, the worker goes with all its group.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

LENGTH = struct.Struct("!Q")
"""What stands before each frame: how long it is."""


def frame(content: object) -> bytes:
    """A frame with that content."""
    data = pickle.dumps(content)
    return LENGTH.pack(len(data)) + data


def read_frame(stream: BinaryIO) -> Any:
    """The content of the next frame."""
    (length,) = LENGTH.unpack(stream.read(LENGTH.size))
    return pickle.loads(stream.read(length))


def main() -> None:
    """Runs one call. Its frames: the import path; then, pickled, the function, its arguments, and how it reports."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    lock = threading.Lock()

    def send(data: bytes) -> None:
        rest = memoryview(data)
        with lock:
            while rest:
                rest = rest[answers.write(rest) :]

    sys.path[:] = read_frame(calls)
    call = read_frame(calls)
    threading.Thread(target=_go_with_host, args=(calls,), daemon=True).start()
    outcome = _run(call, lambda text: send(frame(("report", text))))
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    send(outcome)
    # Not by returning: exit handlers would run or not, as it happens, since the host kills what has answered.
    os._exit(0)


def _run(call: bytes, report: Callable[[str], None]) -> bytes:
    """The frame of its outcome."""
    try:
        function, arguments, reports = pickle.loads(call)
        if reports:
            arguments[reports] = report
        return frame(("result", function(**arguments)))
    except BaseException as error:
        return frame(("error", _sendable(error)))


def _sendable(error: BaseException) -> Exception:
    """The error with its traceback as a note; one that cannot be sent, or would end the host, as what it says."""
    said = "".join(traceback.format_exception(error))
    note = f"In the worker process:\n{said}"
    with suppress(Exception):
        pickle.loads(pickle.dumps(error))
        if isinstance(error, Exception):
            error.add_note(note)
            return error
    plain = RuntimeError("".join(traceback.format_exception_only(error)).strip())
    plain.add_note(note)
    return plain


def _go_with_host(calls: BinaryIO) -> None:
    """Ends this process when the pipe from the host does."""
    calls.read(1)
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
