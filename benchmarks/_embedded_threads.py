"""What is measured of a conversation by a program whose threads block: the same as `_embedded_tasks` does for tasks.

A thread cannot be cancelled: where a task is, another thread stops the round.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Protocol

from benchmarks._embedded import BUFFER, OPTIONS, TICK, Clerk, Figures, Sizes, growth, p99
from callboard.runtime.actor import Actor
from callboard.runtime.errors import RoundStopped
from callboard.runtime.event import Event, RoundEnded
from callboard.runtime.hosts import BlockingHost
from callboard.runtime.post import Post


class Spoken(Protocol):
    """What the measuring needs of a handle of a conversation."""

    def send(self, message: str) -> Post:
        """A round; gives its reply."""
        ...

    def stop(self, reason: str) -> None:
        """Ends the round."""
        ...

    def events(self, buffer: int) -> Iterator[Event]:
        """What happens from now on."""
        ...


Open = Callable[[Actor], AbstractContextManager[Spoken]]


@contextmanager
def in_host() -> Iterator[Open]:
    """A BlockingHost."""
    with BlockingHost() as host:
        yield lambda root: host.open_conversation(root, options=OPTIONS)


def measure(enter: Callable[[], AbstractContextManager[Open]], sizes: Sizes) -> Figures:
    """All of one program of threads."""
    clerk = Clerk()
    with enter() as open_one:
        with open_one(clerk) as conversation:
            trips = sorted([_round_trip(conversation) for _ in range(sizes.sends + 10)][10:])
            events = _events([conversation], sizes.events)
            cuts = [_stop(conversation, clerk) for _ in range(sizes.cancels)]
            stall = max(_lateness(conversation, f"block {sizes.stall}"))
            busy = _lateness(conversation, f"work {sizes.busy}")
        with ExitStack() as stack:
            many = [stack.enter_context(open_one(Clerk())) for _ in range(sizes.conversations)]
            events_of_many = _events(many, sizes.events)
    cleaned_up, went_on = map(statistics.median, zip(*cuts, strict=True))
    return Figures(statistics.median(trips), p99(trips), events, events_of_many, cleaned_up, went_on, stall, p99(busy))


def _round_trip(conversation: Spoken) -> float:
    began = time.perf_counter()
    conversation.send("hello")
    return time.perf_counter() - began


def _events(conversations: Sequence[Spoken], count: int) -> float:
    each = count // len(conversations)

    def read_all(events: Iterator[Event]) -> int:
        seen = []
        for event in events:
            seen.append(event)
            if isinstance(event, RoundEnded):
                break
        return growth(seen)

    with ThreadPoolExecutor(2 * len(conversations)) as threads:
        began = time.perf_counter()
        read = []
        for conversation in conversations:
            read.append(threads.submit(read_all, conversation.events(BUFFER)))
            threads.submit(conversation.send, f"write {each}")
        return sum(one.result() for one in read) / (time.perf_counter() - began)


def _stop(conversation: Spoken, clerk: Clerk) -> tuple[float, float]:
    went_on: list[float] = []
    clerk.at_work.clear()

    def waiting() -> None:
        try:
            conversation.send("wait")
        except RoundStopped:
            went_on.append(time.perf_counter())

    thread = threading.Thread(target=waiting)
    thread.start()
    clerk.at_work.wait()
    time.sleep(2 * TICK)  # until trio's thread sleeps
    began = time.perf_counter()
    conversation.stop("enough")
    thread.join()
    return clerk.cleaned_up - began, went_on[0] - began


def _lateness(conversation: Spoken, message: str) -> list[float]:
    late: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            began = time.perf_counter()
            time.sleep(TICK)
            late.append(time.perf_counter() - began - TICK)

    thread = threading.Thread(target=tick)
    thread.start()
    conversation.send(message)
    done.set()
    thread.join()
    return late
