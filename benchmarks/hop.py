"""What a post costs: one hop, and a round of four posts, beside the same over bare trio memory channels.

`python -m benchmarks.hop` prints CPU microseconds and the ratio of each pair, measured in turn in one process.
Full: roles with mailboxes, ids, marks, cancel scopes, context variables, every post recorded in memory, and one
observer that reads all events. Bare: tasks that pass a small dataclass over memory channels and do nothing else.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import trio

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post

Measure = Callable[[int], Awaitable[float]]
_numbers = itertools.count()


@dataclass(slots=True)
class BarePost:
    """What the bare tasks pass: a new one for each hop, as a runtime would make."""

    send_from: str
    send_to: str
    message: str = "hello"
    id: str = ""
    attachment_list: list[object] = field(default_factory=list)


def bare_post(send_from: str, send_to: str) -> BarePost:
    """A post with an id of its own."""
    return BarePost(send_from, send_to, "hello", f"post-{next(_numbers)}")


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
    async with open_conversation(with_subordinate(Pinger())) as conversation, trio.open_nursery() as nursery:
        await nursery.start(observe, conversation)
        seconds = float((await conversation.send(str(count // 2))).message)
        nursery.cancel_scope.cancel()
    return seconds


async def full_rounds(count: int) -> float:
    """CPU seconds of `count` rounds of four posts."""
    async with open_conversation(with_subordinate(Planner())) as conversation, trio.open_nursery() as nursery:
        await nursery.start(observe, conversation)
        started = time.process_time()
        for _ in range(count):
            await conversation.send("hello")
        seconds = time.process_time() - started
        nursery.cancel_scope.cancel()
    return seconds


async def bare_hops(count: int) -> float:
    """The same over memory channels."""
    to_answerer, answerer_in = trio.open_memory_channel[BarePost](16)
    to_pinger, pinger_in = trio.open_memory_channel[BarePost](16)

    async def answer() -> None:
        async for _ in answerer_in:
            await to_pinger.send(bare_post("Answerer", "Pinger"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        started = time.process_time()
        for _ in range(count // 2):
            await to_answerer.send(bare_post("Pinger", "Answerer"))
            await pinger_in.receive()
        seconds = time.process_time() - started
        nursery.cancel_scope.cancel()
    return seconds


async def bare_rounds(count: int) -> float:
    """User to planner to answerer to planner to user, over memory channels."""
    to_planner, planner_in = trio.open_memory_channel[BarePost](16)
    to_answerer, answerer_in = trio.open_memory_channel[BarePost](16)
    to_user, user_in = trio.open_memory_channel[BarePost](16)

    async def plan() -> None:
        async for post in planner_in:
            if post.send_from == "User":
                await to_answerer.send(bare_post("Planner", "Answerer"))
            else:
                await to_user.send(bare_post("Planner", "User"))

    async def answer() -> None:
        async for _ in answerer_in:
            await to_planner.send(bare_post("Answerer", "Planner"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(plan)
        nursery.start_soon(answer)
        started = time.process_time()
        for _ in range(count):
            await to_planner.send(bare_post("User", "Planner"))
            await user_in.receive()
        seconds = time.process_time() - started
        nursery.cancel_scope.cancel()
    return seconds


def compare(name: str, full: Measure, bare: Measure, count: int, runs: int) -> None:
    """Runs the two in turn and prints the medians, and the median of the ratios pair by pair."""
    pairs = []
    for _ in range(runs + 1):
        pairs.append((trio.run(full, count) / count * 1e6, trio.run(bare, count) / count * 1e6))
    pairs = pairs[1:]  # the first warms up
    ratios = sorted(one / other for one, other in pairs)
    ours, theirs = (statistics.median(values) for values in zip(*pairs, strict=True))
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
    print(f"{name:24}{ours:8.1f} us{theirs:8.1f} us   ratio {statistics.median(ratios):.2f} ({spread})", flush=True)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="hops or rounds in a run")
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    print(f"{'CPU time':24}{'callboard':>11}{'bare trio':>11}")
    compare("hop", full_hops, bare_hops, arguments.count, arguments.runs)
    compare("round of four posts", full_rounds, bare_rounds, arguments.count // 2, arguments.runs)


if __name__ == "__main__":
    main()
