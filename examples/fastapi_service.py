"""A web service on FastAPI: events tell how an answer grows, words in the middle cut in, a client that goes stops it.
To run it, to ask, and meanwhile to speak to the conversation that the first event names:
    uvicorn --app-dir examples --timeout-graceful-shutdown 10 fastapi_service:app
    curl -N 'localhost:8000/answers?question=suppliers'
    curl -X POST 'localhost:8000/conversations/ID?words=in+2025'
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, cast

import trio
from fastapi import Depends, FastAPI
from fastapi.sse import EventSourceResponse, ServerSentEvent

from callboard.runtime import Actor, Post, TurnContext
from callboard.runtime.event import RoundEnded
from callboard.runtime.hosts import AsyncioBoard, AsyncioConversation, TrioHost


class Researcher(Actor):  # in its place a `Planner(model)`, with `host.enter(HttpChatModel(...)) as model` below
    name = "Researcher"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        context.draft.write(" ".join([post.message, *(said.message for said in context.user_words)]))
        await trio.sleep(0.5)
        return post.reply(context.draft.take())


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with TrioHost() as host, host.open_board(Researcher(), limit=100) as app.state.board:
        yield


async def open_conversation() -> AsyncIterator[AsyncioConversation]:
    async with app.state.board.open_conversation() as conversation:
        yield conversation


app = FastAPI(lifespan=lifespan)
Opened = Annotated[AsyncioConversation, Depends(open_conversation)]


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
    conversation = await cast(AsyncioBoard, app.state.board).find(id)
    return (await conversation.intervene(words)).action if conversation else "ended"
