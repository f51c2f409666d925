"""Conversations that each have a mark, plant it in every channel, and search every channel for the others'.

A channel is a way by which text gets from a conversation to its host or to its roles. `Seen` has what one conversation
saw, by channel. Each must hold the conversation's own mark, or nothing was tried, and no other's.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import trio
import trio.lowlevel

from callboard.actors.role import Role
from callboard.runtime.actor import Actor
from callboard.runtime.board import Board
from callboard.runtime.chat_model import ChatRequest
from callboard.runtime.context import LiveContext, TurnContext
from callboard.runtime.event import PostRecorded
from callboard.runtime.hosts import BlockingHost, TrioHost
from callboard.runtime.limits import Limits
from callboard.runtime.memory import get_role_rounds, get_shared_memory_entries
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.scripted_model import ScriptedModel
from callboard.runtime.tool import Tool
from callboard.runtime.user_message import UserMessage

T = TypeVar("T")
Seen = dict[str, list[str]]

MARK = re.compile(r"mark\d+x")
ID = re.compile(r"\b(?:post|round|conv|words|call|atta|sme)-\d{8}-\d{6}-[0-9a-f]{8}\b")
MOST_TOKENS = 16**100
LIMIT = 20
"""Seconds."""
SAME_ID = "said in every conversation"

by_host: ContextVar[str] = ContextVar("by_host", default="")
by_role: ContextVar[str] = ContextVar("by_role", default="")
in_thread: ContextVar[str] = ContextVar("in_thread", default="")

CHANNELS = {
    *("posts", "live state", "draft", "user's words", "memory", "shared memory", "subordinates", "asked role"),
    *("context variable of the host", "context variable of a role", "context variable of a tool's thread"),
    *("question to the host", "model's request", "inspection", "usage", "limits", "background report"),
    *("reply", "said under the same id", "line", "receipt", "partial posts", "rounds of a role", "transcript"),
    *("dead letters", "statistics", "events", "replies"),
}
ON_BOARDS = CHANNELS | {"stream", "find"}


class Meeting:
    """Where the roles of all conversations wait for each other, so that they are all in the middle at once."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.come = 0
        self.all_there = trio.Event()

    async def meet(self) -> None:
        self.come += 1
        if self.come == self.size:
            self.come, all_there, self.all_there = 0, self.all_there, trio.Event()
            all_there.set()
        else:
            await self.all_there.wait()


def in_a_thread() -> str:
    """A tool: what its thread sees of the context variables, before and after it sets one."""
    before = f"{by_host.get()} {in_thread.get()}"
    in_thread.set(by_host.get())
    return f"{before} {by_role.get()}"


class Root(Actor):
    """Tries every channel that a role has, and notes what it saw; then waits to be interrupted."""

    name = "Root"

    def __init__(self, meeting: Meeting, *subordinates: Actor) -> None:
        self.subordinates = subordinates
        self.meeting = meeting
        self.tool = Tool(in_a_thread)

    @asynccontextmanager
    async def live(self, context: LiveContext) -> AsyncIterator[list[str]]:
        yield []

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        if post.send_from == "Background":
            return None
        if post.message.startswith("again"):
            context.draft.write(post.message)
            await trio.lowlevel.checkpoint()
            return post.reply(context.draft.take())
        if words := [said.message for said in context.user_words]:
            context.record(json.dumps({"user's words": words}))
            return post.reply(" ".join([post.message, *words]))
        seen: Seen = {}
        seen["posts"] = [str(post)]
        await self.plant(post.message, context, seen)
        await self.meeting.meet()
        await self.look(post.message, context, seen)
        context.draft.write(f"draft of {post.message}")
        await self.meeting.meet()
        seen["draft"] = [context.draft.text]
        context.record(json.dumps(seen))
        await trio.sleep_forever()
        return None

    async def plant(self, mark: str, context: TurnContext, seen: Seen) -> None:
        seen["context variable of a role"] = [by_role.get()]
        by_role.set(mark)
        context.state.append(mark)
        context.share("plan", mark, scope="conversation")
        context.spend(input_tokens=1 << 4 * number_of(mark))
        context.start_background("Background", mark)
        await context.start_subordinate(Says(), name=f"Sub-{mark}")
        for _ in range(4):  # one is read, one waits, and the others are dead letters
            await context.tell("Busy", mark)
            await trio.lowlevel.checkpoint()

    async def look(self, mark: str, context: TurnContext, seen: Seen) -> None:
        seen["context variable of the host"] = [by_host.get()]
        seen["context variable of a role"] += [by_role.get()]
        seen["live state"] = list(context.state)
        seen["subordinates"] = list(context.subordinates)
        seen["limits"] = places(MOST_TOKENS - int(context.limits["tokens"]))
        seen["shared memory"] = [str(await get_shared_memory_entries(context, "plan"))]
        seen["memory"] = [str(await get_role_rounds(context, context.role))]
        seen["asked role"] = [(await context.ask("Says", mark)).message]
        seen["context variable of a tool's thread"] = [await context.call(self.tool, {})]
        seen["question to the host"] = [(await context.ask_superior(mark)).message]
        seen["model's request"] = [(await context.ask("Thinker", mark)).message]


