"""A model behind HTTP: the chat completions of OpenAI, which most servers of models speak, as a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from ..chat_model import ChatRequest, ImagePart, Message, Part
from .chat_reader import ChatReader
from .endpoint import ApiKey, Connection, ConnectionOptions, Endpoint, checked_options, key_of
from .schema_form import CHAT_FORMS, SchemaForm, SchemaForms
from .streamed_model import StreamedModel

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


class HttpChatModel(StreamedModel):
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
        forms = SchemaForms(given.pop("schema_as", "json_schema"), CHAT_FORMS)
        key, connection = ApiKey(key_of(api_key, KEY_VARIABLE)), Connection(timeout, limit, given)
        super().__init__(name, Endpoint(base_url, "/chat/completions", name, key, connection), forms)
        self._options = checked_options(given)

    def body(self, request: ChatRequest, schema: dict[str, Any]) -> dict[str, Any]:
        """As the chat completions have it."""
        return {
            "stream_options": {"include_usage": True},
            **self._options,
            **schema,
            "model": self.name,
            "stream": True,
            "messages": [_message(message) for message in request.messages],
        }

    def reader(self) -> ChatReader:
        """Reads what the chat completions stream."""
        return ChatReader(self._endpoint.errors, self._endpoint.connection.line_limit)


def _message(message: Message) -> dict[str, Any]:
    if not message.parts:
        return {"role": message.role, "content": message.content}
    text = [{"type": "text", "text": message.content}] if message.content else []
    return {"role": message.role, "content": [*text, *map(_part, message.parts)]}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": part.url}}
    return {"type": "file", "file": {"filename": part.name, "file_data": part.url}}
