"""A server of raw bytes on the loopback, for the tests of what stands behind HTTP, and the answers that it may give."""

import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from callboard.runtime.chat_model import ChatModel, ChatRequest, Delta, Message
from callboard.runtime.errors import ModelError
from callboard.runtime.models import HttpChatModel

KEY = "sk-very-secret-0123456789"
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
REQUEST = ChatRequest("writer", (Message("system", "be brief"), Message("user", "hello")))


@dataclass
class Exchange:
    """One request and the connection to answer it on."""

    stream: trio.SocketStream
    head: str
    body: Any

    async def send(self, text: str | bytes) -> None:
        await self.stream.send_all(text.encode() if isinstance(text, str) else text)

    async def chunk(self, data: str | bytes) -> None:
        data = data.encode() if isinstance(data, str) else data
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def events(self, *data: object) -> None:
        for one in data:
            await self.chunk(f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n")

    async def reply(self, *data: object) -> None:
        """A whole answer."""
        await self.send(HEAD)
        await self.events(*data)
        await self.send("0\r\n\r\n")

    async def wait_closed(self) -> None:
        """Until the client has gone."""
        with suppress(trio.BrokenResourceError):
            assert await self.stream.receive_some() == b""

    def reset(self) -> None:
        """Ends the connection as a server does that crashes."""
        self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.stream.socket.close()


Answer = Callable[[Exchange], Awaitable[None]]


@dataclass
class Server:
    """Answers each request with the same function."""

    answer: Answer
    connections: int = 0
    open: int = 0
    requests: list[Exchange] = field(default_factory=list)

    async def serve(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        self.open += 1
        try:
            async with stream:
                while exchange := await self.read(stream):
                    self.requests.append(exchange)
                    await self.answer(exchange)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self.open -= 1

    async def read(self, stream: trio.SocketStream) -> Exchange | None:
        data = b""
        while b"\r\n\r\n" not in data:
            more = await stream.receive_some()
            if not more:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        while len(body) < length:
            more = await stream.receive_some()
            if not more:
                return None
            body += more
        return Exchange(stream, head.decode(), json.loads(body))


@asynccontextmanager
async def served(answer: Answer, seconds: float = 20) -> AsyncIterator[tuple[Server, str]]:
    """A server, and its address; the block may take so many seconds."""
    server = Server(answer)
    with trio.fail_after(seconds):
        async with trio.open_nursery() as nursery:
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, server.serve, [listener])
            yield server, f"http://127.0.0.1:{listener.socket.getsockname()[1]}/v1/"
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def model_at(
    answer: Answer, *, seconds: float = 20, **options: Any
) -> AsyncIterator[tuple[HttpChatModel, Server]]:
    """A model and the server behind it."""
    async with served(answer, seconds) as (server, url), HttpChatModel(url, name="small", **options) as model:
        yield model, server


def piece(text: str, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}], **more}


def stop(reason: str = "stop") -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


async def hello(exchange: Exchange) -> None:
    """The answer of a server that works."""
    await exchange.reply(piece("Hel"), piece("lo"), stop(), "[DONE]")


async def endless(exchange: Exchange) -> None:
    """The answer of a server that never comes to its end."""
    await exchange.send(HEAD)
    await exchange.events(piece("x"))
    await exchange.wait_closed()


async def ask(model: ChatModel, came: list[Delta] | None = None) -> list[Delta]:
    """All deltas of one reply; `came` has those before an error too."""
    came = [] if came is None else came
    async with model.stream(REQUEST) as deltas:
        async for delta in deltas:
            came.append(delta)
    return came


async def failure(answer: Answer, **options: Any) -> ModelError:
    """The error of a request."""
    async with model_at(answer, **options) as (model, _):
        with pytest.raises(ModelError) as caught:
            await ask(model)
        assert model.statistics().streaming == 0
    return caught.value


def saying(text: str | bytes) -> Answer:
    """The answer that is these bytes, then the end of the connection."""

    async def answer(exchange: Exchange) -> None:
        await exchange.send(text)
        await exchange.stream.aclose()

    return answer


def status(line: str, body: str = "", kind: str = "application/json") -> Answer:
    return saying(f"HTTP/1.1 {line}\r\nContent-Type: {kind}\r\nContent-Length: {len(body.encode())}\r\n\r\n{body}")


def events(*data: object) -> Answer:
    async def answer(exchange: Exchange) -> None:
        await exchange.reply(*data)

    return answer


def chunks(*data: str | bytes) -> Answer:
    async def answer(exchange: Exchange) -> None:
        await exchange.send(HEAD)
        for one in data:
            await exchange.chunk(one)
        await exchange.send("0\r\n\r\n")

    return answer


async def until(condition: Callable[[], bool]) -> None:
    """Lets the server run until it has seen what the client did."""
    with trio.fail_after(10):
        while not condition():
            await wait_all_tasks_blocked()
