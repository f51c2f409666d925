"""What memory's answers cost, in long conversations as in short ones, beside a memory that copies.

`python -m benchmarks.memory` prints CPU microseconds of one call, for conversations of so many rounds of six posts with
three attachments each: a role records a note, or shares an entry, and asks memory through its actor, so that something
is new each time. Beside it stands a plain memory that reads all rounds and copies the role's posts on every call.
`first` is what the first call costs of a role that has never asked before.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import trio

from benchmarks._plain_memory import PlainMemory, PlainPost, PlainRound
from callboard.runtime.actor import Actor
from callboard.runtime.attachment import Attachment
from callboard.runtime.context import TurnContext
from callboard.runtime.limits import Limits
from callboard.runtime.memory import Memory, get_role_rounds, get_shared_memory_entries
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.shared_memory import SharedMemoryEntry

NAMES = ("rounds", "entries")
OPTIONS = ConversationOptions(limits=Limits())
ROUTE = ("User Planner", "Planner Worker", "Worker Planner", "Planner Worker", "Worker Planner", "Planner User")


def six_posts(number: int) -> list[Post]:
    """The posts of a round: the planner shares a plan, and both have thoughts and code."""
    texts = (
        ("thought", "a thought of some length " * 4),
        ("reply_type", "python"),
        ("reply_content", "print(1)\n" * 20),
    )
    entry = SharedMemoryEntry.create("plan", "1. do it", "conversation")
    posts = []
    for place, route in enumerate(ROUTE):
        attachments = [Attachment.create(type, text) for type, text in texts]
        if place == 1:
            attachments[-1] = Attachment.create("shared_memory_entry", "the plan", extra=entry)
        send_from, send_to = route.split()
        posts.append(Post.create(f"message {place} of round {number}", send_from, send_to, attachments))
    return posts


def fill(memory: Memory, plain: PlainMemory, rounds: int) -> None:
    """Both hold so many rounds."""
    for number in range(rounds):
        posts = six_posts(number)
        memory.begin_round(f"round-{number}", "Do it.")
        for post in posts:
            memory.record(post)
        memory.end_round("finished")
        plain.rounds.append(PlainRound(f"round-{number}", "Do it.", "finished", [PlainPost.of(post) for post in posts]))


@dataclass
class Costs:
    """CPU microseconds of one call."""

    first: float = 0.0
    rounds: float = 0.0
    entries: float = 0.0


class Planner(Actor):
    """Records a note or shares an entry, and asks memory; so often."""

    name = "Planner"

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self.costs = Costs()

    async def receive(self, post: Post, context: TurnContext) -> Post:
        began = time.process_time()
        await get_role_rounds(context, self.name)
        self.costs.first = (time.process_time() - began) * 1e6
        gc.collect()  # or a call pays, by chance, for looking through what the first one has built
        began = time.process_time()
        for _ in range(self._calls):
            context.record("note")
            await get_role_rounds(context, self.name)
        asked = time.process_time()
        for _ in range(self._calls):
            context.share("plan", "2. do it again")
            await get_shared_memory_entries(context, "plan")
        self.costs.rounds = (asked - began) / self._calls * 1e6
        self.costs.entries = (time.process_time() - asked) / self._calls * 1e6
        return post.reply()


async def through_the_actor(rounds: int, calls: int, plain: PlainMemory) -> Costs:
    """What the calls of a role cost in a conversation of so many rounds; `plain` holds the same afterwards."""
    planner = Planner(calls)
    async with open_conversation(planner, options=OPTIONS) as conversation:
        fill(conversation._memory, plain, rounds)
        await conversation.send("Go on.")
    return planner.costs


def cpu_of(call: Callable[[], object], times: int) -> float:
    """The median of CPU microseconds."""
    taken = []
    for _ in range(times):
        began = time.process_time()
        call()
        taken.append((time.process_time() - began) * 1e6)
    return statistics.median(taken)


def row(size: int, costs: Sequence[Costs], plain: PlainMemory) -> str:
    """What was measured, as a line; medians."""
    cells = [f"{size:8}{statistics.median(one.first for one in costs):12.0f}"]
    calls: Sequence[Callable[[], object]] = (
        partial(plain.role_rounds, "Planner"),
        partial(plain.shared_entries, "plan"),
    )
    for name, call in zip(NAMES, calls, strict=True):
        ours, theirs = statistics.median(getattr(one, name) for one in costs), cpu_of(call, 3)
        cells.append(f"{ours:12.1f}{theirs:14.0f}{theirs / ours:16.0f}")
    return "".join(cells)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table, and what the longest conversation costs more than the shortest, run by run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", default="10,100,1000,5000", help="how long the conversations are")
    parser.add_argument("--calls", type=int, default=200, help="calls of each kind in a run")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args(arguments)
    sizes = [int(size) for size in options.rounds.split(",")]
    plain = {size: PlainMemory() for size in sizes}
    costs: dict[int, list[Costs]] = {size: [] for size in sizes}
    for run in range(options.runs):
        for size in sizes:
            copied = plain[size] if run == 0 else PlainMemory()
            costs[size].append(trio.run(through_the_actor, size, options.calls, copied))
    print(f"{'CPU us of a call':20}{'get_role_rounds':42}get_shared_memory_entries")
    print(f"{'rounds':>8}{'first':>12}" + f"{'callboard':>12}{'plain':>14}{'plain is times':>16}" * 2)
    for size in sizes:
        print(row(size, costs[size], plain[size]), flush=True)
    for name in NAMES:
        pairs = zip(costs[sizes[-1]], costs[sizes[0]], strict=True)
        ratios = sorted(getattr(long, name) / getattr(short, name) for long, short in pairs)
        spread = f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(f"{name}: {statistics.median(ratios):.2f} times as much at {sizes[-1]} rounds as at {sizes[0]} {spread}")


if __name__ == "__main__":
    main()
