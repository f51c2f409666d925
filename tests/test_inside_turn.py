"""Verbs from inside a role's turn, whichever way they are called: only `stop` and `pause` do anything."""

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import InsideTurn, RoundStopped
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.queued import Queued
from tests.situations import rounds
from tests.test_interruption import log

VERBS: dict[str, Callable[[Conversation, Queued], partial[Any]]] = {
    "send": lambda conversation, queued: partial(conversation.send, "x"),
    "communicate": lambda conversation, queued: partial(conversation.communicate, "x"),
    "intervene": lambda conversation, queued: partial(conversation.intervene, "x"),
    "nudge": lambda conversation, queued: partial(conversation.nudge),
    "enqueue": lambda conversation, queued: partial(conversation.enqueue, "x"),
    "edit": lambda conversation, queued: partial(conversation.edit, queued.id, "x"),
    "edit of a handle": lambda conversation, queued: partial(queued.edit, "x"),
    "withdraw": lambda conversation, queued: partial(conversation.withdraw, queued.id),
    "withdraw of a handle": lambda conversation, queued: partial(queued.withdraw),
    "edit of what is not there": lambda conversation, queued: partial(conversation.edit, "nobody's", "x"),
    "withdraw of what is not there": lambda conversation, queued: partial(conversation.withdraw, "nobody's"),
    "resume": lambda conversation, queued: partial(conversation.resume),
    "wait_idle": lambda conversation, queued: partial(conversation.wait_idle),
}
"""Those that are refused."""

Call = partial[Any]


async def in_the_turn(call: Call, conversation: Conversation) -> None:
    result = call()
    if iscoroutinefunction(call):
        await result


async def in_a_child_task(call: Call, conversation: Conversation) -> None:
    refused: list[InsideTurn] = []

    async def child() -> None:
        try:
            await in_the_turn(call, conversation)
        except InsideTurn as error:
            refused.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(child)
    for error in refused:
        raise error


async def in_a_thread(call: Call, conversation: Conversation) -> None:
    run = trio.from_thread.run if iscoroutinefunction(call) else trio.from_thread.run_sync
    await trio.to_thread.run_sync(partial(run, call))


async def in_a_thread_that_goes_through_the_conversation(call: Call, conversation: Conversation) -> None:
    await trio.to_thread.run_sync(partial(conversation.from_thread, call))


WAYS: list[Callable[[Call, Conversation], Awaitable[None]]] = [
    in_the_turn,
    in_a_child_task,
    in_a_thread,
    in_a_thread_that_goes_through_the_conversation,
]


class Asking(Actor):
    """Has a question for who asked it."""

    name = "asking"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply((await context.ask_superior("Which year?")).message)


class Calling(Actor):
    """Calls what it is given, in its turn or as it answers a question."""

    name = "calling"
    subordinates = (Asking(),)

    def __init__(self, place: str, function: Callable[[], Awaitable[None]]) -> None:
        self.place = place
        self.function = function

    async def receive(self, post: Post, context: TurnContext) -> Post:
        if self.place == "receive":
            await self.function()
            return post.reply("done")
        answer = await context.ask("asking", "do")
        return post.reply(answer.message)

    async def on_question(self, post: Post, context: TurnContext) -> Post:
        await self.function()
        return post.reply("done")


PLACES = ["receive", "on_question"]
EACH_WAY = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("place", PLACES)
@EACH_WAY
async def test_a_verb_from_inside_is_refused_and_changes_nothing(
    verb: str, place: str, way: Callable[[Call, Conversation], Awaitable[None]]
) -> None:
    refused: list[str] = []

    async def call() -> None:
        conversation.pause()
        before = (log(conversation), rounds(conversation))
        try:
            await way(VERBS[verb](conversation, queued), conversation)
        except InsideTurn as error:
            refused.append(f"{error.verb} in {error.role}")
        assert (log(conversation), rounds(conversation)) == before
        assert [waiting.message.message for waiting in conversation.queued()] == ["later"]
        called.set()
        await withdrawn.wait()

    called, withdrawn = trio.Event(), trio.Event()
    async with open_conversation(Calling(place, call)) as conversation:
        started = conversation.communicate("q")
        queued = conversation.enqueue("later")
        await called.wait()
        assert conversation.paused
        assert queued.withdraw()
        conversation.resume()
        withdrawn.set()
        assert (await started.reply()).message == "done"
        assert started.interrupted == ()
    assert refused == [f"{verb.split()[0]} in calling"]
    assert rounds(conversation) == "q"


@pytest.mark.parametrize("place", PLACES)
@EACH_WAY
async def test_a_role_may_stop_its_round(place: str, way: Callable[[Call, Conversation], Awaitable[None]]) -> None:
    async def call() -> None:
        await way(partial(conversation.stop, "seen enough"), conversation)
        await trio.sleep_forever()

    async with open_conversation(Calling(place, call)) as conversation:
        with pytest.raises(RoundStopped, match="seen enough"):
            await conversation.send("q")
        await conversation.wait_idle()
    assert rounds(conversation) == "q stopped"


@pytest.mark.parametrize("place", PLACES)
@EACH_WAY
async def test_a_role_may_pause_its_round(place: str, way: Callable[[Call, Conversation], Awaitable[None]]) -> None:
    async def call() -> None:
        await way(partial(conversation.pause), conversation)
        paused.set()

    paused = trio.Event()
    async with open_conversation(Calling(place, call)) as conversation:
        started = conversation.communicate("q")
        await paused.wait()
        assert conversation.paused
        conversation.resume()
        assert (await started.reply()).message == "done"


async def test_what_the_host_does_about_a_question_is_inside_the_turn_too(autojump_clock: MockClock) -> None:
    async def on_question(post: Post) -> str:
        with pytest.raises(InsideTurn):
            await conversation.send("x")
        conversation.pause()
        return "2025"

    async with open_conversation(Asking(), options=ConversationOptions(on_question=on_question)) as conversation:
        started = conversation.communicate("q")
        await trio.sleep(1)
        assert conversation.paused
        conversation.resume()
        assert (await started.reply()).message == "2025"


async def test_what_a_role_has_the_host_call_is_outside(autojump_clock: MockClock) -> None:
    to_role, from_role = trio.open_memory_channel[Callable[[], object]](0)

    async def call() -> None:
        await to_role.send(partial(conversation.intervene, "x"))
        await trio.sleep(1)

    async with open_conversation(Calling("receive", call)) as conversation:
        started = conversation.communicate("q")
        (await from_role.receive())()
        await from_role.receive()
        assert (await started.reply()).message == "done"
    assert "User > calling intervention x" in log(conversation)