class Says(Actor):
    """Answers with what it was asked, and with the variable that its asker has set."""

    def __init__(self, name: str = "Says") -> None:
        self.name = name

    async def receive(self, post: Post, context: TurnContext) -> Post:
        before = by_role.get()
        by_role.set(f"set by {self.name} for {post.message}")
        await trio.lowlevel.checkpoint()
        return post.reply(f"{post.message} {before}")


class Busy(Actor):
    """Never comes to the second post of its mailbox."""

    name = "Busy"

    async def receive(self, post: Post, context: TurnContext) -> None:
        await trio.sleep_forever()


class Thinker(Role):
    """Answers with all that its model was sent."""

    name = "Thinker"
    template = "Think."

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply(await self.think(context, await self.messages(post, context)))


def number_of(mark: str) -> int:
    """Which conversation has this mark."""
    return int(mark[4:-1])


class Inspector:
    """The host's hook: keeps what it sees by the context variable of the host in whose name the post travels."""

    def __init__(self) -> None:
        self.seen: Seen = {}

    def __call__(self, post: Post) -> None:
        if mark := by_host.get():
            self.seen.setdefault(mark, []).append(post.message)


class Stage:
    """The same actors and options for `count` conversations, and what each of them saw."""

    def __init__(self, count: int) -> None:
        self.marks = [f"mark{number}x" for number in range(count)]
        self.inspector = Inspector()
        self.model = ScriptedModel({"Thinker": [echo] * count})
        others = (Says(), Says("Background"), Busy(), Thinker(self.model))
        self.root = Root(Meeting(count), *others)
        self.options = ConversationOptions(
            mailbox=1,
            tell_timeout=0,
            on_question=answer,
            on_post=self.inspector,
            limits=Limits(replies=10, tokens=MOST_TOKENS),
        )
        self.seen: dict[str, Seen] = {}
        self.published: dict[str, tuple[Any, Any]] = {}
        self.ids: dict[str, set[str]] = {}

    async def visit(self, conversation: Any, mark: str) -> None:
        """What a host does with its conversation, in any of the three styles."""
        seen = self.seen[mark] = {}
        events = conversation.events(10_000)
        self.published[mark] = events, conversation.replies()
        receipt = await settled(conversation.communicate(UserMessage(mark)))
        queued = await settled(conversation.enqueue(f"later {mark}"))
        seen["events"] = await until_noted(events)
        seen["line"] = [one.message.message for one in await settled(conversation.queued())]
        assert await settled(queued.withdraw())
        seen["statistics"] = [str(await settled(conversation.statistics()))]
        words = await settled(conversation.intervene(f"words {mark}"))
        seen["reply"] = [(await settled(receipt.reply())).message]
        seen["receipt"] = [str(await settled(words.stopped()))]
        assert await settled(words.seen())
        again = UserMessage(f"again {mark}", id=SAME_ID)
        seen["said under the same id"] = [(await settled(conversation.send(again))).message for _ in range(2)]
        await self.read(conversation, mark, seen)

    async def read(self, conversation: Any, mark: str, seen: Seen) -> None:
        transcript = await settled(conversation.transcript())
        posts = [post for one in transcript.rounds for post in one.post_list]
        for post in posts:
            if post.send_from == post.send_to == "Root" and post.message.startswith("{"):
                for channel, texts in json.loads(post.message).items():
                    seen.setdefault(channel, []).extend(texts)
        seen["transcript"] = [str(transcript)]
        seen["partial posts"] = [str(post) for post in posts if post.marks.state == "partial"]
        seen["background report"] = [str(post) for post in posts if post.send_from == "Background"]
        seen["rounds of a role"] = [str(await settled(conversation.rounds("Says")))]
        seen["dead letters"] = [str(letter) for letter in await settled(conversation.dead_letters())]
        seen["inspection"] = self.inspector.seen.get(mark, [])
        usage = await settled(conversation.usage)
        seen["usage"] = places(usage.total.input_tokens)
        self.ids[mark] = {id for id in ID.findall(str(transcript))}

    async def hear(self, mark: str) -> None:
        """When the conversation has ended: all that it had published."""
        events, replies = self.published[mark]
        self.seen[mark]["events"] += [str(event) async for event in each(events)]
        self.seen[mark]["replies"] = [str(reply) async for reply in each(replies)]

    def crossings(self, channels: set[str]) -> set[str]:
        """The channels by which one conversation saw another's mark, or did not see its own."""
        found = set()
        for mark, seen in self.seen.items():
            assert set(seen) == channels
            for channel, texts in seen.items():
                if {*MARK.findall(" ".join(texts))} != {mark}:
                    found.add(channel)
        ids = [id for own in self.ids.values() for id in own]
        return found | ({"ids"} if len(set(ids)) < len(ids) or not ids else set())


