"""The demo: three roles work on a question, and the user changes it in the middle.

Editor asks Researcher, Researcher asks Collector, Collector reads a small table row by row. Whenever the words come,
the answer is computed from the question and the words: while rows are read, before, or after the answer.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import trio

from callboard.narrator import Narrator, Write
from callboard.runtime import Actor, Post, Receipt, Transcript, TurnContext, get_role_rounds, open_conversation
from callboard.runtime.receipt import Stopped

QUESTION = "Which supplier is late least often?"
WORDS = "Count only 2025."
WORDS_AFTER = 6
"""How many rows have been read when the user speaks."""
PAUSE = 0.2
"""Seconds for which reading one row takes."""

TABLE = """\
Alder 2024-H1: 52 deliveries, 2 late
Alder 2024-H2: 48 deliveries, 1 late
Alder 2025-H1: 50 deliveries, 6 late
Alder 2025-H2: 44 deliveries, 5 late
Birch 2024-H1: 61 deliveries, 9 late
Birch 2024-H2: 57 deliveries, 7 late
Birch 2025-H1: 63 deliveries, 2 late
Birch 2025-H2: 66 deliveries, 1 late
Cedar 2024-H1: 35 deliveries, 2 late
Cedar 2024-H2: 31 deliveries, 2 late
Cedar 2025-H1: 38 deliveries, 2 late
Cedar 2025-H2: 40 deliveries, 3 late
""".splitlines()
ROW = re.compile(r"(?P<supplier>\w+) (?P<year>\d{4})-H\d: (?P<deliveries>\d+) deliveries, (?P<late>\d+) late")


def rows_of(text: str) -> list[re.Match[str]]:
    """The rows of the table that stand in a text."""
    return list(ROW.finditer(text))


def years_of(text: str) -> list[str]:
    """The years that a text names; without one, all years of the table."""
    named = re.findall(r"\b20\d\d\b", text)
    return sorted(set(named or [row["year"] for row in rows_of("\n".join(TABLE))]))


def task_of(post: Post, context: TurnContext) -> str:
    """What a role works on: what it was asked, and what the user has said to it since."""
    return " ".join([post.message, *(words.message for words in context.user_words)])


class Collector(Actor):
    """Reads the rows of the years it is asked for, except those it has in memory from interrupted work."""

    name = "Collector"

    def __init__(self, pause: float) -> None:
        self.pause = pause

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """All rows of these years. What it reads grows in the draft, so that a cut loses no row."""
        years = years_of(task_of(post, context))
        rounds = await get_role_rounds(context, self.name)
        mine = [known.message for round_ in rounds for known in round_.post_list if known.send_from == self.name]
        read = {row.group() for row in rows_of("\n".join(mine))}
        wanted = [row.group() for row in rows_of("\n".join(TABLE)) if row["year"] in years]
        for row in wanted:
            if row not in read:
                await trio.sleep(self.pause)
                context.draft.write(row + "\n")
        context.record(context.draft.take())
        return post.reply("\n".join(wanted))


class Researcher(Actor):
    """Finds the years in question, has their rows collected, and works out who is late least often."""

    name = "Researcher"

    def __init__(self, *subordinates: Actor) -> None:
        self.subordinates = subordinates

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """The supplier with the smallest share of late deliveries, and the figures for that."""
        years = " and ".join(years_of(task_of(post, context)))
        collected = await context.ask("Collector", f"Rows of {years}, please.")
        deliveries: Counter[str] = Counter()
        late: Counter[str] = Counter()
        for row in rows_of(collected.message):
            deliveries[row["supplier"]] += int(row["deliveries"])
            late[row["supplier"]] += int(row["late"])
        best = min(deliveries, key=lambda supplier: late[supplier] / deliveries[supplier])
        return post.reply(f"{best}: {late[best]} late of {deliveries[best]} in {years}.")


class Editor(Actor):
    """Talks with the user and leaves the work to the researcher."""

    name = "Editor"

    def __init__(self, *subordinates: Actor) -> None:
        self.subordinates = subordinates

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """The researcher's finding."""
        found = await context.ask("Researcher", task_of(post, context))
        return post.reply(f"Late least often is {found.message}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the conversation left."""

    answer: Post
    receipt: Receipt
    stopped: Stopped
    seen: bool
    transcript: Transcript


async def run_demo(write: Write, *, pause: float = PAUSE, words_after: int = WORDS_AFTER) -> Outcome:
    """Holds the conversation and writes what happens, line by line, while it happens."""
    narrator = Narrator(write)
    due = trio.Event()
    editor = Editor(Researcher(Collector(pause)))
    async with trio.open_nursery() as nursery, open_conversation(editor) as conversation:
        nursery.start_soon(narrator.follow, conversation.events(), words_after, due)
        conversation.communicate(QUESTION)
        await due.wait()
        receipt = conversation.communicate(WORDS, broadcast_level=2)
        answer = await receipt.reply()
        stopped, seen = await receipt.stopped(), await receipt.seen()
        return Outcome(answer, receipt, stopped, seen, conversation.transcript())
