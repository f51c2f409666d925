"""Served model: a chat model behind HTTP, with the connections that it needs while it is used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from callboard.runtime.backoff import Backoff
from callboard.runtime.chat_model import ChatModel
from callboard.runtime.retrying_model import RetryingModel

BACKOFF = Backoff(attempts=3)
"""How a model behind HTTP is called again: whoever waits at a terminal waits three seconds at most."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """Roles may be given `chat` at once; it is called inside `async with served.opened()`."""

    chat: ChatModel
    _connection: AbstractAsyncContextManager[object]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[ChatModel]:
        """The model while its connections are open. Cancelled, they are closed."""
        async with self._connection:
            yield self.chat


def serve(api: str, arguments: Mapping[str, Any], backoff: Backoff | None = None) -> ServedModel:
    """A model that speaks `api`, openai or anthropic, and is called again where a call fails before anything came.

    Raises ValueError for what the model cannot be made of, and TypeError; neither shows a key.
    """
    # By its name, since it brings httpx, which takes longer to load than all of callboard.
    models = import_module("callboard.runtime.models")
    kind = models.AnthropicModel if api == "anthropic" else models.HttpChatModel
    model = kind(**arguments)
    return ServedModel(RetryingModel(model, backoff=backoff or BACKOFF), model)
