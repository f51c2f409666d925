"""Watchdog: a thread that notices that trio's loop does not come round, and names the role whose turn blocks it.

The rule to know: it asks the loop a few times a second and reads frames only while the loop is blocked; it stops
nothing. Its time is real time, also where the conversation's clock is a virtual one.
"""

from __future__ import annotations

import logging
import os
import sys
import sysconfig
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import FrameType

import trio

from .attempt import Attempts
from .turn import Turn, current_turn

# How often in `after` seconds the loop is asked; so many times as long at most, a blockage may last unseen.
_BEATS = 5

# Seconds for the thread to end; beyond, its `on_blocked` does not return.
_LEAVING = 2.0

_NOT_THE_USERS = tuple(
    {
        os.path.dirname(__file__) + os.sep,
        os.path.dirname(trio.__file__) + os.sep,
        "<frozen",
        *(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    }
)


@dataclass(frozen=True, slots=True)
class Blockage:
    """Trio's loop, found not to come round."""

    role: str | None
    """Whose turn is at work in it; None if it is no role's."""
    post: str | None
    """The id of the post that this turn works on."""
    seconds: float
    """How long the loop has not answered."""
    where: str
    """File and line at which it was found: the innermost that is no library's and not callboard's, if there is one."""

    def __str__(self) -> str:
        whose = (
            f"{self.role}, at work on {self.post}, blocks" if self.role else "something that is no role's turn blocks"
        )
        return f"{whose} the loop for {self.seconds:.1f} s by now, at {self.where}"


@asynccontextmanager
async def open_watchdog(
    after: float = 1.0, on_blocked: Callable[[Blockage], None] | None = None
) -> AsyncIterator[None]:
    """Watches the loop that enters it until the block is left: all its conversations, and everything beside.

    When the loop has not come round for `after` real seconds, `on_blocked` is called once, in the watchdog's thread,
    while the loop is still blocked; None writes a warning to the logger `callboard`. It is not called again before the
    loop has moved. An error that it raises ends the watch, and is raised when the block is left. Cancelled: the thread
    ends all the same, shielded. Raises ValueError for seconds that are not above 0.
    """
    if not after > 0:
        raise ValueError(f"after is a number of seconds above 0, not {after!r}")
    watch = _Watch(after, on_blocked or _warn)
    watch.start()
    try:
        yield
    finally:
        watch.stop()
        with trio.CancelScope(shield=True, relative_deadline=_LEAVING):
            await trio.to_thread.run_sync(watch.join, abandon_on_cancel=True)
        if watch.error is not None:
            raise watch.error


class _Watch(threading.Thread):
    def __init__(self, after: float, on_blocked: Callable[[Blockage], None]) -> None:
        super().__init__(name="callboard watchdog", daemon=True)
        self.error: Exception | None = None
        self._after = after
        self._on_blocked = on_blocked
        self._loop = trio.lowlevel.current_trio_token()
        self._loop_thread = threading.get_ident()
        self._left = threading.Event()
        self._moved = threading.Event()

    def run(self) -> None:
        try:
            self._watch()
        except trio.RunFinishedError:
            pass
        except Exception as error:
            self.error = error

    def stop(self) -> None:
        self._left.set()
        self._moved.set()

    def _watch(self) -> None:
        while not self._left.wait(self._after / _BEATS):
            self._moved.clear()
            asked = time.monotonic()
            self._loop.run_sync_soon(self._moved.set)
            if self._moved.wait(self._after) or self._left.is_set():
                continue
            frame = sys._current_frames().get(self._loop_thread)
            self._on_blocked(_describe(frame, time.monotonic() - asked))
            self._moved.wait()


def _warn(blockage: Blockage) -> None:
    logging.getLogger("callboard").warning("%s", blockage)


def _describe(frame: FrameType | None, seconds: float) -> Blockage:
    frames = list(_outwards(frame))
    turn = next(filter(None, map(_turn_of, frames)), None)
    users = (one for one in frames if not one.f_code.co_filename.startswith(_NOT_THE_USERS))
    found = next(users, frame)
    where = f"{found.f_code.co_filename}:{found.f_lineno}" if found is not None else "an unknown place"
    if turn is None:
        return Blockage(None, None, seconds, where)
    return Blockage(turn.role, turn.post.id, seconds, where)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _turn_of(frame: FrameType) -> Turn | None:
    """The turn that a frame works on: an attempt's, or in trio's own loop that of the task which it runs."""
    if frame.f_code is Attempts._attempt.__code__:
        turn = frame.f_locals.get("turn")
        return turn if isinstance(turn, Turn) else None
    # A task that a role has started in a nursery of its own has no attempt in its frames.
    task = frame.f_locals.get("task") if frame.f_globals is trio.run.__globals__ else None
    return task.context.get(current_turn) if isinstance(task, trio.lowlevel.Task) else None
