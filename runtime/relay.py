"""Relay: the deltas of a reply that may take several calls, one after another, as one stream.

The rule to know: the calls run in a task of their own, since a call that failed must have been left before the reader
is told that another follows.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import trio

from .chat_model import ChatModel, ChatRequest, Delta, FallbackDelta, RetryingDelta, UsageDelta
from .errors import ModelTimedOut
from .nursery import open_nursery
from .value import value

Sender: TypeAlias = "trio.MemorySendChannel[Delta | Exception]"


@value
class Failure:
    """How a call failed."""

    error: Exception
    come: bool
    """Whether something of the reply, or of the thoughts before it, has come."""


@asynccontextmanager
async def relayed(calls: Callable[[Sender], Awaitable[None]]) -> AsyncIterator[AsyncIterator[Delta]]:
    """What `calls` sends, as the deltas of one reply; an exception that is sent is raised.

    Cancelled, or the block left early: `calls` is cancelled.
    """
    send, receive = trio.open_memory_channel[Delta | Exception](0)
    with send, receive:
        async with open_nursery() as nursery:
            nursery.start_soon(calls, send)
            yield _Deltas(receive)
            nursery.cancel_scope.cancel(reason="the reply is read no more")


async def forward(model: ChatModel, request: ChatRequest, send: Sender, stalled: float = math.inf) -> Failure | None:
    """Makes one call and sends its deltas; gives how it failed, None for a reply that was read to its end.

    It fails with ModelTimedOut if nothing of the reply comes for `stalled` seconds.
    """
    come = False
    with trio.move_on_after(stalled) as scope:
        try:
            async with model.stream(request) as deltas:
                async for delta in deltas:
                    match delta:
                        case RetryingDelta():
                            scope.deadline = trio.current_time() + delta.seconds + stalled
                        case FallbackDelta():
                            scope.deadline = trio.current_time() + stalled
                        case UsageDelta():
                            pass
                        case _:
                            come, scope.deadline = True, math.inf
                    await send.send(delta)
        except Exception as error:
            return Failure(error, come)
        return None
    said = f"nothing has come from {model.name} for {stalled:g} s"
    return Failure(ModelTimedOut(said, fault="server", may_retry=True), come)


class _Deltas:
    """What comes through the channel; an error is raised."""

    def __init__(self, receive: trio.MemoryReceiveChannel[Delta | Exception]) -> None:
        self._receive = receive

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self

    async def __anext__(self) -> Delta:
        item = await self._receive.__anext__()
        if isinstance(item, Exception):
            raise item
        return item
