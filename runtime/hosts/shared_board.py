"""What a host asks of a board in trio's thread in other words than the board's own."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

from ..board import Board
from ..conversation import Conversation
from ..draining import DrainReport


@asynccontextmanager
async def started(board: Board, start: Callable[[], Awaitable[Conversation]]) -> AsyncIterator[Conversation]:
    """Starts a conversation of the board, and closes it again if the host stops waiting before it has it."""
    conversation = await start()
    try:
        yield conversation
    except BaseException:
        with trio.CancelScope(shield=True):
            await board.close(conversation.id)
        raise


async def drain_within(board: Board, seconds: float = math.inf) -> DrainReport:
    """Lets what runs finish, for a deploy, and stops after so many `seconds` what still does.

    From this call on, for good, the board takes no conversation, which raises BoardClosed, and no round: `send`,
    `communicate` and `enqueue` raise ConversationClosed, and so do sends in line. A round that runs can be spoken
    to. The conversations can be read until the board is left. Returns when nothing runs any more. May be called
    again, also meanwhile, and gives the same report; the earliest deadline counts. Cancelled: the board goes on
    refusing, and what runs goes on. Raises BoardClosed if the board was left, InsideTurn in a turn of its roles.
    """
    return await board.drain(trio.current_time() + seconds)
