"""BlockingHost: conversations for scripts, notebooks and threads of a WSGI server, all in one trio thread."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from types import TracebackType
from typing import ParamSpec, TypeVar

from ..actor import Actor
from ..board import Board
from ..errors import ConversationClosed
from ..opening import open_conversation
from ..options import ConversationOptions
from .blocking_board import BlockingBoard
from .blocking_bridge import BlockingBridge, wait_through
from .blocking_conversation import BlockingConversation
from .blocking_held import BlockingHeld
from .trio_thread import TrioThread

T = TypeVar("T")
P = ParamSpec("P")


class BlockingHost:
    """`with BlockingHost() as host`; any thread may use it, at the same time as others.

    Ctrl-C in the main thread while `send` waits stops the round, waits for its clean-up, and raises KeyboardInterrupt;
    the conversation can be used on. While another verb waits it ends that wait alone. A second Ctrl-C leaves at once.
    Leaving the block closes the conversations, then what else was called or entered, and waits until all has ended.
    """

    def __init__(self) -> None:
        self._open: BlockingBridge | None = None

    def __enter__(self) -> BlockingHost:
        """Starts the thread. Raises RuntimeError if it was started before."""
        if self._open is not None:
            raise RuntimeError("a BlockingHost is used for one block only; make another")
        thread = TrioThread("callboard-trio")
        ready = threading.Event()
        thread.on_ready = ready.set
        self._open = BlockingBridge(thread)
        thread.start()
        interruption = wait_through(ready)
        if interruption is not None:
            self._close()
            raise interruption
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Nothing of the host is alive when this returns, unless it was interrupted twice."""
        interruption = self._close()
        if interruption is not None and error is None:
            raise interruption

    @contextmanager
    def open_conversation(
        self, root: Actor, *others: Actor, options: ConversationOptions | None = None
    ) -> Iterator[BlockingConversation]:
        """A conversation whose root answers the user; `others` have no superior and are known to all by name.

        Leaving the block, or its cancellation, ends what still runs: every attempt is cancelled and waited for, every
        asker gets ConversationClosed, lifetimes are left in reverse order. A single exception leaves as itself. Raises
        DuplicateName and ValueError for names that clash or are none.
        """
        manager = open_conversation(root, *others, options=options)
        with BlockingHeld(self._bridge, manager, keeps=True) as conversation:
            yield BlockingConversation(self._bridge, conversation)

    @contextmanager
    def open_board(
        self,
        root: Actor,
        *others: Actor,
        options: ConversationOptions | None = None,
        limit: int | None = None,
        tenant_limit: int | None = None,
        alongside: Iterable[Callable[[], Awaitable[object]]] = (),
    ) -> Iterator[BlockingBoard]:
        """`with host.open_board(root, *others) as board`: every conversation gets the same actors and options.

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
        with BlockingHeld(self._bridge, manager, keeps=True) as board:
            yield BlockingBoard(self._bridge, board)

    def enter(self, manager: AbstractAsyncContextManager[T]) -> AbstractContextManager[T]:
        """`with host.enter(HttpChatModel(...)) as model`: an async context manager of trio's, entered there.

        It is left with the block, and what it raises leaves the block. Raises ConversationClosed if the host is closed.
        """
        return BlockingHeld(self._bridge, manager)

    def run(self, function: Callable[P, Awaitable[T]], *arguments: P.args, **options: P.kwargs) -> T:
        """What an async function of trio's gives, called there with the context variables of the caller.

        Interrupted: so is the function, and KeyboardInterrupt leaves when its clean-up is done. Raises what the
        function raises, that very object; ConversationClosed if the host is closed.
        """
        return self._bridge.run(function, *arguments, **options)

    @property
    def _bridge(self) -> BlockingBridge:
        if self._open is None:
            raise ConversationClosed("the host is not open yet: with BlockingHost() as host")
        return self._open

    def _close(self) -> BaseException | None:
        """An interruption that came meanwhile."""
        thread = self._bridge.thread
        thread.close()
        interruption = wait_through(thread.ended)
        thread.join()
        return interruption
