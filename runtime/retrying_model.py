"""A model that calls another one again where a call failed before anything came of it, such as at a busy server.

The rule to know: a reply of which something has come is never asked for again. It stands in somebody's draft.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import trio

from .chat_model import ChatModel, ChatRequest, Delta, RetryingDelta
from .errors import ModelError
from .nursery import open_nursery


class RetryingModel:
    """A ChatModel that makes each call of `model` at most `attempts` times, as long as the ModelError says `may_retry`.

    Before it calls again it waits a random time: at most `first` seconds, twice as many each further time, never more
    than `longest`; so that many that failed together do not come back together. Cancelled: the wait ends at once.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        attempts: int = 4,
        first: float = 1.0,
        longest: float = 30.0,
        source: random.Random | None = None,
    ) -> None:
        if not isinstance(attempts, int) or isinstance(attempts, bool) or attempts < 1:
            raise ValueError(f"attempts is a whole number from 1 on, not {attempts!r}")
        if not 0 <= first <= longest:
            raise ValueError(f"first is a number of seconds from 0 to longest, not {first!r}")
        self._model = model
        self._attempts = attempts
        self._first = first
        self._longest = longest
        self._random = source or random.Random()

    @property
    def name(self) -> str:
        """The name of the model that it calls."""
        return self._model.name

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Delta]]:
        """The deltas of the reply, with a RetryingDelta before each wait.

        Cancelled, or the block left early: the call, or the wait, is ended at once. Raises what the last call raised.
        """
        send, receive = trio.open_memory_channel[Delta | Exception](0)
        with send, receive:
            async with open_nursery() as nursery:
                # In a task of their own, since a call that failed must be left before the reader is told of the wait.
                nursery.start_soon(self._calls, request, send)
                yield _Deltas(receive)
                nursery.cancel_scope.cancel(reason="the reply is read no more")

    def __repr__(self) -> str:
        return f"<RetryingModel {self._model!r}>"

    async def _calls(self, request: ChatRequest, send: trio.MemorySendChannel[Delta | Exception]) -> None:
        """Call after call, until one has been read to its end or was the last."""
        pauses = self._pauses()
        while True:
            come = False
            try:
                async with self._model.stream(request) as deltas:
                    async for delta in deltas:
                        come = come or not isinstance(delta, RetryingDelta)
                        await send.send(delta)
                return send.close()
            except Exception as error:
                pause, said = next(pauses, None), str(error)
                if come or pause is None or not (isinstance(error, ModelError) and error.may_retry):
                    return await send.send(error)
            await send.send(RetryingDelta(said, pause))
            await trio.sleep(pause)

    def _pauses(self) -> Iterator[float]:
        for number in range(self._attempts - 1):
            yield self._random.uniform(0, min(self._longest, self._first * 2**number))


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
