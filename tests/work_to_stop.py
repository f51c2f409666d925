"""Functions that tests call in threads and worker processes: those must find them by name, in a module."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Report = Callable[[str], None]


def double(number: int) -> int:
    """Twice the number."""
    return number * 2


def tell(words: list[str], report: Report) -> int:
    """Reports each word, and says how many there were."""
    for word in words:
        report(word)
    return len(words)


def fail(kind: str) -> None:
    """Fails in the way of that kind."""
    match kind:
        case "value":
            raise ValueError("no ink")
        case "exit":
            raise SystemExit(3)
        case "odd":
            raise Odd("one", 2)
        case "death":
            os._exit(7)
        case "silence":
            os.closerange(3, 100)
            time.sleep(0.05)
            os._exit(7)


class Odd(Exception):
    """An error that pickle cannot make again."""

    def __init__(self, first: str, second: int) -> None:
        super().__init__(first)


def unsendable() -> Any:
    """What cannot be pickled."""
    return lambda: None


def chatty() -> str:
    """Prints, reads, and says what it read."""
    print("printed")
    return sys.stdin.read()


def swallow_for_ever(report: Report) -> None:
    """Cannot be asked to end."""
    report(f"ready {os.getpid()}")
    while True:
        try:
            time.sleep(60)
        except BaseException as error:
            report(repr(error))


def start_child(report: Report, own_session: bool = True) -> None:
    """Starts a child that ignores what it can, and waits."""
    code = (
        "import signal, time\nfor number in (2, 15): signal.signal(number, signal.SIG_IGN)\n"
        "print('up', flush=True)\ntime.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=own_session)
    assert child.stdout is not None
    child.stdout.readline()
    report(f"ready {child.pid}")
    time.sleep(60)


def fork_and_die(report: Report) -> None:
    """Leaves a forked process that holds every descriptor, and ends without an answer."""
    if pid := os.fork():
        report(f"ready {pid}")
        os._exit(5)
    time.sleep(60)


def leave_thread() -> str:
    """Returns beside a thread that goes on."""
    threading.Thread(target=time.sleep, args=(60,)).start()
    return "done"


def wait_for_file(path: str) -> str:
    """Returns when there is such a file."""
    while not Path(path).exists():
        time.sleep(0.002)
    return "there"
