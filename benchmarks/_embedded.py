"""What is measured of a conversation that a program beside trio speaks to, and the role that it speaks to.

`_embedded_tasks` measures it in async programs, `_embedded_threads` in those that block.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import trio

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.event import DraftGrew, Event, EventsDropped
from callboard.runtime.limits import Limits
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post

OPTIONS = ConversationOptions(limits=Limits())
BUFFER = 1_000_000
"""Events for a reader, so that none is dropped."""
TICK = 0.001
"""Seconds between two ticks of the program's own work."""
PIECES = 20
"""That a role writes between two checkpoints."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    sends: int
    events: int
    """Of a reader of one conversation; of many, they share them."""
    conversations: int
    cancels: int
    stall: float
    """Seconds for which a role blocks its thread."""
    busy: float
    """Seconds for which trio is kept busy."""


class Figures(NamedTuple):
    """Of one program; seconds, but for the events."""

    round_trip: float
    """Median of `send` to a role that answers at once."""
    round_trip_p99: float
    events: float
    """A second, read by the program from one conversation."""
    events_of_many: float
    """A second, from all that run at once."""
    cleaned_up: float
    """Median, from the cancellation until the role's clean-up is done."""
    went_on: float
    """Median, until the program goes on after the call that was cancelled."""
    stall: float
    """By how much the program's own work was late at worst while a role blocked its thread."""
    late_p99: float
    """By how much it was late while trio was busy."""


class Clerk(Actor):
    """Answers at once; "write 100", "block 0.5", "work 0.5" and "wait" say what it does before."""

    name = "Clerk"

    def __init__(self) -> None:
        self.at_work = threading.Event()
        """Set once it waits to be cancelled."""
        self.cleaned_up = 0.0
        """When it was done with that, as `time.perf_counter` has it."""

    async def receive(self, post: Post, context: TurnContext) -> Post:
        match post.message.split():
            case ["write", count]:
                for number in range(int(count)):
                    context.draft.write("x")
                    if number % PIECES == 0:
                        await trio.lowlevel.checkpoint()
            case ["block", seconds]:
                time.sleep(float(seconds))  # noqa: ASYNC251 (the mistake that is measured)
            case ["work", seconds]:
                until = time.perf_counter() + float(seconds)
                while time.perf_counter() < until:
                    context.draft.write("x")
                    await trio.lowlevel.checkpoint()
            case ["wait"]:
                try:
                    self.at_work.set()
                    await trio.sleep_forever()
                finally:
                    self.cleaned_up = time.perf_counter()
        return post.reply("hello")


def p99(figures: Sequence[float]) -> float:
    """What ninety-nine of a hundred are not above."""
    return sorted(figures)[round((len(figures) - 1) * 0.99)]


def growth(events: Iterable[Event]) -> int:
    """How many pieces of a draft are among events; none may be missing."""
    count = 0
    for event in events:
        if isinstance(event, EventsDropped):
            raise RuntimeError("the reader was too slow")
        count += isinstance(event, DraftGrew)
    return count
