"""Anthropic's Messages, against streams in their format: what is sent, read and raised."""

import json
from typing import Any

import pytest

from callboard.runtime.chat_model import (
    ChatRequest,
    Delta,
    EndDelta,
    FilePart,
    ImagePart,
    Message,
    ReasoningDelta,
    ReplySchema,
    RetryingDelta,
    TextDelta,
    UsageDelta,
)
from callboard.runtime.errors import (
    AuthenticationFailed,
    BrokenStream,
    ContentRefused,
    ContextTooLong,
    ModelError,
    Overloaded,
    RateLimited,
)
from callboard.runtime.json_value import FrozenMapping
from callboard.runtime.models import AnthropicModel
from callboard.runtime.models.anthropic_model import KEY_VARIABLE

from .model_server import HEAD, Answer, Exchange, Server, ask, served, status

SCHEMA = {"type": "object", "properties": {"message": {"type": "string"}}}
ASKED = (Message("user", "hi"),)


def begun(**usage: int) -> dict[str, Any]:
    counted = {"input_tokens": 10, "output_tokens": 1, **usage}
    message: dict[str, Any] = {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
    }
    return {"type": "message_start", "message": {**message, "usage": counted}}


def block(index: int, kind: str, **more: object) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **more}}


def delta(index: int, kind: str, **more: object) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}


def ended(reason: str = "end_turn", tokens: int = 5) -> list[dict[str, Any]]:
    stopped = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": stopped, "usage": {"output_tokens": tokens}},
        {"type": "message_stop"},
    ]


HELLO = [
    begun(),
    block(0, "text", text=""),
    {"type": "ping"},
    delta(0, "text_delta", text="Hel"),
    delta(0, "text_delta", text="lo"),
    {"type": "content_block_stop", "index": 0},
    *ended(),
]


def stream(*events: dict[str, Any]) -> Answer:
    """An answer in the server's way: each event with its name."""

    async def answer(exchange: Exchange) -> None:
        await exchange.send(HEAD)
        for event in events:
            await exchange.chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n")
        await exchange.send("0\r\n\r\n")

    return answer


async def asked(answer: Answer, request: ChatRequest | None = None, **options: Any) -> tuple[list[Delta], Server]:
    """All deltas of one reply, and the server."""
    async with (
        served(answer) as (server, url),
        AnthropicModel(url, name="claude", **options) as model,
        model.stream(request or ChatRequest("writer", ASKED)) as deltas,
    ):
        return [delta async for delta in deltas], server


async def failed(answer: Answer) -> ModelError:
    async with served(answer) as (_, url), AnthropicModel(url, name="claude") as model:
        with pytest.raises(ModelError) as caught:
            await ask(model)
    return caught.value


async def sent(*messages: Message, **options: Any) -> Any:
    """The body of a request with these messages."""
    _, server = await asked(stream(*HELLO), ChatRequest("writer", messages), **options)
    return server.requests[0].body


async def test_a_reply_comes_as_text_with_its_tokens_and_an_end() -> None:
    found, _ = await asked(stream(*HELLO))
    assert found == [UsageDelta(10, 1), TextDelta("Hel"), TextDelta("lo"), UsageDelta(10, 5), EndDelta("stop")]


async def test_the_request_is_that_of_the_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sk-secret-0123")
    _, server = await asked(stream(*HELLO), temperature=0.5)
    (exchange,) = server.requests
    assert exchange.head.startswith("POST /v1/messages HTTP/1.1\r\n")
    assert "x-api-key: sk-secret-0123\r\n" in exchange.head and "anthropic-version: 2023-06-01\r\n" in exchange.head
    assert exchange.body == {
        "max_tokens": 8192,
        "temperature": 0.5,
        "model": "claude",
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }


async def test_the_system_is_apart_and_neighbours_are_one_message() -> None:
    body = await sent(
        Message("system", "Be brief."),
        Message("user", "a"),
        Message("user", "b"),
        Message("assistant", "c"),
        Message("user", ""),
        Message("system", "It is late."),
    )
    assert body["system"] == [{"type": "text", "text": "Be brief."}]
    assert [(turn["role"], [part["text"] for part in turn["content"]]) for turn in body["messages"]] == [
        ("user", ["a", "b"]),
        ("assistant", ["c"]),
        ("user", ["It is late."]),
    ]


