"""Anthropic's Messages as a ChatModel: the worked example of docs/models.md for adding a provider."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any, Unpack

from ..chat_model import (
    ChatRequest,
    Delta,
    EndDelta,
    ImagePart,
    Part,
    ReasoningDelta,
    ReplySchema,
    TextDelta,
    UsageDelta,
)
from ..json_value import thaw
from .delta_reader import DeltaReader
from .endpoint import ApiKey, Connection, ConnectionOptions, Endpoint, checked_options, key_of
from .schema_form import Form, SchemaForm, SchemaForms, speaking_of
from .streamed_model import StreamedModel

KEY_VARIABLE = "ANTHROPIC_API_KEY"
"""The environment variable that holds the API key if none is given."""

_REASONS = dict.fromkeys(("end_turn", "stop_sequence", "tool_use", ""), "stop")
_REASONS |= dict.fromkeys(("max_tokens", "model_context_window_exceeded"), "length")


class AnthropicOptions(ConnectionOptions, total=False):
    """The options of an AnthropicModel: those of the connection, `schema_as`, and all others for the server."""

    schema_as: SchemaForm
    max_tokens: int
    temperature: float
    thinking: Mapping[str, Any]
    output_config: Mapping[str, Any]
    cache_control: Mapping[str, Any]


class AnthropicModel(StreamedModel):
    """A ChatModel of Anthropic's: `async with AnthropicModel(name=...) as model`.

    `timeout` and `limit` are as HttpChatModel has them; the key is `api_key` or the environment's ANTHROPIC_API_KEY.
    """

    def __init__(
        self,
        base_url: str = "https://api.anthropic.com/v1",
        *,
        name: str,
        api_key: str | None = None,
        timeout: float = 60.0,
        limit: int = 64,
        **options: Unpack[AnthropicOptions],
    ) -> None:
        given: dict[str, Any] = {"max_tokens": 8192, **options}
        given["headers"] = {"anthropic-version": "2023-06-01", **given.get("headers", {})}
        forms = SchemaForms(given.pop("schema_as", "json_schema"), FORMS)
        key = ApiKey(key_of(api_key, KEY_VARIABLE), "x-api-key", "")
        super().__init__(name, Endpoint(base_url, "/messages", name, key, Connection(timeout, limit, given)), forms)
        self._options = checked_options(given)

    def body(self, request: ChatRequest, schema: dict[str, Any]) -> dict[str, Any]:
        """As the Messages have it: what stands first of the system is apart, what is said in a row is one message."""
        messages = list(request.messages)
        system: list[dict[str, Any]] = []
        while messages and messages[0].role == "system":
            system += _text(messages.pop(0).content)
        turns: list[dict[str, Any]] = []
        for message in messages:
            role = "assistant" if message.role == "assistant" else "user"
            if not turns or turns[-1]["role"] != role:
                turns.append({"role": role, "content": []})
            turns[-1]["content"] += [*_text(message.content), *map(_part, message.parts)]
        if given := self._options.get("output_config"):  # it has more than the schema
            schema = {**schema, "output_config": {**given, **schema.get("output_config", {})}}
        apart = {"system": system} if system else {}
        return {**self._options, **schema, **apart, "model": self.name, "stream": True, "messages": turns}

    def reader(self) -> DeltaReader:
        """Reads what the Messages stream."""
        return _Reader(self._endpoint.errors, self._endpoint.connection.line_limit)


class _Reader(DeltaReader):
    """Reads one reply, which is complete with `message_stop`."""

    _reason = ""
    _input = _cached = 0

    def end(self) -> EndDelta:
        if not self.done:
            raise self.broken_off()
        if self._reason == "refusal":
            raise self.errors.refused("the model refused")
        return EndDelta(_REASONS.get(self._reason, self._reason))

    def deltas(self, body: dict[str, Any]) -> Iterator[Delta]:
        match body:
            case {"type": "content_block_delta", "delta": {"text": str(text)} | {"partial_json": str(text)}}:
                yield from self.piece(TextDelta, text)
            case {"type": "content_block_delta", "delta": {"thinking": str(text)}}:
                yield from self.piece(ReasoningDelta, text)
            case {"type": "message_start", "message": {"usage": {"input_tokens": int(new)} as usage}}:
                # Anthropic counts what it had kept, and what it keeps now, beside the input; here it is part of it.
                self._cached = usage.get("cache_read_input_tokens") or 0
                self._input = new + self._cached + (usage.get("cache_creation_input_tokens") or 0)
                yield UsageDelta(self._input, usage.get("output_tokens") or 0, self._cached)
            case {"type": "message_delta", "delta": {"stop_reason": str(reason)}}:
                self._reason = reason
                written = (body.get("usage") or {}).get("output_tokens") or 0
                yield UsageDelta(self._input, written, self._cached)
            case {"type": "message_stop"}:
                self.done = True


def _text(text: str) -> list[dict[str, Any]]:
    """A block, unless it is empty, which the server refuses."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _part(part: Part) -> dict[str, Any]:
    head, _, data = part.url.partition(",")
    kind = head.removeprefix("data:").removesuffix(";base64")
    source = {"type": "base64", "media_type": kind, "data": data}
    if isinstance(part, ImagePart):
        return {"type": "image", "source": source if kind != head else {"type": "url", "url": part.url}}
    if kind.startswith("text/"):
        source = {"type": "text", "media_type": "text/plain", "data": b64decode(data).decode(errors="replace")}
    return {"type": "document", "title": part.name, "source": source}


def _format(schema: ReplySchema) -> dict[str, Any]:
    return {"output_config": {"format": {"type": "json_schema", "schema": thaw(schema.schema)}}}


def _tool(schema: ReplySchema) -> dict[str, Any]:
    tool = {"name": schema.name, "input_schema": thaw(schema.schema)}
    return {"tools": [tool], "tool_choice": {"type": "tool", "name": schema.name}}


FORMS: Mapping[SchemaForm, Form] = {
    "json_schema": Form(_format, speaking_of("output.?(config|format)|schema|structured"), "tool"),
    "tool": Form(_tool, speaking_of(r"\btools?\b|tool_choice"), "nothing"),
}
