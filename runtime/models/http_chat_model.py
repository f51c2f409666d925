"""A model behind HTTP: the chat completions of OpenAI, which most servers of models speak, as a stream."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, Unpack

import httpx

from ..chat_model import ChatRequest, Delta, ImagePart, Message, Part, RetryingDelta
from ..errors import ModelError
from ..value import value
from .body import closing, drain
from .chat_reader import ChatReader
from .delta_stream import DeltaStream
from .endpoint import ApiKey, Connection, ConnectionOptions, Endpoint, api_key
from .schema_form import CHAT_FORMS, SchemaForm, SchemaForms

KEY_VARIABLE = "CALLBOARD_API_KEY"
"""The environment variable that holds the API key if none is given."""


class HttpOptions(ConnectionOptions, total=False):
    """The options of an HttpChatModel: those of the connection, `schema_as`, and all others for the server.

    The server's are as it names them; the common ones are listed, and at run time any name is taken.
    """

    schema_as: SchemaForm
    """How the schema of a reply is put first; what the server refuses is put otherwise from then on."""
    temperature: float
    top_p: float
    seed: int
    max_tokens: int
    max_completion_tokens: int
    stop: str | Sequence[str]
    frequency_penalty: float
    presence_penalty: float
    reasoning_effort: str
    response_format: Mapping[str, Any]
    stream_options: Mapping[str, Any]
    user: str


@value
class HttpModelStatistics:
    """The requests of a model at one moment."""

    limit: int
    streaming: int
    waiting: int
    schema_as: SchemaForm
    """How a schema is put to the server, as far as it is known what the server takes."""


class HttpChatModel:
    """A ChatModel at `base_url`, such as `http://localhost:8000/v1`: `async with HttpChatModel(...) as model`.

    `timeout` is how many seconds it may take to connect, and may pass without a byte; at most `limit` requests run at
    once, others wait. The key is `api_key` or the environment's CALLBOARD_API_KEY. No request is made twice, but for
    one that the server refused for the form of its schema.
    """

    def __init__(
        self,
        base_url: str,
        *,
        name: str,
        api_key: str | None = None,
        timeout: float = 60.0,
        limit: int = 64,
        **options: Unpack[HttpOptions],
    ) -> None:
        given: dict[str, Any] = dict(options)
        self._name = name
        self._endpoint = Endpoint(
            base_url,
            "/chat/completions",
            name=name,
            key=_key(api_key),
            connection=Connection(timeout, limit, given),
        )
        self._forms = SchemaForms(given.pop("schema_as", "json_schema"), CHAT_FORMS)
        self._options = given
        json.dumps(self._options, allow_nan=False)

    @property
    def name(self) -> str:
        """The model's name, which is sent to the server and stands in events and logs."""
        return self._name

    def statistics(self) -> HttpModelStatistics:
        """How many requests run, and how many wait for one to end."""
        now = self._endpoint.limiter.statistics()
        return HttpModelStatistics(int(now.total_tokens), now.borrowed_tokens, now.tasks_waiting, self._forms.in_use)

    async def __aenter__(self) -> HttpChatModel:
        await self._endpoint.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._endpoint.close()

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Delta]]:
        """The deltas of the reply, as the server sends them; before them a RetryingDelta for each form it refused.

        Cancelled, or the block left early: the connection is closed at once. Raises ModelError.
        """
        connection = self._endpoint.connection
        async with AsyncExitStack() as stack:
            response, refusals = await self._accepted(request, stack)
            async with closing(response.aiter_raw()) as chunks:
                reader = ChatReader(self._endpoint.errors, connection.line_limit)
                deltas = DeltaStream(chunks, reader, connection.reply_limit, refusals)
                yield deltas
                if deltas.ended:
                    await drain(chunks)

    def __repr__(self) -> str:
        return f"<HttpChatModel {self._endpoint.errors.place}>"

    async def _accepted(self, request: ChatRequest, stack: AsyncExitStack) -> tuple[httpx.Response, list[Delta]]:
        """The server's answer to the first form of the request that it takes, and its refusals before."""
        form, refusals = self._forms.in_use, list[Delta]()
        while True:
            body = self._body(request, form)
            try:
                response = await stack.enter_async_context(self._endpoint.post(body, "text/event-stream"))
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

    def _body(self, request: ChatRequest, form: SchemaForm) -> dict[str, Any]:
        return {
            "stream_options": {"include_usage": True},
            **self._options,
            **self._forms.members(form, request.schema),
            "model": self._name,
            "stream": True,
            "messages": [_message(message) for message in request.messages],
        }


def _key(given: str | None) -> ApiKey:
    return ApiKey(api_key(given, KEY_VARIABLE))


def _message(message: Message) -> dict[str, Any]:
    if not message.parts:
        return {"role": message.role, "content": message.content}
    text = [{"type": "text", "text": message.content}] if message.content else []
    return {"role": message.role, "content": [*text, *map(_part, message.parts)]}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": part.url}}
    return {"type": "file", "file": {"filename": part.name, "file_data": part.url}}
