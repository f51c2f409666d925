"""What a post costs: one hop, and a round of four posts, beside the same over bare trio memory channels.

`python -m benchmarks.hop` prints CPU microseconds and the ratio of each pair, measured in turn in one process.
Full: roles with mailboxes, ids, marks, cancel scopes, context variables, every post recorded in memory, and one
observer that reads all events. Bare: tasks that pass values over memory channels and do nothing else; once the same
posts, with their ids and times, and once the smallest dataclass that could do.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import trio

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.limits import Limits
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post

Measure = Callable[[int], Awaitable[float]]
_numbers = itertools.count()


OPTIONS = ConversationOptions(limits=Limits())
"""A round of the benchmark has more answers than a conversation's should."""


class Passed(Protocol):
    """What the bare tasks read of what they pass."""

    @property
    def send_from(self) -> str:
        """The sender's name."""


Make = Callable[[str, str], Passed]


@dataclass(slots=True)
class SmallPost:
    """The smallest value that could do: a new one for each hop, as a runtime would make."""

    send_from: str
    send_to: str
    message: str = "hello"
    id: str = ""
    attachment_list: list[object] = field(default_factory=list)


def small_post(send_from: str, send_to: str) -> SmallPost:
    """A small value with an id of its own."""
    return SmallPost(send_from, send_to, "hello", f"post-{next(_numbers)}")


def same_post(send_from: str, send_to: str) -> Post:
    """What callboard passes."""
    return Post.create("hello", send_from, send_to)


class Pinger(Actor):
    """Asks its subordinate as often as its post says."""

    name = "Pinger"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        started = time.process_time()
        for _ in range(int(post.message)):
            await context.ask("Answerer", "hello")
        return post.reply(str(time.process_time() - started))


class Answerer(Actor):
    """Answers at once."""

    name = "Answerer"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply("hello")


class Planner(Actor):
    """Asks one subordinate, then answers: a round of four posts."""

    name = "Planner"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply((await context.ask("Answerer", "hello")).message)


async def observe(conversation: Conversation, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Reads every event."""
    events = conversation.events()
    task_status.started()
    async for _ in events:
        pass


def with_subordinate(actor: Actor) -> Actor:
    """The actor with an Answerer under it."""
    actor.subordinates = (Answerer(),)
    return actor


async def full_hops(count: int) -> float:
    """CPU seconds of `count` hops, there and back being two."""
    async with (
        open_conversation(with_subordinate(Pinger()), options=OPTIONS) as conversation,
        trio.open_nursery() as nursery,
    ):
        await nursery.start(observe, conversation)
        seconds = float((await conversation.send(str(count // 2))).message)
        nursery.cancel_scope.cancel()
    return seconds


async def full_rounds(count: int) -> float:
    """CPU seconds of `count` rounds of four posts."""
    async with (
        open_conversation(with_subordinate(Planner()), options=OPTIONS) as conversation,
        trio.open_nursery() as nursery,
    ):
        await nursery.start(observe, conversation)
        started = time.process_time()
        for _ in range(count):
            await conversation.send("hello")
        seconds = time.process_time() - started
        nursery.cancel_scope.cancel()
    return seconds


async def bare_hops(make: Make, count: int) -> float:
    """The same over memory channels."""
    to_answerer, answerer_in = trio.open_memory_channel[Passed](16)
    to_pinger, pinger_in = trio.open_memory_channel[Passed](16)

    async def answer() -> None:
        async for _ in answerer_in:
            await to_pinger.send(make("Answerer", "Pinger"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        started = time.process_time()
        for _ in range(count // 2):
            await to_answerer.send(make("Pinger", "Answerer"))
            await pinger_in.receive()
        seconds = time.process_time() - started
        nursery.cancel_scope.cancel()
    return seconds


async def bare_rounds(make: Make, count: int) -> float:
    """User to planner to answerer to planner to user, over memory channels."""
    to_planner, planner_in = trio.open_memory_channel[Passed](16)
    to_answerer, answerer_in = trio.open_memory_channel[Passed](16)
    to_user, user_in = trio.open_memory_channel[Passed](16)

    async def plan() -> None:
        async for post in planner_in:
            if post.send_from == "User":
                await to_answerer.send(make("Planner", "Answerer"))
            else:
                await to_user.send(make("Planner", "User"))

    async def answer() -> None:
        async for _ in answerer_in:
            await to_planner.send(make("Answerer", "Planner"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(plan)
        nursery.start_soon(answer)
        started = time.process_time()
        for _ in range(count):
            await to_planner.send(make("User", "Planner"))
            await user_in.receive()
        seconds = time.process_time() - started
        nursery.cancel_scope.cancel()
    return seconds


def compare(name: str, full: Measure, bare: Callable[[Make, int], Awaitable[float]], count: int, runs: int) -> None:
    """Runs the three in turn and prints the medians, and for each bare one the median of the ratios run by run."""
    measures: list[Measure] = [full, partial(bare, same_post), partial(bare, small_post)]
    figures = [[trio.run(measure, count) / count * 1e6 for measure in measures] for _ in range(runs + 1)]
    ours, *others = zip(*figures[1:], strict=True)  # the first warms up
    cells = [f"{statistics.median(ours):8.1f} us"]
    for theirs in others:
        ratios = sorted(one / other for one, other in zip(ours, theirs, strict=True))
        spread = f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
        cells.append(f"{statistics.median(theirs):8.1f} us, ratio {statistics.median(ratios):.2f} {spread}")
    print(f"{name:22}" + "".join(f"{cell:<38}" for cell in cells).rstrip(), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="hops or rounds in a run")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args(arguments)
    print(f"{'CPU time':22}{'callboard':38}{'bare trio, the same posts':38}bare trio, a small dataclass")
    compare("hop", full_hops, bare_hops, options.count, options.runs)
    compare("round of four posts", full_rounds, bare_rounds, options.count // 2, options.runs)


if __name__ == "__main__":
    main()
