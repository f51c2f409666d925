"""A local server of embeddings with an Embedder behind it, as HttpEmbedder speaks to one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from callboard.runtime.embedder import Embedder

_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"


@asynccontextmanager
async def served(embedder: Embedder) -> AsyncIterator[str]:
    """The address of a server for the length of the block. It answers requests that are well-formed."""

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            data = b""
            while received := await stream.receive_some():
                data += received
                while (request := _cut(data)) is not None:
                    body, data = request
                    await stream.send_all(await _answer(embedder, body))

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}/v1"
        nursery.cancel_scope.cancel(reason="the measure is over")


def _cut(data: bytes) -> tuple[bytes, bytes] | None:
    """The body of the first request and what follows it, if it is there as a whole."""
    head, ended, rest = data.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    length = int(fields.get(b"content-length", 0))
    return (rest[:length], rest[length:]) if ended and len(rest) >= length else None


async def _answer(embedder: Embedder, body: bytes) -> bytes:
    matrix = await embedder.embed(json.loads(body)["input"])
    data = [{"index": at, "embedding": row} for at, row in enumerate(matrix.tolist())]
    answer = json.dumps({"data": data}).encode()
    return _HEAD.format(len(answer)).encode() + answer
