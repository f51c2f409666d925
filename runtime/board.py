"""Board: the conversations of one service, under one nursery, found by their ids."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from types import TracebackType

import trio

from .actor import Actor
from .conversation import Conversation
from .errors import BoardClosed, DuplicateName
from .ids import current_ids
from .nursery import open_nursery
from .opening import open_conversation
from .options import ConversationOptions


class Board:
    """`async with Board(root, *others) as board`: every conversation gets the same actors and options.

    Leaving the block closes the conversations that were started, waits for their end, and closes those that callers
    hold. A conversation's own failure leaves the block of whoever opened it; of one that was started, the board's.
    """

    def __init__(self, root: Actor, *others: Actor, options: ConversationOptions | None = None) -> None:
        self._actors = (root, *others)
        self._options = options or ConversationOptions()
        self._conversations: dict[str, Conversation | None] = {}
        """By id; None for one that is being opened."""
        self._started: dict[str, _Started] = {}
        self._manager: AbstractAsyncContextManager[trio.Nursery] | None = None
        self._nursery: trio.Nursery | None = None

    async def __aenter__(self) -> Board:
        """Opens the nursery. Raises BoardClosed if the board was used before."""
        if self._manager is not None:
            raise BoardClosed("a board is used for one block only")
        self._manager = open_nursery()
        self._nursery = await self._manager.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        """Closes all conversations; those that were started have ended when this returns."""
        assert self._manager is not None and self._nursery is not None, "left without having been entered"
        nursery, self._nursery = self._nursery, None
        for conversation in self._conversations.values():
            if conversation is not None:
                conversation.begin_closing()
        nursery.cancel_scope.cancel(reason="the board is closed")
        return await self._manager.__aexit__(kind, error, traceback)

    def open_conversation(self, id: str | None = None) -> AbstractAsyncContextManager[Conversation]:
        """A conversation that lives in the caller's block. Raises BoardClosed, and DuplicateName for an id in use."""
        return self._open(self._options_for(id))

    async def start_conversation(self, id: str | None = None) -> Conversation:
        """A conversation that lives in the board's block until `close(id)`.

        Cancelled: none was started. Raises BoardClosed, and DuplicateName for an id in use.
        """
        options = self._options_for(id)
        assert self._nursery is not None, "an open board has a nursery"
        conversation: Conversation = await self._nursery.start(partial(self._keep, options))
        return conversation

    def find(self, id: str) -> Conversation | None:
        """The conversation with that id; None if there is none, or it has ended."""
        return self._conversations.get(id)

    async def close(self, id: str) -> None:
        """Ends a conversation that was started, and waits until nothing of it is alive. Safe to repeat.

        One that a caller holds is closed and lives until that block is left. Cancelled: it ends all the same.
        """
        await trio.lowlevel.checkpoint()
        conversation = self._conversations.get(id)
        if conversation is not None:
            conversation.begin_closing()
        started = self._started.get(id)
        if started is not None:
            started.scope.cancel(reason="closed")
            await started.ended.wait()

    def __len__(self) -> int:
        return len(self._conversations)

    def __repr__(self) -> str:
        state = "open" if self._nursery is not None else "closed"
        return f"<Board of {self._actors[0].name}, {state}, {len(self._conversations)} conversations>"

    def _options_for(self, id: str | None) -> ConversationOptions:
        if self._nursery is None:
            raise BoardClosed
        ids = self._options.ids or current_ids.get()
        return replace(self._options, id=id or ids.create("conv"))

    @asynccontextmanager
    async def _open(self, options: ConversationOptions) -> AsyncIterator[Conversation]:
        id = options.id
        assert id is not None, "the board gives every conversation an id"
        if self._nursery is None:
            raise BoardClosed
        if id in self._conversations:
            raise DuplicateName(id, "an open conversation", "a new one")
        self._conversations[id] = None
        try:
            async with open_conversation(*self._actors, options=options) as conversation:
                self._conversations[id] = conversation
                yield conversation
        finally:
            del self._conversations[id]

    async def _keep(
        self, options: ConversationOptions, *, task_status: trio.TaskStatus[Conversation] = trio.TASK_STATUS_IGNORED
    ) -> None:
        started = _Started()
        try:
            with started.scope:
                async with self._open(options) as conversation:
                    self._started[conversation.id] = started
                    task_status.started(conversation)
                    await trio.sleep_forever()
        finally:
            if options.id is not None and self._started.get(options.id) is started:
                del self._started[options.id]
            started.ended.set()


class _Started:
    """What ends a conversation that lives in the board's block."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
