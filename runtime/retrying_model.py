"""A model that calls another one again where a call failed before anything came of it, such as at a busy server.

The rule to know: a reply of which something has come is never asked for again, not even if it stalls. It stands in
somebody's draft.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from functools import partial

import trio

from .backoff import Backoff
from .chat_model import ChatModel, ChatRequest, Delta, RetryingDelta
from .relay import Sender, forward, relayed

_DEFAULT = Backoff()


class RetryingModel:
    """A ChatModel that makes a call of `model` again, as `backoff` says, as long as the ModelError says `may_retry`.

    A call of which nothing comes for `stalled` seconds has failed too; infinity waits for ever. Let it be shorter than
    the conversation's option of that name, which ends the whole step.
    """

    def __init__(self, model: ChatModel, *, backoff: Backoff = _DEFAULT, stalled: float = 45.0) -> None:
        if not stalled > 0:
            raise ValueError(f"stalled is a number of seconds above 0, not {stalled!r}")
        self._model = model
        self._backoff = backoff
        self._stalled = stalled

    @property
    def name(self) -> str:
        """The name of the model that it calls."""
        return self._model.name

    def stream(self, request: ChatRequest) -> AbstractAsyncContextManager[AsyncIterator[Delta]]:
        """The deltas of the reply, with a RetryingDelta before each wait.

        Cancelled, or the block left early: the call, or the wait, is ended at once. Raises what the last call raised.
        """
        return relayed(partial(self._calls, request))

    def __repr__(self) -> str:
        return f"<RetryingModel {self._model!r}>"

    async def _calls(self, request: ChatRequest, send: Sender) -> None:
        """Call after call, until one has been read to its end or was the last."""
        failed = 0
        while (failure := await forward(self._model, request, send, self._stalled)) is not None:
            failed += 1
            pause = None if failure.come else self._backoff.pause(failed, failure.error)
            if pause is None:
                return await send.send(failure.error)
            await send.send(RetryingDelta(str(failure.error), pause))
            await trio.sleep(pause)
        send.close()
