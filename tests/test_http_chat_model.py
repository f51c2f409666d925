"""The model behind HTTP, against a server of raw bytes on the loopback: what it sends, reads, closes and raises."""

import gc
import json
import logging
import socket
import subprocess
import sys
from typing import Any

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from callboard.runtime.actor import Actor
from callboard.runtime.chat_model import (
    ChatRequest,
    Delta,
    EndDelta,
    FilePart,
    ImagePart,
    Message,
    ReasoningDelta,
    TextDelta,
    UsageDelta,
)
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import ModelError
from callboard.runtime.models import HttpChatModel
from callboard.runtime.models.http_chat_model import KEY_VARIABLE
from callboard.runtime.models.line_reader import LINE_LIMIT
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post

from .model_server import (
    HEAD,
    KEY,
    REQUEST,
    Answer,
    Exchange,
    ask,
    chunks,
    endless,
    events,
    failure,
    hello,
    model_at,
    piece,
    saying,
    status,
    stop,
    until,
)


async def test_a_reply_comes_as_text_and_an_end() -> None:
    async with model_at(hello) as (model, _):
        assert await ask(model) == [TextDelta("Hel"), TextDelta("lo"), EndDelta("stop")]


async def test_the_request_is_that_of_the_chat_completions() -> None:
    async with model_at(hello, api_key=KEY, headers={"X-Team": "a"}, temperature=0.5, seed=7) as (model, server):
        await ask(model)
    (exchange,) = server.requests
    assert exchange.head.startswith("POST /v1/chat/completions HTTP/1.1\r\n")
    assert f"Authorization: Bearer {KEY}\r\n" in exchange.head and "X-Team: a\r\n" in exchange.head
    assert exchange.body == {
        "model": "small",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "seed": 7,
    }


async def test_a_delta_comes_when_the_server_sends_it() -> None:
    async with model_at(endless) as (model, _), model.stream(REQUEST) as deltas:
        assert await anext(deltas) == TextDelta("x")


async def test_usage_and_the_reason_of_the_end_come_too() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}}
    async with model_at(events(piece("a", usage=None), stop("length"), usage, "[DONE]")) as (model, _):
        assert await ask(model) == [TextDelta("a"), UsageDelta(5, 2), EndDelta("length")]


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
async def test_reasoning_is_no_part_of_the_reply(name: str) -> None:
    first = {"choices": [{"delta": {"role": "assistant", "content": "", name: "hm"}}]}
    async with model_at(events(first, piece("a"), stop())) as (model, _):
        assert await ask(model) == [ReasoningDelta("hm"), TextDelta("a"), EndDelta("stop")]


async def test_what_is_not_known_is_left_out() -> None:
    odd = [{}, {"choices": None}, {"choices": [{"delta": {"tool_calls": []}}]}, {"usage": {"prompt_tokens": None}}]
    async with model_at(events(*odd, piece("a"), "[DONE]")) as (model, _):
        assert await ask(model) == [TextDelta("a"), EndDelta("stop")]


async def test_separators_in_a_text_are_text_and_half_a_pair_is_replaced() -> None:
    raw = 'data: {"choices": [{"delta": {"content": "a\u2028b\x85c\\ud83d\\ude00\\ud83d"}}]}\n\ndata: [DONE]\n\n'
    whole = raw.encode()
    async with model_at(chunks(*[whole[at : at + 7] for at in range(0, len(whole), 7)])) as (model, _):
        assert await ask(model) == [TextDelta("a\u2028b\x85c😀"), TextDelta("\ufffd"), EndDelta("stop")]


