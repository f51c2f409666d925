"""A service on FastAPI and uvicorn, which tests/test_servers.py runs; parts of it stand in docs/services.md."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import FrameType
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.requests import ClientDisconnect

from callboard.runtime.event import RoundEnded
from callboard.runtime.hosts import AsyncioConversation, TrioHost

from .served import Lead, count_closed, count_tasks, tally

host = TrioHost()
conversations: dict[str, AsyncioConversation] = {}


async def open_conversation() -> AsyncIterator[AsyncioConversation]:
    async with host.open_conversation(Lead()) as conversation:
        conversations[conversation.id] = conversation
        try:
            yield conversation
        finally:
            del conversations[conversation.id]


Opened = Annotated[AsyncioConversation, Depends(open_conversation)]


async def stop_rounds(told: asyncio.Event) -> None:
    await told.wait()
    for conversation in tuple(conversations.values()):
        await conversation.stop("the service is being replaced")


@asynccontextmanager
async def stopping_on_term() -> AsyncIterator[None]:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    uvicorns = signal.getsignal(signal.SIGTERM)

    def on_term(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(told.set)
        if callable(uvicorns):
            uvicorns(number, frame)

    async with asyncio.TaskGroup() as group:
        stopping = group.create_task(stop_rounds(told))
        signal.signal(signal.SIGTERM, on_term)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, uvicorns)
            stopping.cancel()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with host, stopping_on_term():
        yield
    tell()


def tell() -> None:
    print(json.dumps(tally.told(conversations=len(conversations))), flush=True)


app = FastAPI(lifespan=lifespan, dependencies=[Depends(count_closed)])


@asynccontextmanager
async def while_connected(request: Request) -> AsyncIterator[None]:
    """Cancels its block when the client goes; raises ClientDisconnect when the block has ended."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        scope.reschedule(asyncio.get_running_loop().time())

    try:
        async with asyncio.timeout(None) as scope:
            watching = asyncio.create_task(watch())
            try:
                yield
            finally:
                watching.cancel()
    except TimeoutError:
        if scope.expired():
            raise ClientDisconnect from None
        raise


@app.exception_handler(ClientDisconnect)
async def say_nothing(request: Request, gone: ClientDisconnect) -> Response:
    return Response(status_code=499)


@app.get("/answer")
async def answer_whole(question: str, conversation: Opened, request: Request) -> str:
    async with while_connected(request):
        return (await conversation.send(question)).message


@app.get("/answers", response_class=EventSourceResponse)
async def answer(question: str, conversation: Opened) -> AsyncIterator[ServerSentEvent]:
    events = conversation.events()
    yield ServerSentEvent(event="conversation", data=conversation.id)
    await conversation.communicate(question)
    async for event in events:
        yield ServerSentEvent(event=type(event).__name__, data=event)
        if isinstance(event, RoundEnded):
            break


@app.post("/conversations/{id}")
async def say(id: str, words: str) -> str:
    if id not in conversations:
        raise HTTPException(404)
    return (await conversations[id].intervene(words)).action


@app.get("/statistics")
async def statistics() -> dict[str, Any]:
    tasks = len(asyncio.all_tasks()) + await host.run(count_tasks)
    return tally.told(conversations=len(conversations), tasks=tasks)
