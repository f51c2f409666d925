"""A service on FastAPI and hypercorn, all on trio, which tests/test_servers.py runs; see docs/services.md."""

import json
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Annotated, Any, cast

import trio
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from hypercorn.config import Config
from hypercorn.trio import serve
from starlette.requests import ClientDisconnect

from callboard.runtime import Board, Conversation
from callboard.runtime.errors import BoardClosed, BoardFull
from callboard.runtime.event import RoundEnded

from .served import Lead, count_closed, count_tasks, tally

board = Board(Lead(), limit=300)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with board:
        yield
    print(json.dumps(tally.told(conversations=len(board))), flush=True)


app = FastAPI(lifespan=lifespan, dependencies=[Depends(count_closed)])


@app.exception_handler(BoardFull)
@app.exception_handler(BoardClosed)
async def refuse(request: Request, why: BoardFull | BoardClosed) -> Response:
    return Response(str(why), status_code=503)


async def open_conversation() -> AsyncIterator[Conversation]:
    async with board.open_conversation() as conversation:
        yield conversation


Opened = Annotated[Conversation, Depends(open_conversation)]


async def pieces(question: str, conversation: Conversation) -> AsyncGenerator[bytes, None]:
    events = conversation.events()
    yield format_sse_event(event="conversation", data_str=json.dumps(conversation.id))
    conversation.communicate(question)
    async for event in events:
        yield format_sse_event(event=type(event).__name__, data_str=json.dumps(jsonable_encoder(event)))
        if isinstance(event, RoundEnded):
            break


async def open_stream(question: str, conversation: Opened) -> AsyncIterator[AsyncIterator[bytes]]:
    async with aclosing(pieces(question, conversation)) as stream:
        yield stream


@app.get("/answers")
async def answer(stream: Annotated[AsyncIterator[bytes], Depends(open_stream)]) -> StreamingResponse:
    return StreamingResponse(stream, media_type="text/event-stream")


@asynccontextmanager
async def while_connected(request: Request) -> AsyncIterator[None]:
    """Cancels its block when the client goes; raises ClientDisconnect when the block has ended."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        scope.cancel(reason="the client has gone")

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            yield
            nursery.cancel_scope.cancel()
    if scope.cancelled_caught:
        raise ClientDisconnect


@app.exception_handler(ClientDisconnect)
async def say_nothing(request: Request, gone: ClientDisconnect) -> Response:
    return Response(status_code=499)


@app.get("/answer")
async def answer_whole(question: str, conversation: Opened, request: Request) -> str:
    async with while_connected(request):
        reply = await conversation.send(question)
    return reply.message


@app.post("/conversations/{id}")
async def say(id: str, words: str) -> str:
    conversation = board.find(id)
    if conversation is None:
        raise HTTPException(404)
    return conversation.intervene(words).action


@app.get("/statistics")
async def statistics() -> dict[str, Any]:
    return tally.told(conversations=len(board), tasks=await count_tasks())


async def drain_on_term() -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            await board.drain(trio.current_time() + 0.2)
            return


async def main(port: int) -> None:
    config = Config()
    config.loglevel = "WARNING"
    config.graceful_timeout = 1
    config.bind = [f"127.0.0.1:{port}"]
    await serve(cast(Any, app), config, shutdown_trigger=drain_on_term)


if __name__ == "__main__":
    trio.run(main, int(sys.argv[1]))
