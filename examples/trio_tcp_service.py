"""A TCP service on trio: a line is a message, and a line that comes while the work goes on interrupts it.

    python examples/trio_tcp_service.py 12345
    nc localhost 12345      # say "suppliers" and, before the answer comes, "in 2025"

A client that goes ends its own conversation and nothing else; one beyond the limit is hung up on. With a model, in
place of the Researcher: `async with HttpChatModel(...) as model, Board(Planner(model), limit=100) as board`.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial

import trio

from callboard.runtime import Actor, Board, Post, TurnContext
from callboard.runtime.errors import BoardFull


class Researcher(Actor):
    name = "Researcher"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        await trio.sleep(0.3)
        return post.reply(" ".join([post.message, *(said.message for said in context.user_words)]))


async def lines(stream: trio.SocketStream) -> AsyncIterator[str]:
    rest = b""
    with suppress(trio.BrokenResourceError):
        async for data in stream:
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace").strip()


async def write_replies(replies: AsyncIterator[Post], stream: trio.SocketStream) -> None:
    with suppress(trio.BrokenResourceError):
        async for post in replies:
            await stream.send_all(post.message.encode() + b"\n")


async def serve_client(board: Board, stream: trio.SocketStream) -> None:
    with suppress(BoardFull):
        async with board.open_conversation() as conversation, trio.open_nursery() as nursery:
            nursery.start_soon(write_replies, conversation.replies(), stream)
            async for line in lines(stream):
                conversation.communicate(line)
            nursery.cancel_scope.cancel(reason="the client has gone")


async def main(port: int) -> None:
    async with Board(Researcher(), limit=100) as board:
        await trio.serve_tcp(partial(serve_client, board), port, host="127.0.0.1")


if __name__ == "__main__":
    trio.run(main, int(sys.argv[1]))
