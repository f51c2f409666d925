"""What the services of tests/test_servers.py have in common: roles that work until words come, and what became of it.

The rule to know: a question is the number of its client, and all is told by that number.
"""

import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from typing import Any

import trio

from callboard.runtime import Actor, Post, TurnContext

PIECE = 1
"""Seconds between two pieces of an answer."""
CLEAN_UP = 0.02
"""Seconds that a worker's clean-up takes, shielded."""


@dataclass
class Tally:
    """Moments of the clock that all processes of a machine share, by the number of the client."""

    begun: dict[str, float] = field(default_factory=dict)
    cut: dict[str, float] = field(default_factory=dict)
    cleaned: dict[str, float] = field(default_factory=dict)
    closed: dict[str, float] = field(default_factory=dict)
    """When nothing of the conversation was alive any more."""
    tasks: int = 0
    """How many tasks there are, at the moment of the question."""
    conversations: int = 0

    def told(self, **now: int) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return asdict(self) | now


tally = Tally()


class Worker(Actor):
    """Writes for ever; with words of the user's it answers at once."""

    name = "Worker"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        if context.user_words:
            return post.reply(" ".join([post.message, *(said.message for said in context.user_words)]))
        tally.begun[post.message] = time.monotonic()
        try:
            while True:
                context.draft.write("more ")
                await trio.sleep(PIECE)
        finally:
            tally.cut[post.message] = time.monotonic()
            with trio.CancelScope(shield=True):
                await trio.sleep(CLEAN_UP)
            tally.cleaned[post.message] = time.monotonic()


class Lead(Actor):
    """Has the worker do it."""

    name = "Lead"
    subordinates = (Worker(),)

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply((await context.ask("Worker", post.message)).message)


async def count_closed(question: str | None = None) -> AsyncIterator[None]:
    """A dependency that is left when those of the endpoint have been left."""
    try:
        yield
    finally:
        if question is not None:
            tally.closed[question] = time.monotonic()


async def count_tasks() -> int:
    """The tasks of the trio that this is called in."""
    return trio.lowlevel.current_statistics().tasks_living
