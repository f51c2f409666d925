"""The form of a schema: what is sent, what is tried where a server refuses it, and that it is learned once."""

import json
from typing import Any

import pytest

from callboard.runtime.chat_model import ChatRequest, Delta, EndDelta, Message, ReplySchema, RetryingDelta, TextDelta
from callboard.runtime.errors import ModelError
from callboard.runtime.json_value import FrozenMapping
from callboard.runtime.models import HttpChatModel
from callboard.runtime.models.schema_form import allows_strict

from .model_server import Exchange, events, hello, model_at, piece, status, stop

STRICT: dict[str, Any] = {
    "type": "object",
    "properties": {"message": {"type": "string"}},
    "required": ["message"],
    "additionalProperties": False,
}
LOOSE = {"type": "object", "properties": {"message": {"type": "string"}}}
ASKED = ChatRequest("writer", (Message("user", "hi"),), ReplySchema("reply", FrozenMapping(STRICT)))


class Picky:
    """A server that refuses all requests with one of these in them, in these words."""

    def __init__(self, *refused: str, words: str = "{} is not supported", code: str = "400 Bad Request") -> None:
        self.refused, self.words, self.code = refused, words, code

    async def __call__(self, exchange: Exchange) -> None:
        sent = json.dumps(exchange.body)
        for member in self.refused:
            if member in sent:
                body = {"error": {"message": self.words.format(member)}}
                return await status(self.code, json.dumps(body))(exchange)
        await hello(exchange)


async def ask(model: HttpChatModel, request: ChatRequest = ASKED) -> list[Delta]:
    async with model.stream(request) as deltas:
        return [delta async for delta in deltas]


async def test_a_schema_is_sent_as_it_is_and_strictly_if_it_allows_that() -> None:
    async with model_at(hello) as (model, server):
        await ask(model)
        loose = ChatRequest("writer", (), ReplySchema("reply", FrozenMapping(LOOSE)))
        await ask(model, loose)
        await ask(model, ChatRequest("writer", ()))
    strict, other, none = (exchange.body.get("response_format") for exchange in server.requests)
    form = {"name": "reply", "schema": STRICT, "strict": True}
    assert strict == {"type": "json_schema", "json_schema": form}
    assert other == {"type": "json_schema", "json_schema": {"name": "reply", "schema": LOOSE}}
    assert none is None


async def test_a_schema_as_a_tool_is_a_call_that_the_model_must_make() -> None:
    async with model_at(hello, schema_as="tool") as (model, server):
        await ask(model)
    body = server.requests[0].body
    assert body["tools"] == [{"type": "function", "function": {"name": "reply", "parameters": STRICT, "strict": True}}]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "reply"}}
    assert "response_format" not in body


@pytest.mark.parametrize("code", ["400 Bad Request", "422 Unprocessable"])
async def test_a_refused_schema_is_put_otherwise_and_the_refusal_is_seen(code: str) -> None:
    async with model_at(Picky('"json_schema"', code=code)) as (model, server):
        first, *reply = await ask(model)
        assert isinstance(first, RetryingDelta) and first.seconds == 0 and "json_schema" in first.reason
        assert reply == [TextDelta("Hel"), TextDelta("lo"), EndDelta("stop")]
        assert model.statistics().schema_as == "json_object"
        assert server.requests[-1].body["response_format"] == {"type": "json_object"}


async def test_what_is_left_in_the_end_is_what_the_messages_say() -> None:
    async with model_at(Picky("response_format", words="unknown field `{}`")) as (model, server):
        assert len([delta for delta in await ask(model) if isinstance(delta, RetryingDelta)]) == 2
        assert "response_format" not in server.requests[-1].body and len(server.requests) == 3


async def test_a_refusal_is_learned_once() -> None:
    async with model_at(Picky("response_format")) as (model, server):
        await ask(model)
        assert not any(isinstance(delta, RetryingDelta) for delta in await ask(model))
        assert len(server.requests) == 4


async def test_a_refused_tool_is_put_otherwise() -> None:
    async with model_at(Picky("tool_choice", words="this model knows no tools"), schema_as="tool") as (model, server):
        await ask(model)
        assert model.statistics().schema_as == "json_object" and "tools" not in server.requests[-1].body


async def test_a_refusal_of_something_else_is_an_error_and_teaches_nothing() -> None:
    async with model_at(Picky("messages", words="no such model")) as (model, server):
        with pytest.raises(ModelError, match="no such model"):
            await ask(model)
        assert (len(server.requests), model.statistics().schema_as) == (1, "json_schema")


async def test_a_refusal_that_is_none_in_the_end_teaches_nothing() -> None:
    async with model_at(Picky("messages", words="response_format")) as (model, _):
        with pytest.raises(ModelError):
            await ask(model)
        assert model.statistics().schema_as == "json_schema"


async def test_a_busy_server_has_refused_nothing() -> None:
    async with model_at(Picky("json_schema", code="500 Oops")) as (model, server):
        with pytest.raises(ModelError, match="500"):
            await ask(model)
        assert len(server.requests) == 1


async def test_a_tool_call_is_the_text_of_the_reply() -> None:
    def call(**function: str) -> dict[str, Any]:
        return {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": function}]}}]}

    pieces = [
        call(name="reply", arguments=""),
        call(arguments='{"mes'),
        call(arguments='sage": 1}'),
        stop("tool_calls"),
    ]
    async with model_at(events(piece(""), *pieces, "[DONE]"), schema_as="tool") as (model, _):
        assert await ask(model) == [TextDelta('{"mes'), TextDelta('sage": 1}'), EndDelta("tool_calls")]


def test_a_form_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="schema_as is one of json_schema, tool, json_object and nothing"):
        HttpChatModel("http://a/v1", name="small", schema_as="xml")  # type: ignore[arg-type]  # it is what is tested


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (STRICT, True),
        (LOOSE, False),
        ({**STRICT, "additionalProperties": True}, False),
        ({**STRICT, "required": []}, False),
        ({**STRICT, "properties": {"message": LOOSE}}, False),
        ({"type": "array", "items": STRICT}, True),
        ({"type": "array", "items": LOOSE}, False),
        ({"type": "object"}, False),
        ({"anyOf": [STRICT, {"type": "null"}]}, True),
        ({"allOf": [STRICT]}, False),
        ({"$defs": {"part": LOOSE}, **STRICT}, False),
    ],
)
def test_a_schema_is_strict_if_each_of_its_objects_is(schema: dict[str, Any], strict: bool) -> None:
    assert allows_strict(schema) is strict