def echo(request: ChatRequest) -> str:
    """What the model of every conversation says: all that it was sent."""
    return " ".join(message.content for message in request.messages)


async def answer(post: Post) -> str:
    """The host's answer to a question, in the context variables of the one who asks."""
    await trio.lowlevel.checkpoint()
    return f"{post.message} {by_host.get()} {by_role.get()}"


def places(tokens: int) -> list[str]:
    """The marks of those who have used these tokens: each has a hexadecimal place of its own."""
    return [f"mark{place}x" for place, digit in enumerate(f"{tokens:x}"[::-1]) if digit != "0"]


async def settled(value: Any) -> Any:
    """What a verb gives, whether it is awaited or not."""
    return await value if hasattr(value, "__await__") else value


async def until_noted(events: Any) -> list[str]:
    """What happens until the root has noted what it saw, and is in its meeting no more."""
    seen = []
    while True:
        event = await anext(events) if hasattr(events, "__anext__") else next(events)
        seen.append(str(event))
        match event:
            case PostRecorded(post) if post.send_from == post.send_to == "Root" and post.message.startswith("{"):
                return seen


async def each(items: Any) -> AsyncIterator[Any]:
    """The items of a subscription of any style."""
    if hasattr(items, "__aiter__"):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


def driven(visit: Awaitable[T]) -> T:
    """Runs what awaits nothing, to its end."""
    try:
        next(visit.__await__())
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("it awaited something")


@asynccontextmanager
async def boards(stage: Stage, count: int) -> AsyncIterator[list[Board]]:
    """So many boards with the same actors."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(Board(stage.root, options=stage.options)) for _ in range(count)]


def on_boards(stage: Stage, count: int = 1) -> None:
    """Every conversation on one of so many boards, all of them at once; in real time, for the sake of the threads."""

    async def host(board: Board, mark: str) -> None:
        by_host.set(mark)
        async with board.open_conversation(f"of {mark}") as conversation:
            await stage.visit(conversation, mark)
            async with conversation.stream(f"again {mark}") as reply:
                stage.seen[mark]["stream"] = [str(piece) async for piece in reply]
            found = board.find(f"of {mark}")
            stage.seen[mark]["find"] = [found.id if found is not None else ""]
        await stage.hear(mark)

    async def main() -> None:
        with trio.fail_after(LIMIT):
            async with boards(stage, count) as opened, trio.open_nursery() as nursery:
                for number, mark in enumerate(stage.marks):
                    nursery.start_soon(host, opened[number % count], mark)

    trio.run(main)


def over_trio_host(stage: Stage) -> None:
    """Every conversation in an asyncio task of its own."""

    async def host(host: TrioHost, mark: str) -> None:
        by_host.set(mark)
        async with host.open_conversation(stage.root, options=stage.options) as conversation:
            await stage.visit(conversation, mark)
        await stage.hear(mark)

    async def main() -> None:
        async with TrioHost() as opened, asyncio.TaskGroup() as group:
            for mark in stage.marks:
                group.create_task(host(opened, mark))

    asyncio.run(main())


def over_blocking_host(stage: Stage) -> None:
    """Every conversation in a thread of its own."""

    def host(opened: BlockingHost, mark: str) -> None:
        by_host.set(mark)
        with opened.open_conversation(stage.root, options=stage.options) as conversation:
            driven(stage.visit(conversation, mark))
        driven(stage.hear(mark))

    with BlockingHost() as opened, ThreadPoolExecutor(len(stage.marks)) as threads:
        for future in [threads.submit(host, opened, mark) for mark in stage.marks]:
            future.result()
