"""Trial: what every driver shares: what is asked and said, the slow tool, and the one line that is reported.

It needs the standard library alone, since it is imported in the environment of each peer. The rule to know: a driver
says when something happened and what is left; what that means is said once, in `table`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

QUESTION = "Look up our suppliers with slow_lookup and tell me how many there are."
WORDS = "Only those of the year 2025, please."
RESULT = "all six pages read, 42 suppliers"

PIECES = 6
PIECE_SECONDS = 0.5
"""The tool takes PIECES times as long, and reports after each piece."""
SPEAK_AFTER = 1.2
"""Seconds after the tool's start at which the user speaks: two pieces are done."""
SETTLE = 0.1
"""Seconds that a run which says that it is over gets, before what is left is counted."""

_IDLE = frozenset({"_worker", "_work"})
"""The functions in which the pools of concurrent.futures and of trio wait for work."""
_PROCESSES = Path("/proc")


def piece(number: int) -> str:
    """What the tool reports after a piece."""
    return f"page {number} of {PIECES} read"


Report = Callable[[str], object]


@dataclass(slots=True)
class Trial:
    """One run of one driver."""

    base_url: str
    mechanism: str
    tool_log: Path
    said: float = 0.0
    runs: int = 0
    record: dict[str, Any] = field(default_factory=dict)
    started: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    _threads: frozenset[int] = frozenset()
    _counting: threading.Timer | None = None

    @staticmethod
    def from_arguments() -> Trial:
        """The trial that the program's three arguments describe: base URL, mechanism, and the tool's log."""
        base_url, mechanism, tool_log = sys.argv[1:]
        threads = frozenset(thread.ident or 0 for thread in threading.enumerate())
        return Trial(base_url, mechanism, Path(tool_log), _threads=threads)

    async def slow_lookup(self, report: Report, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> str:
        """The tool, where it may be async. Cancelled: it says so in its log and is gone at once."""
        self.log("start")
        self.started.set()
        try:
            for number in range(1, PIECES + 1):
                await sleep(PIECE_SECONDS)
                self.log(piece(number))
                reported = report(piece(number))
                if isinstance(reported, Awaitable):
                    await reported
        except BaseException as error:
            self.log(f"stopped by {type(error).__name__}")
            raise
        else:
            self.log("end")
        finally:
            self.ended.set()
        return RESULT

    def slow_lookup_sync(self, report: Report) -> str:
        """The tool, where it must be sync."""
        self.log("start")
        self.started.set()
        for number in range(1, PIECES + 1):
            time.sleep(PIECE_SECONDS)
            self.log(piece(number))
            report(piece(number))
        self.log("end")
        return RESULT

    def log(self, what: str) -> None:
        """A line of the tool's log: the time, then what happened."""
        with self.tool_log.open("a", encoding="utf-8") as file:
            file.write(f"{time.time():.4f} {what}\n")

    def wait_to_speak(self) -> None:
        """Returns when the user speaks. It blocks: a driver with an event loop calls it in a thread."""
        self.started.wait(60)
        time.sleep(SPEAK_AFTER)
        self.said = time.time()

    def over(self, how: str, history: object, tasks: Mapping[str, Callable[[], bool]] = MappingProxyType({})) -> None:
        """The first run says that it is over: what its history holds, and what may be left, which `report` counts.

        `tasks` are those that are alive now, with what tells whether they still are.
        """
        text = history if isinstance(history, str) else json.dumps(history, default=repr, ensure_ascii=False)
        self.record |= {
            "over": time.time(),
            "how": how,
            "history": {"question": QUESTION in text, "words": WORDS in text, "progress": piece(2) in text},
        }
        threads = [thread for thread in threading.enumerate() if thread.ident not in self._threads]
        self._counting = threading.Timer(SETTLE, self._count, (dict(tasks), threads, _children()))
        self._counting.start()

    def over_on_asyncio(self, how: str, history: object) -> None:
        """The same where tasks are those of asyncio: all but the caller's count."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        names = {f"{getattr(task.get_coro(), '__qualname__', 'task')} ({task.get_name()})": task for task in others}
        self.over(how, history, {name: partial(_unfinished, task) for name, task in names.items()})

    def _count(
        self, tasks: Mapping[str, Callable[[], bool]], threads: Iterable[threading.Thread], processes: frozenset[str]
    ) -> None:
        """Keeps which of these are still there, and not those that a second run has begun."""
        self.record["left"] = {
            "tasks": sorted(name for name, alive in tasks.items() if alive()),
            "threads": sorted(thread.name for thread in threads if _busy(thread)),
            "processes": sorted(processes & _children()),
        }

    async def outlive_tool(self) -> None:
        """Until the tool has ended, if the runs were over before: so its log shows when it did."""
        await asyncio.sleep(2 * SETTLE)  # the wait takes a thread, which must not be counted
        await asyncio.to_thread(self.ended.wait, PIECES * PIECE_SECONDS + 1)

    def report(self, distribution: str, answer: str) -> None:
        """Prints the line: the only one on standard output that begins with a brace."""
        if self._counting is not None:
            self._counting.join()
        self.record |= {"version": version(distribution), "said": self.said, "runs": self.runs, "answer": answer}
        print(json.dumps(self.record), flush=True)


def _unfinished(task: asyncio.Task[Any]) -> bool:
    return not task.done()


def _busy(thread: threading.Thread) -> bool:
    """Whether it is alive and no worker of a pool that waits for work."""
    frame = sys._current_frames().get(thread.ident or 0)
    return thread.is_alive() and frame is not None and frame.f_code.co_name not in _IDLE


def _children() -> frozenset[str]:
    """The ids of the child processes, where the system has a /proc that tells."""
    found: set[str] = set()
    for file in _PROCESSES.glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            # The name, which may hold anything, is in brackets; after it come the state and the parent's id.
            parent = file.read_text(errors="replace").rpartition(")")[2].split()[1]
            if int(parent) == os.getpid():
                found.add(file.parent.name)
    return frozenset(found)
