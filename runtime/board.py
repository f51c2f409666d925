"""Board: the conversations of one service, under one nursery, found by their ids."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from types import TracebackType

import trio

from .actor import Actor
from .admission import Admission, Place
from .conversation import Conversation
from .draining import Draining, DrainReport
from .errors import BoardClosed, DuplicateName
from .ids import current_ids
from .nursery import open_nursery
from .opening import open_conversation
from .options import ConversationOptions


class Board:
    """`async with Board(root, *others) as board`: every conversation gets the same actors and options.

    With `limit` it holds so many conversations at once, those that are still ending included, and no more: BoardFull.
    `tenant_limit` is the same for each tenant. Those with the patience to wait for room are let in tenant by tenant.
    Leaving the block closes the conversations that were started, waits for their end, and closes those that callers
    hold. A conversation's own failure leaves the block of whoever opened it; of one that was started, the board's.

    `alongside` are functions of trio's that run as tasks beside the conversations, such as a refresh: started in
    their order, cancelled when the block is left, after the conversations have begun to close. One may return; what one
    raises leaves the board's block, and closes all.
    """

    def __init__(
        self,
        root: Actor,
        *others: Actor,
        options: ConversationOptions | None = None,
        limit: int | None = None,
        tenant_limit: int | None = None,
        alongside: Iterable[Callable[[], Awaitable[object]]] = (),
    ) -> None:
        self._actors = (root, *others)
        self._alongside = tuple(alongside)
        self._options = options or ConversationOptions()
        self._admission = Admission(limit, tenant_limit)
        self._draining: Draining | None = None
        self._conversations: dict[str, Conversation | None] = {}
        """By id; None for one that is being opened."""
        self._started: dict[str, _Started] = {}
        self._manager: AbstractAsyncContextManager[trio.Nursery] | None = None
        self._nursery: trio.Nursery | None = None

    async def __aenter__(self) -> Board:
        """Opens the nursery, and starts what runs alongside. Raises BoardClosed if the board was used before."""
        if self._manager is not None:
            raise BoardClosed("a board is used for one block only")
        self._manager = open_nursery()
        self._nursery = await self._manager.__aenter__()
        for work in self._alongside:
            self._nursery.start_soon(work)
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
        self._admission.close()
        nursery.cancel_scope.cancel(reason="the board is closed")
        return await self._manager.__aexit__(kind, error, traceback)

    def open_conversation(
        self, id: str | None = None, *, tenant: str = "", patience: float = 0.0
    ) -> AbstractAsyncContextManager[Conversation]:
        """A conversation that lives in the caller's block.

        On a full board entering it waits `patience` seconds for room; cancelled meanwhile, it takes up none. All who
        name no tenant are one. Raises BoardClosed, on a board that is drained too; entering it also BoardFull, and
        DuplicateName for an id in use.
        """
        return self._open(self._options_for(id), tenant, _checked(patience))

    async def start_conversation(
        self, id: str | None = None, *, tenant: str = "", patience: float = 0.0
    ) -> Conversation:
        """A conversation that lives in the board's block until `close(id)`.

        On a full board this waits `patience` seconds for room. All who name no tenant are one. Cancelled: none was
        started. Raises BoardClosed, on a board that is drained too, BoardFull, and DuplicateName for an id in use.
        """
        keep = partial(self._keep, self._options_for(id), tenant, _checked(patience))
        assert self._nursery is not None, "an open board has a nursery"
        conversation: Conversation = await self._nursery.start(keep)
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

    async def drain(self, deadline: float = math.inf) -> DrainReport:
        """Lets what runs finish, for a deploy, and stops at `deadline`, a moment of trio's clock, what still does.

        From this call on, for good, the board takes no conversation, which raises BoardClosed, and no round: `send`,
        `communicate` and `enqueue` raise ConversationClosed, and so do sends in line. A round that runs can be spoken
        to. The conversations can be read until the board is left. Returns when nothing runs any more. May be called
        again, also meanwhile, and gives the same report; the earliest deadline counts. Cancelled: the board goes on
        refusing, and what runs goes on. Raises BoardClosed if the board was left, InsideTurn in a turn of its roles.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._nursery is None:
            raise BoardClosed
        if self._draining is None:
            self._draining = Draining([one for one in self._conversations.values() if one is not None])
            self._admission.close()
        return await self._draining.wait(deadline)

    def __len__(self) -> int:
        return len(self._conversations)

    def __repr__(self) -> str:
        state = "closed" if self._nursery is None else "open" if self._draining is None else "drained"
        waiting = f", {self._admission.waiting} waiting" if self._admission.waiting else ""
        return f"<Board of {self._actors[0].name}, {state}, {len(self._conversations)} conversations{waiting}>"

    def _options_for(self, id: str | None) -> ConversationOptions:
        self._check_open()
        ids = self._options.ids or current_ids.get()
        return replace(self._options, id=id or ids.create("conv"))

    def _check_open(self) -> None:
        if self._nursery is None:
            raise BoardClosed
        if self._draining is not None:
            raise BoardClosed("the board is drained: it takes no more conversations")

    @asynccontextmanager
    async def _open(self, options: ConversationOptions, tenant: str, patience: float) -> AsyncIterator[Conversation]:
        id = options.id
        assert id is not None, "the board gives every conversation an id"
        self._check_open()
        self._check_unused(id)
        async with self._place(tenant, patience):
            self._check_unused(id)  # another may have taken it while this one waited
            self._conversations[id] = None
            try:
                async with open_conversation(*self._actors, options=options) as conversation:
                    self._conversations[id] = conversation
                    yield conversation
            finally:
                del self._conversations[id]

    @asynccontextmanager
    async def _place(self, tenant: str, patience: float) -> AsyncIterator[None]:
        """However it is left, the place, or the turn in line, is the next one's."""
        if not patience:
            self._check_room(tenant)
        place = self._admission.request(tenant)
        try:
            if place.state == "waiting":
                await self._wait(place, patience)
            yield
        finally:
            self._admission.give_up(place)

    async def _wait(self, place: Place, patience: float) -> None:
        settled = trio.Event()
        place.on_settled = settled.set
        with trio.move_on_after(patience):
            await settled.wait()
        self._check_open()
        if place.state != "held":
            self._check_room(place.tenant)

    def _check_unused(self, id: str) -> None:
        if id in self._conversations:
            raise DuplicateName(id, "an open conversation", "a new one")

    def _check_room(self, tenant: str) -> None:
        full = self._admission.obstacle(tenant)
        if full is not None:
            raise full

    async def _keep(
        self,
        options: ConversationOptions,
        tenant: str,
        patience: float,
        *,
        task_status: trio.TaskStatus[Conversation] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        started = _Started()
        try:
            with started.scope:
                async with self._open(options, tenant, patience) as conversation:
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


def _checked(patience: float) -> float:
    if not patience >= 0:
        raise ValueError(f"patience is a number of seconds from 0 on, not {patience!r}")
    return patience
