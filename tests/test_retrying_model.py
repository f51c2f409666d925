"""The retrying model: what is transient is called again, after a wait that is random, bounded and cancelled at once."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from callboard.actors.role import Role
from callboard.runtime.chat_model import ChatModel, ChatRequest, Delta, EndDelta, RetryingDelta, TextDelta
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import ModelError, RoleFailed
from callboard.runtime.event import ModelRetried
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.retrying_model import RetryingModel
from callboard.runtime.scripted_model import Reply, ScriptedModel

BUSY = ModelError("busy", fault="server", may_retry=True)
REQUEST = ChatRequest("writer", ())


def scripted(*steps: Any) -> ScriptedModel:
    """A model that plays these for the writer."""
    return ScriptedModel({"writer": list(steps)})


async def read(model: ChatModel) -> list[Delta]:
    """All deltas of one reply."""
    async with model.stream(REQUEST) as deltas:
        return [delta async for delta in deltas]


class BreaksOff:
    """A model that fails after its first piece."""

    name = "breaks off"
    calls = 0

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Delta]]:
        async def deltas() -> AsyncIterator[Delta]:
            yield TextDelta("Hel")
            raise BUSY

        self.calls += 1
        yield deltas()


async def test_a_call_that_does_not_fail_passes_through() -> None:
    model = scripted(Reply("Hello.", pieces=2))
    assert await read(RetryingModel(model)) == [TextDelta("Hel"), TextDelta("lo."), EndDelta("stop")]


async def test_a_call_that_failed_before_anything_came_is_made_again(autojump_clock: MockClock) -> None:
    model = RetryingModel(scripted(BUSY, BUSY, Reply("Hello.", pieces=1)), source=random.Random(1))
    first, second, *reply = await read(model)
    assert isinstance(first, RetryingDelta) and isinstance(second, RetryingDelta)
    assert reply == [TextDelta("Hello."), EndDelta("stop")]
    assert trio.current_time() == pytest.approx(first.seconds + second.seconds) and first.reason == "busy"


async def test_waits_are_random_and_bounded(autojump_clock: MockClock) -> None:
    waits: dict[int, list[float]] = {}
    for seed in range(200):
        model = RetryingModel(scripted(*[BUSY] * 5, "x"), attempts=6, first=1, longest=5, source=random.Random(seed))
        deltas = [delta for delta in await read(model) if isinstance(delta, RetryingDelta)]
        for number, delta in enumerate(deltas):
            waits.setdefault(number, []).append(delta.seconds)
    assert [0.9 * most < max(waits[number]) <= most for number, most in enumerate([1, 2, 4, 5, 5])] == [True] * 5
    assert all(min(seconds) < 0.2 and len(set(seconds)) > 190 for seconds in waits.values())


async def test_the_last_call_raises_what_it_raised(autojump_clock: MockClock) -> None:
    model = scripted(BUSY, BUSY, BUSY)
    with pytest.raises(ModelError, match="busy"):
        await read(RetryingModel(model, attempts=3))
    model.check_finished()


@pytest.mark.parametrize("error", [ModelError("no", fault="caller", may_retry=False), ValueError("odd")])
async def test_what_will_not_do_better_is_not_tried_again(error: Exception) -> None:
    with pytest.raises(type(error)):
        await read(RetryingModel(scripted(error, "x")))


async def test_a_reply_of_which_something_has_come_is_not_asked_for_again() -> None:
    model = BreaksOff()
    async with RetryingModel(model).stream(REQUEST) as deltas:
        assert await anext(deltas) == TextDelta("Hel")
        with pytest.raises(ModelError):
            await anext(deltas)
    assert model.calls == 1


async def test_a_reply_that_is_left_early_ends_its_call(autojump_clock: MockClock) -> None:
    async with RetryingModel(scripted(Reply("Hello.", delay=9))).stream(REQUEST) as deltas:
        await anext(deltas)
    assert trio.current_time() == 0


@pytest.mark.parametrize("pieces", [0, 1])
async def test_what_the_reader_raises_leaves_as_itself(pieces: int) -> None:
    with pytest.raises(KeyError):
        async with RetryingModel(scripted("Hello.")).stream(REQUEST) as deltas:
            for _ in range(pieces):
                await anext(deltas)
            await trio.testing.wait_all_tasks_blocked()
            raise KeyError


@pytest.mark.parametrize("options", [{"attempts": 0}, {"attempts": True}, {"first": -1}, {"first": 9, "longest": 1}])
def test_what_is_no_number_of_attempts_or_seconds_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"attempts is a whole number|first is a number of seconds"):
        RetryingModel(scripted(), **options)


class Writer(Role):
    """Answers with what its model replies."""

    name = "writer"
    template = "Write."

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply(await self.think(context, await self.messages(post, context)))


async def test_an_intervention_ends_a_wait_at_once(autojump_clock: MockClock) -> None:
    model = RetryingModel(scripted(BUSY, "Hello."), first=1000, longest=1000, source=random.Random(1))
    async with open_conversation(Writer(model)) as conversation:
        events = conversation.events()
        started = conversation.communicate("Greet.")
        await trio.sleep(1)
        conversation.intervene("Now.")
        assert (await started.reply()).message == "Hello."
        assert trio.current_time() == 1
    (retried,) = [event async for event in events if isinstance(event, ModelRetried)]
    assert (retried.role, retried.seconds > 100) == ("writer", True)


async def test_a_role_whose_model_stays_busy_fails_with_its_error(autojump_clock: MockClock) -> None:
    async with open_conversation(Writer(RetryingModel(scripted(BUSY, BUSY), attempts=2))) as conversation:
        with pytest.raises(RoleFailed) as caught:
            await conversation.send("Greet.")
        assert isinstance(caught.value.__cause__, ModelError)
