"""How soon memory answers while everything else is at work.

`python -m benchmarks.answering` prints how many asks a second are answered, and how long they take on the real clock,
all in one process: one role that asks without a pause; the same while another role of its conversation writes as fast
as it can; 1,000 conversations at once, in each of which one role writes and one asks, once in a second; that while a
journal of all posts, a slow fake, lags behind; and 1,000 in which one role asks without a pause.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import trio

from benchmarks._tree import Moment
from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.event import PostRecorded
from callboard.runtime.limits import Limits
from callboard.runtime.memory import get_role_rounds
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post

OPTIONS = ConversationOptions(limits=Limits())


class SlowJournal:
    """Commits in a thread of its own what was appended, so slowly that it lags."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._gathered: deque[Post] = deque()
        self._over = threading.Event()
        self.committed = 0

    @property
    def lag(self) -> int:
        """The posts that are not committed."""
        return len(self._gathered)

    async def follow(self, conversation: Conversation) -> None:
        """Appends every post of a conversation."""
        async for event in conversation.events():
            if isinstance(event, PostRecorded):
                self._gathered.append(event.post)

    def write(self) -> None:
        """Commits until `stop`: ten posts at a time."""
        while not self._over.wait(self._seconds):
            for _ in range(min(10, len(self._gathered))):
                self._gathered.popleft()
                self.committed += 1

    def stop(self) -> None:
        """Ends `write`."""
        self._over.set()


@dataclass
class Situation:
    """What goes on while memory is asked, and the seconds that each ask took."""

    conversations: int = 1
    pause: float = 0.0
    """Seconds between two asks of a role, and between two pieces of one that writes."""
    writes: bool = False
    journal: SlowJournal | None = None
    all_at_work: trio.Event = field(default_factory=trio.Event)
    taken: list[float] = field(default_factory=list)
    busy: float = 0.0
    """CPU seconds of this process in one of the clock; where nothing pauses, other programs took what is missing."""
    _begun: int = 0

    def begin(self) -> None:
        """Memory is asked in one conversation more."""
        self._begun += 1
        if self._begun == self.conversations:
            self.all_at_work.set()


async def rest(pause: float) -> None:
    """About so long: after equal pauses all would soon ask in the same moment."""
    await trio.sleep(random.uniform(0, 2 * pause))


class Writer(Actor):
    """Streams into its draft, and records a note every ten pieces, until it is ended."""

    name = "Writer"

    def __init__(self, situation: Situation) -> None:
        self._pause = situation.pause

    async def receive(self, post: Post, context: TurnContext) -> Post:
        while True:
            for _ in range(10):
                context.draft.write("a piece of a reply ")
                await rest(self._pause)
            context.record(context.draft.take())


class Asker(Actor):
    """Asks memory for the writer's rounds until it is ended, and notes how long each answer took."""

    name = "Asker"

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self.subordinates = (Writer(situation),) if situation.writes else ()

    async def receive(self, post: Post, context: TurnContext) -> Post:
        if self._situation.writes:
            await context.tell("Writer", "Write.")
        await rest(self._situation.pause)
        self._situation.begin()
        while True:
            await rest(self._situation.pause)
            began = time.perf_counter()
            await get_role_rounds(context, "Writer")
            self._situation.taken.append(time.perf_counter() - began)


async def converse(situation: Situation) -> None:
    """One conversation of a situation, until it is cancelled."""
    async with open_conversation(Asker(situation), options=OPTIONS) as conversation, trio.open_nursery() as nursery:
        if situation.journal is not None:
            nursery.start_soon(situation.journal.follow, conversation)
        conversation.communicate("Ask.")
        await trio.sleep_forever()


async def ask_for(seconds: float, situation: Situation) -> None:
    """Lets the conversations of a situation run so long, after they have all begun."""
    journal = situation.journal
    async with trio.open_nursery() as nursery:
        if journal is not None:
            nursery.start_soon(trio.to_thread.run_sync, journal.write)
        for _ in range(situation.conversations):
            nursery.start_soon(converse, situation)
        await situation.all_at_work.wait()
        situation.taken.clear()
        began = Moment.now()
        await trio.sleep(seconds)
        taken = list(situation.taken)
        spent = Moment.now().since(began)
        if journal is not None:
            journal.stop()
        nursery.cancel_scope.cancel(reason="measured")
    situation.taken[:] = taken
    situation.busy = spent.cpu / spent.clock


def row(name: str, seconds: float, situation: Situation) -> str:
    """What was measured, as a line."""
    taken = sorted(situation.taken)
    median, late, worst = (taken[int(share * (len(taken) - 1))] * 1e3 for share in (0.5, 0.99, 1.0))
    lag = "" if situation.journal is None else f"   {situation.journal.lag} posts are not committed"
    return f"{name:36}{len(taken) / seconds:12,.0f}{median:12.3f}{late:12.3f}{worst:12.3f}{situation.busy:12.2f}{lag}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two asks of a role, about")
    options = parser.parse_args(arguments)
    at_once = partial(Situation, options.conversations)
    situations = {
        "alone": Situation(),
        "while a role works": Situation(writes=True),
        f"{options.conversations:,} conversations": at_once(options.pause, writes=True),
        f"{options.conversations:,}, and a journal lags": at_once(options.pause, writes=True, journal=SlowJournal(0.2)),
        f"{options.conversations:,}, without a pause": at_once(),
    }
    print(f"{'':36}{'asks a s':>12}{'p50 ms':>12}{'p99 ms':>12}{'worst ms':>12}{'busy':>12}")
    for name, situation in situations.items():
        trio.run(ask_for, options.seconds, situation)
        print(row(name, options.seconds, situation), flush=True)


if __name__ == "__main__":
    main()
