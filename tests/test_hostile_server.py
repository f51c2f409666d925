"""Servers that do harm: whatever comes over the wire is a reply or one ModelError, in bounded time and memory."""

import json
import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from callboard.runtime.chat_model import Delta, EndDelta, TextDelta
from callboard.runtime.errors import BrokenStream, ModelError, ModelTimedOut
from callboard.runtime.models import HttpChatModel

from .model_server import (
    HEAD,
    REQUEST,
    Answer,
    Exchange,
    ask,
    endless,
    failure,
    hello,
    model_at,
    piece,
    saying,
    stop,
    until,
)


def recorded() -> bytes:
    """The bytes of a whole reply, head and all."""
    events = [piece("Hel"), piece("lo 😀"), stop()]
    chunks = [f"data: {json.dumps(event)}\n\n".encode() for event in events] + [b"data: [DONE]\n\n"]
    return HEAD.encode() + b"".join(f"{len(one):x}\r\n".encode() + one + b"\r\n" for one in chunks) + b"0\r\n\r\n"


REPLY = recorded()
"""Up to its end a client may be content with less than the server would send: all that is behind `[DONE]`."""
ENOUGH = REPLY.index(b"[DONE]\n\n") + len("[DONE]\n\n")


def cut(at: int, *, reset: bool) -> Answer:
    """The answer that ends after so many bytes."""

    async def answer(exchange: Exchange) -> None:
        await exchange.send(REPLY[:at])
        if not reset:
            return await exchange.stream.aclose()
        await wait_all_tasks_blocked()  # a reset also takes away what has not been read
        exchange.reset()

    return answer


async def outcome(model: HttpChatModel) -> tuple[str, ModelError | None]:
    """The text of a reply as far as it came, and its error."""
    came: list[Delta] = []
    error = None
    try:
        await ask(model, came)
    except ModelError as failed:
        error = failed
    return "".join(delta.text for delta in came if isinstance(delta, TextDelta)), error


def check(at: int, text: str, error: ModelError | None) -> None:
    """What has come is a beginning of the reply, and it counts as complete only if it is."""
    assert "Hello 😀".startswith(text)
    if at >= ENOUGH:
        assert (text, error) == ("Hello 😀", None)
    else:
        assert error is not None and error.may_retry and error.fault in ("network", "server")


async def cut_everywhere(places: range, *, reset: bool) -> None:
    async with model_at(hello) as (model, server):
        for at in places:
            server.answer = cut(at, reset=reset)
            check(at, *await outcome(model))
            assert model.statistics().streaming == 0
        await until(lambda: server.open == 0)  # else the last connection may be used once more before its end is seen
        server.answer = hello
        assert await ask(model)


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_a_connection_may_end_at_any_byte(reset: bool) -> None:
    await cut_everywhere(range(3, len(REPLY), 61), reset=reset)


@pytest.mark.slow
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_a_connection_may_end_at_each_byte(reset: bool) -> None:
    await cut_everywhere(range(len(REPLY) + 1), reset=reset)


async def test_a_reply_may_come_byte_by_byte() -> None:
    async def answer(exchange: Exchange) -> None:
        for byte in REPLY:
            await exchange.send(bytes([byte]))

    async with model_at(answer) as (model, _):
        assert await outcome(model) == ("Hello 😀", None)


async def slow_head(exchange: Exchange) -> None:
    await exchange.send(HEAD[:20])
    await exchange.wait_closed()


async def half_a_chunk(exchange: Exchange) -> None:
    await exchange.send(HEAD + "40\r\ndata: ")
    await exchange.wait_closed()


async def half_an_event(exchange: Exchange) -> None:
    await exchange.send(HEAD)
    await exchange.chunk('data: {"choices": [')
    await exchange.wait_closed()


async def silent(exchange: Exchange) -> None:
    await exchange.wait_closed()


async def half_an_error(exchange: Exchange) -> None:
    await exchange.send("HTTP/1.1 500 Oops\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{")
    await exchange.stream.aclose()


@pytest.mark.parametrize("answer", [silent, slow_head, half_a_chunk, half_an_event])
async def test_a_server_that_falls_silent_is_given_up_on(answer: Answer) -> None:
    error = await failure(answer, timeout=0.02)
    assert isinstance(error, ModelTimedOut) and (error.fault, error.may_retry) == ("network", True)


async def test_half_an_error_is_an_error() -> None:
    error = await failure(half_an_error)
    assert "HTTP 500" in error.message and error.may_retry


