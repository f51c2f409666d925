"""callboard inside real servers: when a client goes, or a server is told to end, nothing stays.

Each server is a process that treats warnings as errors. What a test has measured is printed: `pytest -m slow -s`.
"""

import json
import math
import random
import re
import signal
import socket
import statistics
import struct
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib.util import find_spec
from typing import Any

import httpx
import pytest
import trio

from .served import CLEAN_UP
from .test_examples import start, wait_for_port

CLIENTS = 200
STREAMS = 20
"""Streams that are open when a server is told to end."""
LIMIT = 30
"""Real seconds after which something counts as hung."""
GRACEFUL = 1
"""Seconds that a server gives to what runs when it is told to end."""

LACKING = [name for name in ("fastapi", "uvicorn", "uvloop", "hypercorn") if find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(LACKING), reason=f"needs the extra callboard[services]: no {', '.join(LACKING)}"),
]

UVICORN = "-m uvicorn --log-level warning --port {port} tests.served_fastapi:app"
BOUNDED = f"{UVICORN} --timeout-graceful-shutdown {GRACEFUL}"
HYPERCORN = "-m hypercorn --log-level WARNING --bind 127.0.0.1:{port} tests.served_trio:app"
SERVERS = {
    "uvicorn on asyncio": f"{BOUNDED} --loop asyncio",
    "uvicorn on uvloop": f"{BOUNDED} --loop uvloop",
    "hypercorn on trio": f"{HYPERCORN} -k trio --graceful-timeout {GRACEFUL}",
}
PROGRAM = "-m tests.served_trio {port}"


class Server:
    """A server that runs, and a client for what needs no connection of its own."""

    def __init__(self, process: subprocess.Popen[str], port: int, client: httpx.AsyncClient) -> None:
        self.process = process
        self.port = port
        self.client = client

    async def statistics(self) -> dict[str, Any]:
        """What has become of all work."""
        told: dict[str, Any] = (await self.client.get("/statistics")).json()
        return told

    async def say(self, id: str, words: str) -> str:
        """What the words did, spoken over another connection than that of the stream."""
        done: str = (await self.client.post(f"/conversations/{id}", params={"words": words})).json()
        return done

    async def ended(self) -> tuple[str, str]:
        """What it wrote, when it has ended."""
        return await trio.to_thread.run_sync(partial(self.process.communicate, timeout=LIMIT))


@asynccontextmanager
async def serving(command: str) -> AsyncIterator[Server]:
    """A server that listens; it has ended when the block is left."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with start(*command.format(port=port).split()) as process:
        try:
            await trio.to_thread.run_sync(wait_for_port, port, process)
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=LIMIT) as client:
                with trio.fail_after(LIMIT):
                    yield Server(process, port, client)
        finally:
            process.kill()


class Stream:
    """A client that reads an answer while it grows."""

    def __init__(self, number: int) -> None:
        self.number = str(number)
        self.got = b""
        self.left = math.nan
        self._stream: trio.SocketStream

    async def open(self, port: int, path: str = "/answers") -> None:
        """Asks."""
        self._stream = await trio.open_tcp_stream("127.0.0.1", port)
        await self._stream.send_all(f"GET {path}?question={self.number} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    async def read_until(self, part: bytes) -> None:
        """Until it has read that."""
        while part not in self.got:
            data = await self._stream.receive_some()
            assert data, f"the stream ended after {self.got[-300:]!r}"
            self.got += data

    async def read_all(self) -> None:
        """Until the server has sent the last chunk."""
        await self.read_until(b"\r\n0\r\n\r\n")

    async def read_rest(self) -> None:
        """Until the connection ends, in whatever way."""
        with suppress(trio.BrokenResourceError):
            async for data in self._stream:
                self.got += data
        await self._stream.aclose()

    @property
    def id(self) -> str:
        """That of its conversation."""
        found = re.search(rb'event: conversation\ndata: "(.*?)"', self.got)
        assert found is not None
        return found[1].decode()

    async def leave(self, *, reset: bool) -> None:
        """Goes; without a goodbye if it resets the connection."""
        self.left = time.monotonic()
        if reset:
            self._stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._stream.socket.close()
        else:
            await self._stream.aclose()


async def open_streams(server: Server, count: int, path: str = "/answers", mark: bytes = b"DraftGrew") -> list[Stream]:
    """So many streams, each of which has read a part."""
    streams = [Stream(number) for number in range(count)]

    async def begin(stream: Stream) -> None:
        await stream.open(server.port, path)
        await stream.read_until(mark)

    async with trio.open_nursery() as nursery:
        for stream in streams:
            nursery.start_soon(begin, stream)
    return streams


async def settle(server: Server, count: int, tasks: int) -> dict[str, Any]:
    """The statistics when all work is over. Fails if something stays."""
    told: dict[str, Any] = {}
    with trio.move_on_after(LIMIT / 2):
        while told.get("conversations") != 0 or len(told["closed"]) != count or told["tasks"] > tasks:
            await trio.sleep(0.02)
            told = await server.statistics()
    assert (told["conversations"], len(told["closed"]), len(told["begun"])) == (0, count, count)
    assert told["cleaned"].keys() == told["begun"].keys()
    assert told["tasks"] <= tasks
    return told


def tell_times(what: str, streams: Sequence[Stream], told: dict[str, Any]) -> None:
    """Prints how long it took from a client's leaving to the cut of the work, and to the end of its conversation."""
    for key, beside in (("cut", 0.0), ("closed", CLEAN_UP)):
        took = sorted((told[key][one.number] - one.left - beside) * 1000 for one in streams)
        print(f"{what}: left to {key}, ms: median {statistics.median(took):.1f}, longest {took[-1]:.1f} of {len(took)}")


