"""The embedder behind HTTP: what it sends, in batches, and what it makes of the answers."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
import trio

from callboard.runtime.backoff import Backoff
from callboard.runtime.embedder import Embedder
from callboard.runtime.errors import BrokenStream, ModelError, RateLimited
from callboard.runtime.models.http_embedder import HttpEmbedder

from .model_server import Answer, Exchange, Server, served, status, until

AT_ONCE = Backoff(attempts=3, first=0)


def vectors(texts: list[str]) -> list[dict[str, Any]]:
    """An embedding for each text, in an order of the server's own: its length, and one."""
    return [{"index": at, "embedding": [len(text), 1.0]} for at, text in reversed(list(enumerate(texts)))]


def answering(body: object) -> Answer:
    return status("200 OK", body if isinstance(body, str) else json.dumps(body))


async def embeds(exchange: Exchange) -> None:
    """The answer of a server that works."""
    body = json.dumps({"data": vectors(exchange.body["input"])})
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    await exchange.send(head + body)


@asynccontextmanager
async def embedder_at(answer: Answer, **options: Any) -> AsyncIterator[tuple[HttpEmbedder, Server]]:
    options = {"dimension": 2, "backoff": AT_ONCE, **options}
    async with served(answer) as (server, url), HttpEmbedder(url, name="small", **options) as embedder:
        yield embedder, server


async def test_each_text_has_a_row_of_length_one_in_the_order_of_the_texts() -> None:
    async with embedder_at(embeds) as (embedder, _):
        found = await embedder.embed(["", "abc"])
    assert found.dtype == np.float32 and found.shape == (2, 2)
    assert np.allclose(found, np.array([[0, 1], [3 / 10**0.5, 1 / 10**0.5]]))


async def test_the_request_is_that_of_the_embeddings() -> None:
    async with embedder_at(embeds, api_key="sk-0123456789", dimensions=2) as (embedder, server):
        await embedder.embed(["a"])
    (exchange,) = server.requests
    assert exchange.head.startswith("POST /v1/embeddings ") and "Bearer sk-0123456789\r\n" in exchange.head
    assert exchange.body == {"model": "small", "input": ["a"], "encoding_format": "float", "dimensions": 2}


async def test_many_texts_go_in_batches_over_one_connection() -> None:
    async with embedder_at(embeds, batch=3) as (embedder, server):
        found = await embedder.embed(["x" * length for length in range(8)])
    assert [len(exchange.body["input"]) for exchange in server.requests] == [3, 3, 2]
    assert (found.shape, server.connections) == ((8, 2), 1)
    assert np.allclose(found[:, 0] / found[:, 1], range(8))


async def test_no_texts_are_no_request() -> None:
    async with embedder_at(embeds) as (embedder, server):
        assert (await embedder.embed([])).shape == (0, 2)
    assert server.requests == []


async def test_a_vector_of_nothing_stays_one() -> None:
    async with embedder_at(answering({"data": [{"index": 0, "embedding": [0, 0]}]})) as (embedder, _):
        assert (await embedder.embed(["a"])).tolist() == [[0, 0]]


async def test_a_busy_server_is_asked_again() -> None:
    left = [status("503 Oops"), status("429 Slow")]

    async def answer(exchange: Exchange) -> None:
        await (left.pop() if left else embeds)(exchange)

    async with embedder_at(answer) as (embedder, server):
        assert (await embedder.embed(["a"])).shape == (1, 2)
    assert len(server.requests) == 3


async def test_the_last_failure_is_raised() -> None:
    async with embedder_at(status("429 Slow")) as (embedder, server):
        with pytest.raises(RateLimited):
            await embedder.embed(["a"])
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{oops", "no embeddings"),
        ([], "no embeddings"),
        ({"data": [{"index": 0}]}, "no embeddings"),
        ({"data": [{"index": 0, "embedding": ["x", "y"]}]}, "no embeddings"),
        ({"data": [{"index": 0, "embedding": [1, 2, 3]}]}, "1 x 3 numbers, not 1 x 2"),
        ({"data": []}, "not 1 x 2"),
        ('{"data": [{"index": 0, "embedding": [NaN, 1]}]}', "numbers, not"),
        ({"error": {"message": "no such model", "code": 404}}, "no such model"),
    ],
)
async def test_an_answer_without_the_vectors_is_an_error(body: object, words: str) -> None:
    async with embedder_at(answering(body)) as (embedder, _):
        with pytest.raises(ModelError, match=words):
            await embedder.embed(["a"])


async def test_an_answer_may_not_be_longer_than_the_limit() -> None:
    async with embedder_at(embeds, reply_limit=20) as (embedder, _):
        with pytest.raises(BrokenStream, match="more than 20 bytes"):
            await embedder.embed(["a"])


async def test_the_server_sees_a_cancelled_request_at_once() -> None:
    async def silent(exchange: Exchange) -> None:
        await exchange.wait_closed()

    async with embedder_at(silent) as (embedder, server):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(embedder.embed, ["a"])
            await until(lambda: bool(server.requests))
            nursery.cancel_scope.cancel()
        await until(lambda: server.open == 0)


def test_an_embedder_says_what_its_vectors_are() -> None:
    embedder: Embedder = HttpEmbedder("http://a/v1", name="small", dimension=8, threshold=0.3)
    assert (embedder.id, embedder.dimension, embedder.threshold) == ("small/8", 8, 0.3)
    assert HttpEmbedder("http://a/v1", name="small", dimension=8).threshold == 0.2


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="batch"):
        HttpEmbedder("http://a/v1", name="small", dimension=8, batch=0)