ERROR = json.dumps({"error": {"message": "too hot", "type": "x"}})
FAULTS: dict[str, tuple[Answer, str, bool, str]] = {
    "400": (status("400 Bad Request", ERROR), "caller", False, "HTTP 400: too hot$"),
    "401": (status("401 Unauthorized"), "caller", False, "HTTP 401$"),
    "404 of another shape": (status("404 Not Found", '{"detail": "no\\n model"}'), "caller", False, "404: no model$"),
    "429": (status("429 Too Many Requests", ERROR), "caller", True, "HTTP 429: too hot"),
    "500": (status("500 Oops", '{"error": "full"}'), "server", True, "HTTP 500: full"),
    "503 of a proxy": (status("503 Oops", "<b>down\x1b</b>", "text/html"), "server", True, "503: <b>down</b>$"),
    "redirect": (status("302 Found", "", "text/html"), "caller", False, "HTTP 302"),
    "a page": (status("200 OK", "<html>", "text/html"), "server", False, "the reply is text/html"),
    "no stream": (status("200 OK", '{"choices": []}'), "server", False, "application/json in identity"),
    "200, error": (status("200 OK", ERROR), "server", True, "reports an error: too hot"),
    "200, code": (status("200 OK", '{"error": {"code": 429, "message": "no"}}'), "caller", True, "error: no"),
    "200, type": (status("200 OK", '{"error": {"type": "invalid_request_error"}}'), "caller", False, "an error"),
    "error event": (events(piece("a"), json.loads(ERROR)), "server", True, "reports an error: too hot"),
    "no JSON": (events(piece("a"), "{oops"), "server", False, "no JSON: {oops"),
    "deep JSON": (events("[" * 100_000), "server", False, "no JSON"),
    "no object": (events("[1]"), "server", False, "no object"),
    "no end": (events(piece("a")), "server", True, "ended before the reply was complete"),
    "no text": (chunks(b"data: \xff\n\n"), "server", False, "no UTF-8"),
    "a long line": (chunks(b"data: " + b"x" * LINE_LIMIT), "server", False, "a line of more than"),
    "broken off": (saying(HEAD + "ff\r\ndata: "), "network", True, "the reply broke off"),
    "no HTTP": (saying("hello\r\n\r\n"), "network", True, "or is no HTTP"),
    "gone": (saying(""), "network", True, "broke off"),
    "zipped": (
        saying(HEAD[:-2] + "Content-Encoding: gzip\r\n\r\n1\r\nx\r\n0\r\n\r\n"),
        "server",
        False,
        "in gzip, not plain",
    ),
    "zipped error": (saying("HTTP/1.1 500 Oops\r\nContent-Encoding: br\r\n\r\nx"), "server", True, "HTTP 500$"),
}


@pytest.mark.parametrize(("answer", "fault", "may_retry", "words"), FAULTS.values(), ids=FAULTS)
async def test_each_failure_says_whose_fault_it_is(answer: Answer, fault: str, may_retry: bool, words: str) -> None:
    error = await failure(answer)
    assert (error.fault, error.may_retry) == (fault, may_retry)
    with pytest.raises(ModelError, match=words):
        raise error
    assert error.message.startswith("small at http://127.0.0.1:") or "the server sent" in error.message


async def test_a_reset_in_the_middle_is_the_fault_of_the_network() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(HEAD)
        await exchange.events(piece("a"))
        exchange.reset()

    error = await failure(answer)
    assert (error.fault, error.may_retry, isinstance(error.__cause__, httpx.NetworkError)) == ("network", True, True)


async def test_a_server_that_is_not_there_is_the_fault_of_the_network() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with HttpChatModel(f"http://127.0.0.1:{taken.getsockname()[1]}/v1", name="small") as model:
            with pytest.raises(ModelError, match="ConnectError") as caught, trio.fail_after(20):
                await ask(model)
    assert (caught.value.fault, caught.value.may_retry) == ("network", True)


async def test_silence_is_the_fault_of_the_network(autojump_clock: MockClock) -> None:
    error = await failure(endless, timeout=5)
    assert (error.fault, error.may_retry) == ("network", True)
    assert "timed out" in error.message


async def test_what_came_before_an_error_is_delivered() -> None:
    one_chunk = "".join(f"data: {json.dumps(piece(text))}\n\n" for text in "ab") + "data: {oops\n\n"
    came: list[Delta] = []
    async with model_at(chunks(one_chunk)) as (model, _):
        with pytest.raises(ModelError, match="no JSON"):
            await ask(model, came)
    assert came == [TextDelta("a"), TextDelta("b")]


async def test_the_body_of_an_error_is_quoted_in_part() -> None:
    error = await failure(status("500 Oops", "x" * 1_000_000, "text/plain"))
    assert error.message.endswith("x…") and len(error.message) < 400


async def test_the_body_of_an_error_may_come_for_ever() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(HEAD.replace("200", "500"))
        while True:
            await exchange.chunk("x" * 10_000)

    assert "HTTP 500: xxx" in (await failure(answer)).message


async def test_a_request_that_httpx_refuses_is_the_fault_of_the_caller() -> None:
    error = await failure(hello, headers={"no name": "x"})
    assert (error.fault, error.may_retry) == ("caller", False)


async def test_an_error_in_the_block_is_the_block_s() -> None:
    async with model_at(hello) as (model, server):
        with pytest.raises(httpx.ReadError):
            async with model.stream(REQUEST) as deltas:
                await anext(deltas)
                raise httpx.ReadError("mine")
        await until(lambda: server.open == 0)


