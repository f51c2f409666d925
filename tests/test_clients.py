"""A board behind a real port: whatever a client does ends its own conversation and nothing else."""

import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

import trio
import trio.testing

from callboard.runtime.actor import Actor
from callboard.runtime.board import Board
from callboard.runtime.context import TurnContext
from callboard.runtime.post import Post

T = TypeVar("T")
LIMIT = 20
"""Real seconds after which the service counts as hung."""


class Tally(list[T]):
    """What has happened, in order; can be waited for."""

    def __init__(self) -> None:
        self._grew = trio.Event()

    def add(self, item: T) -> None:
        """One thing more has happened."""
        self.append(item)
        self._grew.set()
        self._grew = trio.Event()

    async def reach(self, count: int) -> None:
        """Until so much has happened."""
        while len(self) < count:
            await self._grew.wait()


class Clerk(Actor):
    """Works until all may go on; tells what has begun, and what was ended in the middle."""

    name = "Clerk"

    def __init__(self) -> None:
        self.go_on = trio.Event()
        self.begun: Tally[str] = Tally()
        self.ended: Tally[str] = Tally()

    async def receive(self, post: Post, context: TurnContext) -> Post:
        context.draft.write("half")
        self.begun.add(post.message)
        try:
            await self.go_on.wait()
        except trio.Cancelled:
            self.ended.add(post.message)
            raise
        return post.reply(f"done: {post.message}")


class Service:
    """Serves each client a conversation; `left` tells what left the conversation's block, by its type."""

    def __init__(self, clerk: Clerk) -> None:
        self.clerk = clerk
        self.left: Tally[type[BaseException] | None] = Tally()
        self.port = 0
        self.board: Board
        self._writers: trio.Nursery

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """The service runs in this block."""
        with trio.fail_after(LIMIT):
            async with (
                trio.open_nursery() as self._writers,
                Board(self.clerk) as self.board,
                trio.open_nursery() as own,
            ):
                serve = partial(trio.serve_tcp, self._serve, 0, host="127.0.0.1")
                (listener,) = await own.start(serve)
                self.port = listener.socket.getsockname()[1]
                yield
                own.cancel_scope.cancel()

    async def client(self, said: bytes) -> trio.SocketStream:
        """A client that has said its line."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        await stream.send_all(said + b"\n")
        return stream

    async def _serve(self, stream: trio.SocketStream) -> None:
        left: type[BaseException] | None = None
        try:
            async with self.board.open_conversation() as conversation:
                self._writers.start_soon(_write, conversation.replies(), stream)
                async for data in stream:
                    conversation.communicate(data.decode("ascii").strip())
        except (trio.BrokenResourceError, UnicodeDecodeError) as error:
            left = type(error)
        self.left.add(left)


async def _write(replies: AsyncIterator[Post], stream: trio.SocketStream) -> None:
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        async for post in replies:
            await stream.send_all(post.message.encode() + b"\n")


def reset(stream: trio.SocketStream) -> None:
    """The connection is gone without a goodbye: the other side's next read fails."""
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.socket.close()


async def test_clients_that_reset_in_mid_round_end_their_own_conversations_alone() -> None:
    service = Service(clerk := Clerk())
    async with service.serving():
        clients = [await service.client(b"%d" % number) for number in range(20)]
        await clerk.begun.reach(20)
        for stream in clients[::2]:
            reset(stream)
        await clerk.ended.reach(10)
        await service.left.reach(10)
        assert len(service.board) == 10
        clerk.go_on.set()
        answers = [await stream.receive_some() for stream in clients[1::2]]
        assert answers == [b"done: %d\n" % number for number in range(1, 20, 2)]
        assert sorted(clerk.ended, key=int) == [str(number) for number in range(0, 20, 2)]
        assert service.left == [trio.BrokenResourceError] * 10
        for stream in clients[1::2]:
            await stream.aclose()
        await service.left.reach(20)
        assert (service.left[10:], len(service.board)) == ([None] * 10, 0)


async def test_a_client_that_makes_its_handler_fail_fails_alone_and_with_the_handlers_own_error() -> None:
    service = Service(clerk := Clerk())
    async with service.serving():
        good, bad = await service.client(b"good"), await service.client(b"bad")
        await clerk.begun.reach(2)
        await bad.send_all(b"\xff\n")
        await service.left.reach(1)
        await bad.aclose()
        clerk.go_on.set()
        assert await good.receive_some() == b"done: good\n"
        assert (clerk.ended, service.left) == (["bad"], [UnicodeDecodeError])
        await good.aclose()
        await service.left.reach(2)


async def test_a_drained_service_lets_its_clients_finish_and_takes_no_new_ones() -> None:
    service = Service(clerk := Clerk())
    async with service.serving():
        staying, going = await service.client(b"a"), await service.client(b"b")
        await clerk.begun.reach(2)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(service.board.drain)
            await trio.testing.wait_all_tasks_blocked(0.01)
            reset(going)
            await clerk.ended.reach(1)
            clerk.go_on.set()
        report = await service.board.drain()
        assert [one.user_query for one in report.finished + report.stopped] == ["a", "b"]
        assert await staying.receive_some() == b"done: a\n"
        await staying.aclose()
        await service.left.reach(2)