@pytest.mark.parametrize("name", SERVERS)
async def test_of_clients_that_go_in_mid_stream_nothing_stays_and_the_others_are_answered(name: str) -> None:
    luck = random.Random(1)
    async with serving(SERVERS[name]) as server:
        tasks = (await server.statistics())["tasks"]
        streams = await open_streams(server, CLIENTS)
        assert (await server.statistics())["conversations"] == CLIENTS
        going = luck.sample(streams, CLIENTS // 2)
        staying = [stream for stream in streams if stream not in going]

        async def go(stream: Stream) -> None:
            await trio.sleep(2 * luck.random())
            await stream.leave(reset=luck.random() < 0.5)

        async def speak(stream: Stream) -> None:
            await trio.sleep(2 * luck.random())
            assert await server.say(stream.id, f"words {stream.number}") == "intervened"
            await stream.read_all()
            assert f'"message": "{stream.number} words {stream.number}"'.encode() in stream.got
            await stream.leave(reset=False)

        async with trio.open_nursery() as nursery:
            for stream in going:
                nursery.start_soon(go, stream)
            for stream in staying:
                nursery.start_soon(speak, stream)
        told = await settle(server, CLIENTS, tasks)
        tell_times(name, going, told)
        server.process.terminate()
        _, said = await server.ended()
        assert said == ""


@pytest.mark.parametrize("name", SERVERS)
async def test_an_endpoint_that_streams_nothing_ends_its_work_when_its_client_goes(name: str) -> None:
    async with serving(SERVERS[name]) as server:
        tasks = (await server.statistics())["tasks"]
        streams = [Stream(number) for number in range(STREAMS)]
        for stream in streams:
            await stream.open(server.port, "/answer")
        await trio.sleep(1)
        assert len((await server.statistics())["begun"]) == STREAMS
        for stream in streams:
            await stream.leave(reset=stream.number.endswith("1"))
            await trio.sleep(0.05)
        told = await settle(server, STREAMS, tasks)
        tell_times(f"{name}, no stream", streams, told)
        server.process.terminate()
        _, said = await server.ended()
        assert said == ""


async def end(server: Server, streams: Sequence[Stream]) -> tuple[float, str]:
    """Tells the server to end, while the clients read on: after how many seconds it has, and what it said of errors."""
    began = time.monotonic()
    server.process.terminate()
    async with trio.open_nursery() as nursery:
        for stream in streams:
            nursery.start_soon(stream.read_rest)
        printed, said = await server.ended()
    told = json.loads(printed.splitlines()[-1])
    assert told["conversations"] == 0
    assert told["begun"].keys() == told["cleaned"].keys() == told["closed"].keys() == {one.number for one in streams}
    return time.monotonic() - began, said


@pytest.mark.parametrize("name", ["uvicorn on asyncio", "uvicorn on uvloop"])
async def test_uvicorn_ends_at_once_if_the_service_stops_its_rounds(name: str) -> None:
    async with serving(SERVERS[name]) as server:
        streams = await open_streams(server, STREAMS)
        took, said = await end(server, streams)
        print(f"{name}, rounds stopped: SIGTERM to the end, s: {took:.2f}")
        assert (server.process.returncode, said) == (-signal.SIGTERM, "")
        assert all(b'"state": "stopped"' in stream.got for stream in streams)
        assert took < GRACEFUL


async def test_uvicorn_ends_in_time_if_the_service_does_nothing_and_complains_of_each_stream() -> None:
    async with serving(BOUNDED.replace("served_fastapi", "served_carelessly")) as server:
        took, said = await end(server, await open_streams(server, STREAMS))
        print(f"uvicorn, nothing stopped: SIGTERM to the end, s: {took:.2f}")
        assert server.process.returncode == -signal.SIGTERM
        assert said.count("Exception in ASGI application") == STREAMS
        assert GRACEFUL < took < GRACEFUL + 1


async def test_uvicorn_without_a_limit_waits_for_the_clients_to_go() -> None:
    async with serving(UVICORN.replace("served_fastapi", "served_carelessly")) as server:
        (stream,) = await open_streams(server, 1)
        server.process.terminate()
        await trio.sleep(2 * GRACEFUL)
        assert server.process.poll() is None
        await stream.leave(reset=False)
        assert "Traceback" not in (await server.ended())[1]


async def test_hypercorn_ends_in_time_and_says_nothing() -> None:
    async with serving(SERVERS["hypercorn on trio"]) as server:
        took, said = await end(server, await open_streams(server, STREAMS))
        print(f"hypercorn -k trio: SIGTERM to the end, s: {took:.2f}")
        assert (server.process.returncode, said) == (0, "")
        assert took < GRACEFUL + 1


async def test_a_program_that_serves_with_hypercorn_drains_its_board_first() -> None:
    async with serving(PROGRAM) as server:
        streams = await open_streams(server, STREAMS)
        assert await server.say(streams[0].id, "words") == "intervened"
        took, said = await end(server, streams)
        print(f"hypercorn in a program, drained: SIGTERM to the end, s: {took:.2f}")
        assert (server.process.returncode, said) == (0, "")
        assert b'"state": "finished"' in streams[0].got
        assert all(b'"state": "stopped"' in stream.got for stream in streams[1:])
        assert took < GRACEFUL + 2
