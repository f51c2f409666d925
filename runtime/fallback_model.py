"""A model that calls the next of several where one failed before anything came of its reply.

The rule to know: whatever ModelError it failed with, the next is called: what one provider refuses, or what is too long
for one model, another may take.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import zip_longest

from .chat_model import ChatModel, ChatRequest, Delta, FallbackDelta
from .errors import ModelError
from .relay import Sender, forward, relayed


class FallbackModel:
    """A ChatModel that calls `models` in their order, each once for a request, until one replies.

    To have each called again first, give RetryingModels. Raises ValueError for no models at all.
    """

    def __init__(self, models: Sequence[ChatModel]) -> None:
        if not models:
            raise ValueError("a FallbackModel needs at least one model")
        self._models = tuple(models)

    @property
    def name(self) -> str:
        """The name of the first model; who replied instead is in a FallbackDelta, and in the events."""
        return self._models[0].name

    def stream(self, request: ChatRequest) -> AbstractAsyncContextManager[AsyncIterator[Delta]]:
        """The deltas of the reply, with a FallbackDelta before those of each model but the first.

        Cancelled, or the block left early: the call is ended at once. Raises what the last model raised.
        """
        return relayed(partial(self._calls, request))

    def __repr__(self) -> str:
        return f"<FallbackModel {', '.join(map(repr, self._models))}>"

    async def _calls(self, request: ChatRequest, send: Sender) -> None:
        for model, following in zip_longest(self._models, self._models[1:]):
            failure = await forward(model, request, send)
            if failure is None:
                return send.close()
            if failure.come or following is None or not isinstance(failure.error, ModelError):
                return await send.send(failure.error)
            await send.send(FallbackDelta(str(failure.error), following.name))
