"""Board for code that blocks: written by tests/make_handles.py from the classes of that name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from ..board import Board
from ..draining import DrainReport
from .blocking_bridge import BlockingBridge
from .blocking_conversation import BlockingConversation
from .blocking_held import BlockingHeld
from .handle import Handle
from .held import made_there
from .shared_board import drain_within, started


class BlockingBoard(Handle[Board]):
    """`with host.open_board(root, *others) as board`: every conversation gets the same actors and options.

    With `limit` it holds so many conversations at once, those that are still ending included, and no more: BoardFull.
    `tenant_limit` is the same for each tenant. Those with the patience to wait for room are let in tenant by tenant.
    Leaving the block closes the conversations that were started, waits for their end, and closes those that callers
    hold. A conversation's own failure leaves the block of whoever opened it; of one that was started, the board's.

    `alongside` are functions of trio's that run as tasks beside the conversations, such as a refresh: started in
    their order, cancelled when the block is left, after the conversations have begun to close. One may return; what one
    raises leaves the board's block, and closes all.
    """

    def __init__(self, bridge: BlockingBridge, handled: Board) -> None:
        super().__init__(handled)
        self._bridge = bridge

    @contextmanager
    def open_conversation(
        self, id: str | None = None, *, tenant: str = "", patience: float = 0.0
    ) -> Iterator[BlockingConversation]:
        """A conversation that lives in the caller's block.

        On a full board entering it waits `patience` seconds for room; cancelled meanwhile, it takes up none. All who
        name no tenant are one. Raises BoardClosed, on a board that is drained too; entering it also BoardFull, and
        DuplicateName for an id in use.
        """
        manager = made_there(partial(self._handled.open_conversation, id, tenant=tenant, patience=patience))
        with BlockingHeld(self._bridge, manager, keeps=True) as one:
            yield BlockingConversation(self._bridge, one)

    def start_conversation(
        self, id: str | None = None, *, tenant: str = "", patience: float = 0.0
    ) -> BlockingConversation:
        """A conversation that lives in the board's block until `close(id)`.

        On a full board this waits `patience` seconds for room. All who name no tenant are one. Cancelled: none was
        started. Raises BoardClosed, on a board that is drained too, BoardFull, and DuplicateName for an id in use.
        """
        return BlockingConversation(
            self._bridge,
            BlockingHeld(
                self._bridge,
                started(self._handled, partial(self._handled.start_conversation, id, tenant=tenant, patience=patience)),
            ).hand_over(),
        )

    def find(self, id: str) -> BlockingConversation | None:
        """The conversation with that id; None if there is none, or it has ended."""
        one = self._bridge.call(self._handled.find, id)
        return None if one is None else BlockingConversation(self._bridge, one)

    def close(self, id: str) -> None:
        """Ends a conversation that was started, and waits until nothing of it is alive. Safe to repeat.

        One that a caller holds is closed and lives until that block is left. Cancelled: it ends all the same.
        """
        self._bridge.run(self._handled.close, id)

    def drain(self, seconds: float = math.inf) -> DrainReport:
        """Lets what runs finish, for a deploy, and stops after so many `seconds` what still does.

        From this call on, for good, the board takes no conversation, which raises BoardClosed, and no round: `send`,
        `communicate` and `enqueue` raise ConversationClosed, and so do sends in line. A round that runs can be spoken
        to. The conversations can be read until the board is left. Returns when nothing runs any more. May be called
        again, also meanwhile, and gives the same report; the earliest deadline counts. Cancelled: the board goes on
        refusing, and what runs goes on. Raises BoardClosed if the board was left, InsideTurn in a turn of its roles.
        """
        return self._bridge.run(drain_within, self._handled, seconds)

    def __len__(self) -> int:
        return len(self._handled)