async def test_images_and_files_are_blocks() -> None:
    parts = (
        ImagePart("data:image/png;base64,AA=="),
        ImagePart("https://host/a,b.png"),
        FilePart("a.pdf", "data:application/pdf;base64,AA=="),
        FilePart("a.txt", "data:text/plain;base64,aGk="),
    )
    body = await sent(Message("user", "look", parts))
    _, first, second, third, fourth = body["messages"][0]["content"]
    assert first == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    assert second == {"type": "image", "source": {"type": "url", "url": "https://host/a,b.png"}}
    assert (third["title"], third["source"]["media_type"]) == ("a.pdf", "application/pdf")
    assert fourth["source"] == {"type": "text", "media_type": "text/plain", "data": "hi"}


async def test_thoughts_are_no_part_of_the_reply() -> None:
    thinking = [
        block(0, "thinking", thinking=""),
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "signature_delta", signature="EqQBCg=="),
        block(1, "redacted_thinking", data="Em"),
    ]
    found, _ = await asked(stream(begun(), *thinking, delta(2, "text_delta", text="Yes."), *ended()))
    assert found[1:3] == [ReasoningDelta("hm"), TextDelta("Yes.")] and len(found) == 5


async def test_what_was_read_from_the_cache_is_part_of_the_input() -> None:
    found, _ = await asked(stream(begun(cache_read_input_tokens=100, cache_creation_input_tokens=20), *ended()))
    assert found[-2] == UsageDelta(130, 5, 100)


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause_turn"),
    ],
)
async def test_the_reason_of_the_end_has_the_name_that_all_models_have_for_it(reason: str, end: str) -> None:
    assert (await asked(stream(begun(), *ended(reason))))[0][-1] == EndDelta(end)


async def test_a_refusal_is_no_reply() -> None:
    assert isinstance(await failed(stream(begun(), *ended("refusal"))), ContentRefused)


async def test_an_error_in_the_middle_of_a_stream_has_its_class() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    found = await failed(stream(*HELLO[:4], error))
    assert isinstance(found, Overloaded) and found.may_retry and "Overloaded" in found.message


async def test_a_stream_that_ends_early_is_broken() -> None:
    assert isinstance(await failed(stream(*HELLO[:-1])), BrokenStream)


@pytest.mark.parametrize(
    ("line", "kind", "words", "expected"),
    [
        ("429 Too Many", "rate_limit_error", "slow down", RateLimited),
        ("401 Unauthorized", "authentication_error", "invalid x-api-key", AuthenticationFailed),
        ("529 Overloaded", "overloaded_error", "Overloaded", Overloaded),
        ("400 Bad", "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", ContextTooLong),
        ("400 Bad", "invalid_request_error", "max_tokens: Field required", ModelError),
    ],
)
async def test_a_refused_request_has_its_class(line: str, kind: str, words: str, expected: type) -> None:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"})
    assert type(await failed(status(line, body))) is expected


async def test_a_schema_is_a_format_and_joins_the_options_that_stand_beside_it() -> None:
    request = ChatRequest("writer", ASKED, ReplySchema("reply", FrozenMapping(SCHEMA)))
    _, server = await asked(stream(*HELLO), request, output_config={"effort": "low"})
    form = {"type": "json_schema", "schema": SCHEMA}
    assert server.requests[0].body["output_config"] == {"effort": "low", "format": form}


async def test_a_refused_format_becomes_a_tool_whose_arguments_are_the_reply() -> None:
    async def answer(exchange: Exchange) -> None:
        if "output_config" in exchange.body:
            error = {"type": "invalid_request_error", "message": "output_config.format: not supported"}
            return await status("400 Bad", json.dumps({"type": "error", "error": error}))(exchange)
        call = block(0, "tool_use", id="toolu_1", name="reply", input={})
        pieces = [delta(0, "input_json_delta", partial_json=text) for text in ("", '{"mess', 'age": "x"}')]
        await stream(begun(), call, *pieces, *ended("tool_use"))(exchange)

    found, server = await asked(answer, ChatRequest("writer", ASKED, ReplySchema("reply", FrozenMapping(SCHEMA))))
    body = server.requests[1].body
    assert body["tools"] == [{"name": "reply", "input_schema": SCHEMA}]
    assert body["tool_choice"] == {"type": "tool", "name": "reply"}
    assert isinstance(found[0], RetryingDelta)
    assert "".join(one.text for one in found if isinstance(one, TextDelta)) == '{"message": "x"}'
    assert found[-1] == EndDelta("stop")
