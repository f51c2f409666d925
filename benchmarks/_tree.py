"""A tree of roles that call a model: as actors of a conversation, and as bare trio tasks in nested nurseries.

Both make the same calls to the same model, so what differs between them is the runtime. A role calls the model, then
has all its subordinates work at once and waits for them; a leaf is still reading the model's reply when all are at
work, and reads until it is cancelled. Work begun anew calls the model once and ends.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

import trio

from callboard.runtime.actor import Actor
from callboard.runtime.chat_model import ChatRequest, Delta, EndDelta, Message, TextDelta
from callboard.runtime.context import TurnContext
from callboard.runtime.limits import Limits
from callboard.runtime.memory import get_role_rounds
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post

OPTIONS = ConversationOptions(limits=Limits())
"""Of every conversation that is measured, in `interrupt` and in `idle`."""


class Moment(NamedTuple):
    """Seconds of the real clock and of the processor; or the time between two moments."""

    clock: float
    cpu: float

    @classmethod
    def now(cls) -> Moment:
        """This moment."""
        return cls(time.perf_counter(), time.process_time())

    def since(self, began: Moment) -> Moment:
        """The time from `began` to this."""
        return Moment(self.clock - began.clock, self.cpu - began.cpu)


@dataclass(frozen=True)
class Tree:
    """A role and what works under it."""

    name: str
    below: tuple[Tree, ...] = ()

    def leaves(self) -> Iterator[str]:
        """The names of those that have nobody under them."""
        if not self.below:
            yield self.name
        for one in self.below:
            yield from one.leaves()


def chain(depth: int) -> Tree:
    """So many roles, each under the one before."""
    tree = Tree(f"Role{depth}")
    for level in reversed(range(1, depth)):
        tree = Tree(f"Role{level}", (tree,))
    return tree


def fan(leaves: int) -> Tree:
    """One superior with so many subordinates."""
    return Tree("Superior", tuple(Tree(f"Leaf{number}") for number in range(leaves)))


class StreamingModel:
    """Replies in pieces. To each leaf of a tree its first reply never ends; once all read, it notes who calls it."""

    def __init__(self, tree: Tree) -> None:
        self._missing = set(tree.leaves())
        self.at_work = trio.Event()
        """Set when all leaves read."""
        self.called_at = Moment(0.0, 0.0)
        """When the first call after that was made."""
        self.told = ""
        """What that call said."""

    @property
    def name(self) -> str:
        """The model's name."""
        return "streaming"

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Delta]]:
        """The reply to a request. Cancelled: it ends at once."""
        if self.at_work.is_set() and not self.told:
            self.called_at = Moment.now()
            self.told = request.messages[-1].content
        yield self._pieces(request.role)

    async def _pieces(self, role: str) -> AsyncIterator[Delta]:
        for piece in ("Half ", "of a ", "reply. "):
            await trio.lowlevel.checkpoint()
            yield TextDelta(piece)
        if role in self._missing:
            self._missing.remove(role)
            if not self._missing:
                self.at_work.set()
            await trio.sleep_forever()
        yield EndDelta("stop")


async def read(model: StreamingModel, role: str, told: str, write: Callable[[str], object]) -> None:
    """One model call, its text written piece by piece."""
    async with model.stream(ChatRequest(role, (Message("user", told),))) as deltas:
        async for delta in deltas:
            if isinstance(delta, TextDelta):
                write(delta.text)


class Worker(Actor):
    """A role of the tree. Of what memory holds for it, it tells the model the newest post alone."""

    def __init__(self, tree: Tree, model: StreamingModel) -> None:
        self.name = tree.name
        self.subordinates = tuple(Worker(one, model) for one in tree.below)
        self._model = model

    async def receive(self, post: Post, context: TurnContext) -> Post:
        rounds = await get_role_rounds(context, self.name)
        await read(self._model, self.name, rounds[-1].post_list[-1].message, context.draft.write)
        if context.attempt == 1:
            await self._ask_all(context)
        return post.reply(context.draft.take())

    async def _ask_all(self, context: TurnContext) -> None:
        if len(self.subordinates) == 1:
            await context.ask(self.subordinates[0].name, "Work.")
            return
        async with trio.open_nursery() as nursery:
            for one in self.subordinates:
                nursery.start_soon(context.ask, one.name, "Work.")


async def work(tree: Tree, model: StreamingModel, told: str) -> None:
    """The same as a bare task, with a nursery for what is under it."""
    written: list[str] = []
    await read(model, tree.name, told, written.append)
    async with trio.open_nursery() as nursery:
        for one in tree.below:
            nursery.start_soon(work, one, model, "Work.")
