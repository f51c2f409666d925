"""Makes docs/timeline.svg: `python docs/make_timeline.py`. Three roles work, and the user changes the question.

It runs on the virtual clock with one seed, so it makes the same picture each time; a test holds the file to that.
"""

from __future__ import annotations

from collections.abc import AsyncIterable
from functools import partial
from pathlib import Path

import trio

from callboard.runtime import Actor, Post, TurnContext, open_conversation
from callboard.runtime.event import Event
from callboard.runtime.testing import run_seeded
from callboard.service.timeline import draw_timeline

PATH = Path(__file__).with_name("timeline.svg")
TITLE = "Editor asks Researcher, who asks Collector. The user speaks: both are cut, what Collector has read is kept."
ROWS = {"2024": ("Alder: 3 late", "Birch: 16 late"), "2025": ("Alder: 11 late", "Birch: 3 late")}


def task_of(post: Post, context: TurnContext) -> str:
    """What a role works on: what it was asked, and what the user has said to it since."""
    return " ".join([post.message, *(words.message for words in context.user_words)])


class Collector(Actor):
    """Reads the rows of the years it is asked for."""

    name = "Collector"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """All rows of these years; what it reads grows in the draft, so that a cut loses no row."""
        for year, rows in ROWS.items():
            if year in post.message:
                for row in rows:
                    await trio.sleep(0.7)
                    context.draft.write(f"{year}, {row}\n")
        return post.reply(context.draft.take())


class Researcher(Actor):
    """Has the rows of the years in question collected."""

    name = "Researcher"
    subordinates = (Collector(),)

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """The supplier that is late least often."""
        await trio.sleep(0.5)
        years = "2025" if "2025" in task_of(post, context) else "2024 and 2025"
        found = await context.ask("Collector", f"The rows of {years}.")
        await trio.sleep(0.4)
        late = {row.split()[1]: int(row.split()[2]) for row in found.message.splitlines()}
        best = min(late, key=lambda supplier: late[supplier]).rstrip(":")
        return post.reply(f"In {years}, {best} was late least often.")


class Editor(Actor):
    """Talks with the user."""

    name = "Editor"
    subordinates = (Researcher(),)

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """What the researcher found."""
        await trio.sleep(0.4)
        found = await context.ask("Researcher", post.message)
        await trio.sleep(0.3)
        return post.reply(found.message)


async def follow(events: AsyncIterable[Event], seen: list[tuple[float, Event]]) -> None:
    """Notes each event with its time."""
    async for event in events:
        seen.append((trio.current_time(), event))


async def hold() -> list[tuple[float, Event]]:
    """The events of the conversation."""
    seen: list[tuple[float, Event]] = []
    async with trio.open_nursery() as nursery, open_conversation(Editor()) as conversation:
        nursery.start_soon(partial(follow, conversation.events(), seen))
        conversation.communicate("Which supplier is late least often?")
        await trio.sleep(2.7)
        await conversation.communicate("Only 2025, please.", broadcast_level=2).reply()
    return seen


def make() -> str:
    """The picture."""
    return draw_timeline(run_seeded(hold), TITLE)


if __name__ == "__main__":
    PATH.write_text(make(), encoding="utf-8", newline="\n")
