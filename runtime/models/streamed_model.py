"""StreamedModel: all of a ChatModel behind HTTP but what its provider's format is made of.

A provider is added by a subclass that writes the body of a request, and a `DeltaReader` that reads the events of the
reply. The rule to know: no request is made twice, but for one that was refused for the form of its schema.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx

from ..chat_model import ChatRequest, Delta, RetryingDelta
from ..errors import ModelError
from ..value import value
from .body import closing, drain
from .delta_reader import DeltaReader
from .delta_stream import DeltaStream
from .endpoint import Endpoint
from .remote import Remote
from .schema_form import SchemaForm, SchemaForms

_STREAM = "text/event-stream"


@value
class HttpModelStatistics:
    """The requests of a model at one moment."""

    limit: int
    streaming: int
    waiting: int
    schema_as: SchemaForm
    """How a schema is put to the server, as far as it is known what the server takes."""


class StreamedModel(Remote, ABC):
    """A ChatModel whose replies are server-sent events."""

    def __init__(self, name: str, endpoint: Endpoint, forms: SchemaForms) -> None:
        super().__init__(name, endpoint)
        self._forms = forms

    @abstractmethod
    def body(self, request: ChatRequest, schema: dict[str, Any]) -> dict[str, Any]:
        """The body of a request; `schema` are the members that put its schema."""

    @abstractmethod
    def reader(self) -> DeltaReader:
        """A reader for one reply."""

    def statistics(self) -> HttpModelStatistics:
        """How many requests run, and how many wait for one to end."""
        now = self._endpoint.limiter.statistics()
        return HttpModelStatistics(int(now.total_tokens), now.borrowed_tokens, now.tasks_waiting, self._forms.in_use)

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Delta]]:
        """The deltas of the reply, as the server sends them; before them a RetryingDelta for each form it refused.

        Cancelled, or the block left early: the connection is closed at once. Raises ModelError.
        """
        async with AsyncExitStack() as stack:
            response, refusals = await self._accepted(request, stack)
            async with closing(response.aiter_raw()) as chunks:
                deltas = DeltaStream(chunks, self.reader(), self._endpoint.connection.reply_limit, refusals)
                yield deltas
                if deltas.ended:
                    await drain(chunks)

    async def _accepted(self, request: ChatRequest, stack: AsyncExitStack) -> tuple[httpx.Response, list[Delta]]:
        """The server's answer to the first form of the request that it takes, and its refusals before."""
        form, refusals = self._forms.in_use, list[Delta]()
        while True:
            body = self.body(request, self._forms.members(form, request.schema))
            try:
                response = await stack.enter_async_context(self._endpoint.post(body, _STREAM))
            except ModelError as error:
                following = None if request.schema is None else self._forms.after(form, error)
                if following is None:
                    raise
                form = following
                refusals.append(RetryingDelta(error.message, 0.0))
            else:
                if refusals:
                    self._forms.in_use = form
                return response, refusals