async def test_the_server_sees_a_cancelled_reader_at_once() -> None:
    async with model_at(endless) as (model, server):
        async with trio.open_nursery() as nursery:
            came: list[Delta] = []
            nursery.start_soon(ask, model, came)
            await until(lambda: bool(came))
            assert (server.open, model.statistics().streaming) == (1, 1)
            nursery.cancel_scope.cancel()
        assert model.statistics().streaming == 0
        await until(lambda: server.open == 0)


async def test_the_server_sees_that_the_block_was_left_early() -> None:
    async with model_at(endless) as (model, server):
        async with model.stream(REQUEST) as deltas:
            await anext(deltas)
        await until(lambda: server.open == 0)
        gc.collect()  # a generator that was not closed would warn here, which is an error


async def test_the_server_sees_a_block_that_is_cancelled_between_two_deltas() -> None:
    async with model_at(endless) as (model, server):
        with trio.CancelScope() as scope:
            async with model.stream(REQUEST) as deltas:
                await anext(deltas)
                scope.cancel()
                await trio.lowlevel.checkpoint()
        assert scope.cancelled_caught
        await until(lambda: server.open == 0)
        gc.collect()


async def test_an_error_outlives_a_cancellation_that_comes_with_it() -> None:
    async with model_at(endless) as (model, _):
        with pytest.raises(ValueError, match="mine"), trio.CancelScope() as scope:
            async with model.stream(REQUEST) as deltas:
                await anext(deltas)
                scope.cancel()
                raise ValueError("mine")


def pool(model: Any) -> Any:
    """The pool inside httpx, which keeps a lost slot for ever."""
    return model._endpoint._client._transport._pool


async def test_no_slot_is_lost_to_two_hundred_cancelled_requests() -> None:
    scopes = [trio.CancelScope() for _ in range(200)]
    came: list[list[Delta]] = [[] for _ in scopes]

    async def cancelled(number: int) -> None:
        with scopes[number]:
            await ask(model, came[number])

    async def cut(number: int) -> None:
        """Each at another step of its way: in the queue, while it connects, and every fifth while it reads."""
        if number % 5 == 0:
            await until(lambda: bool(came[number]))
        for _ in range(number % 40):
            await trio.lowlevel.checkpoint()
        scopes[number].cancel()

    async with model_at(endless, limit=3) as (model, server):
        async with trio.open_nursery() as nursery:
            for number in range(200):
                nursery.start_soon(cancelled, number)
                await wait_all_tasks_blocked()  # so that they stand in line in their order
            for number in range(200):
                await cut(number)
        await until(lambda: server.open == 0)
        assert model.statistics().streaming == model.statistics().waiting == 0
        assert pool(model).connections == [] and pool(model)._requests == []
        server.answer = hello
        async with model.stream(REQUEST), model.stream(REQUEST), model.stream(REQUEST):
            assert model.statistics().streaming == 3
        assert len(await ask(model)) == 3 and len(server.requests) > 40


async def test_requests_beyond_the_limit_wait_for_one_to_end() -> None:
    async with model_at(endless, limit=2) as (model, server), trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask, model)
        await until(lambda: len(server.requests) == 2)
        statistics = model.statistics()
        assert (statistics.limit, statistics.streaming, statistics.waiting) == (2, 2, 3)
        nursery.cancel_scope.cancel()


async def test_the_connection_of_a_complete_reply_is_used_again() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(HEAD)
        await exchange.events(piece("a"), stop(), "[DONE]")
        await wait_all_tasks_blocked()  # the client has read all this, and waits for the end of the body
        await exchange.send("0\r\n\r\n")

    async with model_at(answer) as (model, server):
        for _ in range(3):
            await ask(model)
        assert server.connections == 1


@pytest.fixture
def patient_clock() -> MockClock:
    """Jumps only when the loopback has nothing more to bring."""
    return MockClock(autojump_threshold=0.02)


async def test_a_server_that_never_closes_a_complete_reply_delays_nobody_for_long(patient_clock: MockClock) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(HEAD)
        await exchange.events(piece("a"), stop(), "[DONE]")
        await exchange.wait_closed()

    async with model_at(answer) as (model, server):
        start = trio.current_time()
        assert await ask(model) == [TextDelta("a"), EndDelta("stop")]
        assert trio.current_time() - start < 1
        await until(lambda: server.open == 0)


class Writer(Actor):
    """Answers with what the model says."""

    name = "Writer"

    def __init__(self, model: HttpChatModel) -> None:
        self.model = model

    async def receive(self, post: Post, context: TurnContext) -> Post:
        async with self.model.stream(ChatRequest("Writer", (Message("user", post.message),))) as deltas:
            return post.reply("".join([delta.text async for delta in deltas if isinstance(delta, TextDelta)]))