BROKEN = {
    "no status": "HTTP/1.1\r\n\r\n",
    "an endless status": "HTTP/1.1 200 " + "x" * 200_000,
    "no chunks": HEAD + "hello\r\n",
    "a chunk too short": HEAD + "5\r\ndata: {}\n\n\r\n",
    "a length that lies": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 999\r\n\r\ndata: [",
    "two lengths": "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    "a null": HEAD + "3\r\n\0\0\0\r\n0\r\n\r\n",
    "no text": HEAD.encode() + b"9\r\ndata: \xc3(\n\r\n0\r\n\r\n",
    "half a character": HEAD.encode() + b"8\r\ndata: \xe2\x82\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
async def test_what_is_no_reply_is_a_broken_stream(answer: str | bytes) -> None:
    assert isinstance(await failure(saying(answer)), BrokenStream)


@pytest.mark.parametrize("seed", range(5))
async def test_a_reply_with_a_wrong_byte_is_a_reply_or_an_error(seed: int) -> None:
    source = random.Random(seed)
    async with model_at(hello) as (model, server):
        for _ in range(4):
            at = source.randrange(len(REPLY))
            server.answer = saying(REPLY[:at] + source.randbytes(1) + REPLY[at + 1 :])
            await outcome(model)
        server.answer = hello
        assert (await ask(model))[-1] == EndDelta("stop")


def much(event: Callable[[], str], megabytes: int) -> Answer:
    """The answer of so many megabytes, in chunks of one."""

    async def answer(exchange: Exchange) -> None:
        text = event()
        text *= max(1, 1_000_000 // len(text))
        await exchange.send(HEAD)
        for _ in range(megabytes):
            await exchange.chunk(text)
        await exchange.send("0\r\n\r\n")

    return answer


FLOODS = {
    "one line": (lambda: "x" * 1_000_000, "a line of more than 1048576 bytes"),
    "one event": (lambda: "data: " + "x" * 1000 + "\n", "an event of more than"),
    "many pieces": (lambda: f"data: {json.dumps(piece('x' * 1000))}\n\n", "more than 200000 bytes"),
    "comments": (lambda: ": still here" + " " * 500 + "\n\n", "more than 200000 bytes"),
}


@pytest.mark.parametrize(("event", "words"), FLOODS.values(), ids=FLOODS)
async def test_a_flood_ends_at_the_limit(event: Callable[[], str], words: str) -> None:
    limit = {} if "line" in words or "event" in words else {"reply_limit": 200_000}
    error = await failure(much(event, 5), **limit)
    assert isinstance(error, BrokenStream) and words in error.message and not error.may_retry


async def test_the_limits_of_a_line_can_be_set() -> None:
    async with model_at(hello, line_limit=10) as (model, _):
        with pytest.raises(BrokenStream, match="more than 10 bytes"):
            await ask(model)


@pytest.mark.slow
@pytest.mark.parametrize("event", [event for event, _ in FLOODS.values()], ids=FLOODS)
async def test_a_hundred_megabytes_take_no_memory(event: Callable[[], str]) -> None:
    async with model_at(much(event, 100), seconds=100) as (model, _):
        tracemalloc.start()
        try:
            with pytest.raises(BrokenStream):
                async with model.stream(REQUEST) as deltas:
                    async for _delta in deltas:
                        pass
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    print(f"{peak / 1e6:.1f} MB at most")
    assert peak < 20e6


@pytest.mark.slow
async def test_no_slot_is_lost_to_ten_thousand_cancelled_requests() -> None:
    """Under contention: three hundred at a time for fifty slots, each cut at a random step of its way."""
    source = random.Random(1)

    async def one(model: HttpChatModel) -> None:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, model)
                for _ in range(source.randrange(60)):
                    await trio.lowlevel.checkpoint()
                scope.cancel()

    async with model_at(endless, limit=50, seconds=100) as (model, server):
        for _ in range(34):
            async with trio.open_nursery() as nursery:
                for _ in range(300):
                    nursery.start_soon(one, model)
        await until(lambda: server.open == 0)
        client: Any = model._endpoint._client
        print(f"{len(server.requests)} of 10,200 requests came to the server, {server.connections} connections")
        assert client._transport._pool.connections == [] and model.statistics().streaming == 0
        assert len(server.requests) > 500
        server.answer = hello
        async with trio.open_nursery() as nursery:
            for _ in range(60):
                nursery.start_soon(ask, model)
