"""What an idle conversation of three roles holds: memory, tasks and objects, beside the same tasks in bare trio.

`python -m benchmarks.idle` opens conversations on a board, each of which runs one round in which the root asks both its
subordinates, and prints by how much the process has grown for each. Every case runs in processes of its own, in turn.
Waiting: the tasks are parked. Let go: `idle_after` has passed, and they have ended. Bare: a nursery for a conversation,
and five tasks parked on memory channels, three roles, memory and a supervisor; memory keeps the same posts.
The clock is one that jumps while nothing works, so waiting costs no time. Linux only.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import trio
import trio.testing

from benchmarks._tree import OPTIONS
from callboard.runtime.actor import Actor
from callboard.runtime.board import Board
from callboard.runtime.context import TurnContext
from callboard.runtime.memory import get_role_rounds
from callboard.runtime.post import Post

BATCH = 100
"""So many conversations are opened at a time: what a batch needs while it works is the next one's to use again."""
BASELINE = "bare trio"
SUBORDINATES = ("Searcher", "Writer")

Open = Callable[[int], Awaitable[None]]
"""Opens so many conversations, each of which has run its round on return."""


class Growth(NamedTuple):
    """For each conversation."""

    kib: float
    """Of resident memory."""
    objects: float
    """Those that the collector knows."""
    tasks: float


class Answerer(Actor):
    """Looks at its rounds and answers."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def receive(self, post: Post, context: TurnContext) -> Post:
        await get_role_rounds(context, self.name)
        return post.reply("hello")


class Root(Actor):
    """Asks both subordinates, one after the other."""

    name = "Root"
    subordinates = tuple(Answerer(name) for name in SUBORDINATES)

    async def receive(self, post: Post, context: TurnContext) -> Post:
        await get_role_rounds(context, self.name)
        for name in SUBORDINATES:
            await context.ask(name, "hello")
        return post.reply("hello")


async def full(count: int, let_go: bool) -> Growth:
    """Of conversations whose tasks are parked, or have been let go."""
    async with Board(Root(), options=OPTIONS) as board:

        async def converse() -> None:
            conversation = await board.start_conversation()
            await conversation.send("hello")

        async def open_some(some: int) -> None:
            async with trio.open_nursery() as nursery:
                for _ in range(some):
                    nursery.start_soon(converse)
            if let_go:
                await trio.sleep(2 * OPTIONS.idle_after + 2)

        return await grown(open_some, count)


async def bare(count: int) -> Growth:
    """Of nurseries whose tasks are parked on memory channels."""
    async with trio.open_nursery() as nursery:

        async def open_some(some: int) -> None:
            async with trio.open_nursery() as starting:
                for _ in range(some):
                    starting.start_soon(nursery.start, BareConversation().run)

        growth = await grown(open_some, count)
        nursery.cancel_scope.cancel()
    return growth


class BareConversation:
    """Five tasks, each with a memory channel, and one for the user."""

    def __init__(self) -> None:
        self._to: dict[str, trio.MemorySendChannel[Post]] = {}
        self._inbox: dict[str, trio.MemoryReceiveChannel[Post]] = {}
        for name in ("User", "Root", *SUBORDINATES, "memory", "supervisor"):
            self._to[name], self._inbox[name] = trio.open_memory_channel[Post](OPTIONS.mailbox)
        self._history: list[Post] = []

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Started once it has run its round, then parked until it is cancelled."""
        async with trio.open_nursery() as nursery:
            for task in (self._remember, self._supervise, self._plan):
                nursery.start_soon(task)
            for name in SUBORDINATES:
                nursery.start_soon(self._answer, name)
            await self._pass_on(Post.create("hello", "User", "Root"))
            await self._inbox["User"].receive()
            task_status.started()
            await trio.sleep_forever()

    async def _pass_on(self, post: Post) -> None:
        await self._to["memory"].send(post)
        await self._to[post.send_to].send(post)

    async def _remember(self) -> None:
        async for post in self._inbox["memory"]:
            self._history.append(post)

    async def _supervise(self) -> None:
        async for _ in self._inbox["supervisor"]:
            raise AssertionError("nobody asks the supervisor")

    async def _answer(self, name: str) -> None:
        async for post in self._inbox[name]:
            await self._pass_on(post.reply("hello"))

    async def _plan(self) -> None:
        async for post in self._inbox["Root"]:
            for name in SUBORDINATES:
                await self._pass_on(Post.create("hello", "Root", name))
                await self._inbox["Root"].receive()
            await self._pass_on(post.reply("hello"))


async def grown(open_some: Open, count: int) -> Growth:
    """By how much the process is larger for each of `count` conversations."""
    await open_some(min(BATCH, count))  # what is made once, such as caches, and is no conversation's
    before = await _size()
    left = count
    while left:
        some = min(BATCH, left)
        await open_some(some)
        left -= some
    after = await _size()
    return Growth(*((late - early) / count for early, late in zip(before, after, strict=True)))


async def _size() -> Growth:
    await trio.testing.wait_all_tasks_blocked()
    gc.collect()
    return Growth(_resident_kib(), len(gc.get_objects()), trio.lowlevel.current_statistics().tasks_living)


def _resident_kib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


CASES: dict[str, Callable[[int], Awaitable[Growth]]] = {
    BASELINE: bare,
    "callboard, waiting": lambda count: full(count, let_go=False),
    "callboard, let go": lambda count: full(count, let_go=True),
}


def measure(case: str, count: int) -> Growth:
    """One case, in this process."""
    return trio.run(CASES[case], count, clock=trio.testing.MockClock(autojump_threshold=0))


def measure_apart(case: str, count: int) -> Growth:
    """One case, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.idle", "--conversations", str(count), "--case", case]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, stdout=subprocess.PIPE, check=True)
    return Growth(**json.loads(done.stdout))


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON object a line, in place of the table")
    parser.add_argument("--case", choices=CASES, help="this one alone, in this process, as one JSON object")
    options = parser.parse_args(arguments)
    if options.case:
        print(json.dumps(measure(options.case, options.conversations)._asdict()))
        return
    runs = [{case: measure_apart(case, options.conversations) for case in CASES} for _ in range(options.runs)]
    if not options.json:
        print(f"{'a conversation':22}{'memory':>12}{'tasks':>8}{'objects':>9}   ratio of memory to bare trio")
    for case in CASES:
        growth = Growth(*map(statistics.median, zip(*(run[case] for run in runs), strict=True)))
        ratio = statistics.median(run[case].kib / run[BASELINE].kib for run in runs)
        if options.json:
            print(json.dumps({"case": case, **growth._asdict(), "ratio": ratio}))
        else:
            print(f"{case:22}{growth.kib:8.1f} KiB{growth.tasks:8.1f}{growth.objects:9.0f}   {ratio:.2f}")
    if not options.json:
        print("aim: at most 1.5 times bare trio")


if __name__ == "__main__":
    main()
