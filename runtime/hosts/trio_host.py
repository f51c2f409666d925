"""TrioHost: conversations for an asyncio program, all in one trio thread of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import ParamSpec, TypeVar

from ..actor import Actor
from ..board import Board
from ..errors import ConversationClosed
from ..opening import open_conversation
from ..options import ConversationOptions
from .asyncio_board import AsyncioBoard
from .asyncio_bridge import AsyncioBridge, wait_through
from .asyncio_conversation import AsyncioConversation
from .asyncio_held import AsyncioHeld

T = TypeVar("T")
P = ParamSpec("P")


class TrioHost:
    """`async with TrioHost() as host`, in any asyncio loop; used by tasks of that loop.

    Roles run in trio's thread: one that blocks stalls the other conversations and never the loop. Leaving the block
    closes the conversations, then what else was called or entered, and waits until all of it has ended.
    """

    def __init__(self) -> None:
        self._open: AsyncioBridge | None = None

    async def __aenter__(self) -> TrioHost:
        """Starts the thread. Cancelled: it has ended when this returns. Raises RuntimeError the second time."""
        if self._open is not None:
            raise RuntimeError("a TrioHost is used for one block only; make another")
        self._open = bridge = AsyncioBridge()
        ready, bridge.thread.on_ready = bridge.future()
        bridge.thread.start()
        if await wait_through(ready):
            await self._close()
            raise asyncio.CancelledError
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Nothing of the host is alive when this returns, cancelled or not."""
        if await self._close() and error is None:
            raise asyncio.CancelledError

    @asynccontextmanager
    async def open_conversation(
        self, root: Actor, *others: Actor, options: ConversationOptions | None = None
    ) -> AsyncIterator[AsyncioConversation]:
        """A conversation whose root answers the user; `others` have no superior and are known to all by name.

        Leaving the block, or its cancellation, ends what still runs: every attempt is cancelled and waited for, every
        asker gets ConversationClosed, lifetimes are left in reverse order. A single exception leaves as itself. Raises
        DuplicateName and ValueError for names that clash or are none.
        """
        manager = open_conversation(root, *others, options=options)
        async with AsyncioHeld(self._bridge, manager, keeps=True) as conversation:
            yield AsyncioConversation(self._bridge, conversation)

    @asynccontextmanager
    async def open_board(
        self,
        root: Actor,
        *others: Actor,
        options: ConversationOptions | None = None,
        limit: int | None = None,
        tenant_limit: int | None = None,
        alongside: Iterable[Callable[[], Awaitable[object]]] = (),
    ) -> AsyncIterator[AsyncioBoard]:
        """`async with host.open_board(root, *others) as board`: every conversation gets the same actors and options.

        With `limit` it holds so many conversations at once, those that are still ending included, and no more:
        BoardFull. `tenant_limit` is the same for each tenant. Those with the patience to wait for room are let in
        tenant by tenant. Leaving the block closes the conversations that were started, waits for their end, and closes
        those that callers hold. A conversation's own failure leaves the block of whoever opened it; of one that was
        started, the board's.

        `alongside` are functions of trio's that run as tasks beside the conversations, such as a refresh: started in
        their order, cancelled when the block is left, after the conversations have begun to close. One may return; what
        one raises leaves the board's block, and closes all.
        """
        manager = Board(root, *others, options=options, limit=limit, tenant_limit=tenant_limit, alongside=alongside)
        async with AsyncioHeld(self._bridge, manager, keeps=True) as board:
            yield AsyncioBoard(self._bridge, board)

    def enter(self, manager: AbstractAsyncContextManager[T]) -> AbstractAsyncContextManager[T]:
        """`async with host.enter(HttpChatModel(...)) as model`: an async context manager of trio's, entered there.

        It is left with the block. If it fails meanwhile the block is cancelled, and the error leaves it. Raises what
        the manager raises, ConversationClosed if the host is closed.
        """
        return AsyncioHeld(self._bridge, manager)

    async def run(self, function: Callable[P, Awaitable[T]], *arguments: P.args, **options: P.kwargs) -> T:
        """What an async function of trio's gives, called there with the context variables of the caller.

        Cancelled: so is the function, and this returns when its clean-up is done. Raises what the function raises, that
        very object; ConversationClosed if the host is closed.
        """
        return await self._bridge.run(function, *arguments, **options)

    @property
    def _bridge(self) -> AsyncioBridge:
        if self._open is None:
            raise ConversationClosed("the host is not open yet: async with TrioHost() as host")
        return self._open

    async def _close(self) -> bool:
        """Whether the waiting task was cancelled meanwhile."""
        bridge = self._bridge
        bridge.thread.close()
        cancelled = await wait_through(bridge.ended)
        bridge.thread.join()
        return cancelled