async def test_two_conversations_share_a_model() -> None:
    async def answer(exchange: Exchange) -> None:
        both.append(exchange)
        await until(lambda: len(both) == 2)
        await exchange.reply(piece(exchange.body["messages"][0]["content"].upper()), stop(), "[DONE]")

    both: list[Exchange] = []
    async with (
        model_at(answer) as (model, _),
        open_conversation(Writer(model)) as first,
        open_conversation(Writer(model)) as second,
    ):
        started = [first.communicate("one"), second.communicate("two")]
        replies = [await receipt.reply() for receipt in started]
    assert [reply.message for reply in replies if reply] == ["ONE", "TWO"]


async def test_an_echoed_key_is_in_no_error_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    other = "another-secret"
    body = json.dumps({"error": {"message": f"wrong key Bearer {KEY}{'.' * 400} {other}"}})
    error = await failure(status("401 Unauthorized", body), api_key=KEY, headers={"api-key": other})
    assert "wrong key Bearer [secret]" in str(error)
    assert not any(secret in text for secret in (KEY, other) for text in (str(error), repr(error), caplog.text))


async def test_the_key_of_the_environment_is_sent_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, f"{KEY}\n")
    async with model_at(hello) as (model, server):
        await ask(model)
        assert f"Authorization: Bearer {KEY}\r\n" in server.requests[0].head
        assert repr(model).startswith("<HttpChatModel small at http://127.0.0.1:")
        assert not any(
            KEY in text for text in (repr(model), str(model), repr(model._endpoint), repr(model._endpoint.errors))
        )


async def test_without_a_key_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    async with model_at(hello) as (model, server):
        await ask(model)
    assert "authorization" not in server.requests[0].head.lower()


@pytest.mark.parametrize("options", [{"api_key": f"a\n{KEY}"}, {"headers": {"a": f"{KEY}é"}}], ids=["key", "header"])
def test_a_key_that_cannot_be_sent_is_refused_unseen(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no header may have") as caught:
        HttpChatModel("http://a/v1", name="small", **options)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["ftp://host/v1", "host/v1", "http://", "http://me:pass-word@host/v1", "http://host:pass-word/v1"]
)
def test_an_address_that_cannot_be_used_is_refused_unseen(url: str) -> None:
    with pytest.raises(ValueError, match="the base_url") as caught:
        HttpChatModel(url, name="small")
    assert "pass-word" not in str(caught.value)


def test_an_option_must_be_json() -> None:
    with pytest.raises(ValueError, match="JSON"):
        HttpChatModel("http://a/v1", name="small", temperature=float("nan"))


async def test_a_model_is_used_inside_its_block() -> None:
    model = HttpChatModel("http://a/v1", name="small")
    with pytest.raises(RuntimeError, match="inside"):
        await ask(model)
    async with model:
        with pytest.raises(RuntimeError, match="entered already"):
            await model.__aenter__()
    assert model.name == "small"


async def test_a_client_that_was_given_is_left_open() -> None:
    async with httpx.AsyncClient() as client:
        async with model_at(hello, client=client) as (model, _):
            await ask(model)
        assert not client.is_closed


def test_httpx_comes_with_the_models_alone() -> None:
    program = "import sys, callboard.runtime.scripted_model; print('httpx' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    assert printed.stdout == "False\n"


async def test_images_and_files_stand_behind_the_text() -> None:
    image, file = ImagePart("https://host/a.png"), FilePart("a.pdf", "data:application/pdf;base64,AA==")
    messages = (Message("user", "look", (image, file)), Message("user", "", (image,)))
    async with model_at(hello) as (model, server), model.stream(ChatRequest("writer", messages)) as deltas:
        assert [delta async for delta in deltas]
    shown = {"type": "image_url", "image_url": {"url": "https://host/a.png"}}
    handed = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}}
    with_text, without = server.requests[0].body["messages"]
    assert with_text == {"role": "user", "content": [{"type": "text", "text": "look"}, shown, handed]}
    assert without == {"role": "user", "content": [shown]}


async def test_each_role_has_the_model_that_it_was_given() -> None:
    async with model_at(hello) as (small, first), model_at(hello, temperature=0.1) as (large, second):
        for model in (small, large):
            async with open_conversation(Writer(model)) as conversation:
                await conversation.send("Go.")
    assert ["temperature" in server.requests[0].body for server in (first, second)] == [False, True]


async def test_models_share_the_certificates_of_the_machine() -> None:
    async with model_at(hello) as (first, _), model_at(hello) as (second, _):
        assert pool(first) is not pool(second) and pool(first)._ssl_context is pool(second)._ssl_context
