"""What it costs to read a streamed reply, beside gathering its pieces and reading the JSON at the end.

`python -m benchmarks.replies` prints CPU microseconds per piece of four characters, for replies of several lengths,
each way measured in turn in one process. Read: the members are found, and grow in nobody's draft. Drafted: they grow in
the draft of a role at work, as its attachments and its message, and one reader follows the events. Gathered is
the least that anybody could do, and shows nothing until the end. Libraries that give pieces too are measured where they
are installed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from importlib.util import find_spec
from typing import Any

import trio

from callboard.actors.reply_draft import ReplyDraft
from callboard.prompts.reply_format import MessageReply, members_of
from callboard.prompts.reply_members import Unheard
from callboard.prompts.reply_reader import ReplyReader
from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.event import Event
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.subscription import LINGER

CHARACTERS = 4
IN_A_ROW = 500
SIZES = (2_000, 20_000, 200_000)
LINE = 'frame = load("data/\u00e9t\u00e9.csv")  # it\'s a "quoted" comment\n\tprint(frame.head(3))\n'

Measure = Callable[[Sequence[str], int], Awaitable[float]]


def reply_of(size: int) -> str:
    """A reply of about so many characters, most of them code with quotes, escapes and line ends."""
    code = LINE * max(1, (size - 250) // (len(json.dumps(LINE)) - 2))
    members = {"thought": "The table is to be loaded. " * 4, "reply_type": "python", "reply_content": code}
    return json.dumps({"response": {**members, "send_to": "Planner", "message": "The table is loaded."}})


def pieces_of(text: str) -> list[str]:
    """The text as it is streamed."""
    return [text[at : at + CHARACTERS] for at in range(0, len(text), CHARACTERS)]


async def gathered(pieces: Sequence[str], times: int) -> float:
    """CPU seconds of gathering all, and reading it at the end."""
    started = time.process_time()
    for _ in range(times):
        text = []
        for piece in pieces:
            text.append(piece)
        json.loads("".join(text))
    return time.process_time() - started


async def read(pieces: Sequence[str], times: int) -> float:
    """CPU seconds of finding the members."""
    started = time.process_time()
    for _ in range(times):
        reader = ReplyReader(members_of(MessageReply), Unheard())
        for piece in pieces:
            reader.feed(piece)
        assert reader.close().complete
    return time.process_time() - started


class Reading(Actor):
    """Has its model's replies grow in its draft; others run after every 500 pieces."""

    name = "Reading"

    def __init__(self, pieces: Sequence[str], times: int) -> None:
        self.pieces = pieces
        self.times = times
        self.seconds = 0.0

    async def receive(self, post: Post, context: TurnContext) -> Post:
        async with context.step():
            for _ in range(self.times):
                said = ReplyDraft(context, MessageReply, lambda kind, value: False)
                for at in range(0, len(self.pieces), IN_A_ROW):
                    started = time.process_time()
                    for piece in self.pieces[at : at + IN_A_ROW]:
                        said.feed(piece)
                    self.seconds += time.process_time() - started
                    await trio.sleep(LINGER)
                self.finish(said, context)
        return post.reply("Read.")

    def finish(self, said: ReplyDraft, context: TurnContext) -> None:
        """Takes the reply out of the draft."""
        started = time.process_time()
        reply, problem = said.finish((), cut_off=False)
        context.draft.take()
        context.draft.take_attachments()
        self.seconds += time.process_time() - started
        assert reply is not None, problem


async def follow(events: AsyncIterable[Event]) -> None:
    """Reads all events."""
    async for _ in events:
        pass


async def drafted(pieces: Sequence[str], times: int) -> float:
    """CPU seconds of the same with a draft and one reader of events; what the reader itself does is not counted."""
    actor = Reading(pieces, times)
    async with trio.open_nursery() as nursery, open_conversation(actor) as conversation:
        nursery.start_soon(follow, conversation.events())
        await conversation.send("Go.")
    return actor.seconds


def jsonriver(module: Any) -> Measure:
    """CPU seconds of the library of that name."""

    async def measure(pieces: Sequence[str], times: int) -> float:
        async def stream() -> Any:
            for piece in pieces:
                yield piece

        started = time.process_time()
        for _ in range(times):
            async for _ in module.parse(stream()):
                pass
        return time.process_time() - started

    return measure


def measures() -> dict[str, Measure]:
    """What is compared, the baseline first."""
    found: dict[str, Measure] = {"gathered": gathered, "read": read, "drafted": drafted}
    if find_spec("jsonriver"):
        found["jsonriver"] = jsonriver(__import__("jsonriver"))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="characters of the replies")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args(arguments)
    ways, first = measures(), dict[str, float]()
    print(f"{'us of CPU per piece':22}" + "".join(f"{name:>26}" for name in ways))
    sizes = [int(size) for size in options.sizes.split(",")]
    for size in sizes:
        pieces = pieces_of(reply_of(size))
        times = max(1, max(sizes) // size)  # so that a short reply is measured for as long as a long one
        runs = [
            [trio.run(way, pieces, times) / times / len(pieces) * 1e6 for way in ways.values()]
            for _ in range(options.runs + 1)
        ]
        cells = []
        for name, figures in zip(ways, zip(*runs[1:], strict=True), strict=True):  # the first run warms up
            cost = statistics.median(figures)
            cells.append(f"{cost:10.2f}, {cost / first.setdefault(name, cost):.2f} of the first")
        print(f"{size:>10} characters " + "".join(f"{cell:>26}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
