"""The retrying model: what is transient is called again, after a wait that is random, bounded and cancelled at once."""

import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from callboard.actors.role import Role
from callboard.runtime.backoff import Backoff
from callboard.runtime.chat_model import (
    ChatModel,
    ChatRequest,
    Delta,
    EndDelta,
    ReasoningDelta,
    RetryingDelta,
    TextDelta,
    UsageDelta,
)
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import LimitReached, ModelError, ModelTimedOut, RateLimited, RoleFailed
from callboard.runtime.limits import Limits
from callboard.runtime.model_event import ModelRetried
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
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


class Plays:
    """A model that sends these, waits for the numbers among them, and raises the errors."""

    name = "plays"

    def __init__(self, *items: Delta | Exception | float) -> None:
        self.items = items
        self.calls = 0

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Delta]]:
        async def deltas() -> AsyncGenerator[Delta, None]:
            for item in self.items:
                if isinstance(item, Exception):
                    raise item
                if isinstance(item, int | float):
                    await trio.sleep(item)
                else:
                    yield item

        self.calls += 1
        async with aclosing(deltas()) as playing:
            yield playing


async def test_a_call_that_does_not_fail_passes_through() -> None:
    model = scripted(Reply("Hello.", pieces=2))
    assert await read(RetryingModel(model)) == [TextDelta("Hel"), TextDelta("lo."), EndDelta("stop")]


async def test_a_call_that_failed_before_anything_came_is_made_again(autojump_clock: MockClock) -> None:
    model = RetryingModel(scripted(BUSY, BUSY, Reply("Hello.", pieces=1)), backoff=Backoff(source=random.Random(1)))
    first, second, *reply = await read(model)
    assert isinstance(first, RetryingDelta) and isinstance(second, RetryingDelta)
    assert reply == [TextDelta("Hello."), EndDelta("stop")]
    assert trio.current_time() == pytest.approx(first.seconds + second.seconds) and first.reason == "busy"


async def test_waits_are_random_and_bounded(autojump_clock: MockClock) -> None:
    waits: dict[int, list[float]] = {}
    for seed in range(200):
        backoff = Backoff(attempts=6, first=1, longest=5, source=random.Random(seed))
        model = RetryingModel(scripted(*[BUSY] * 5, "x"), backoff=backoff)
        deltas = [delta for delta in await read(model) if isinstance(delta, RetryingDelta)]
        for number, delta in enumerate(deltas):
            waits.setdefault(number, []).append(delta.seconds)
    assert [0.9 * most < max(waits[number]) <= most for number, most in enumerate([1, 2, 4, 5, 5])] == [True] * 5
    assert all(min(seconds) < 0.2 and len(set(seconds)) > 190 for seconds in waits.values())


async def test_the_last_call_raises_what_it_raised(autojump_clock: MockClock) -> None:
    model = scripted(BUSY, BUSY, BUSY)
    with pytest.raises(ModelError, match="busy"):
        await read(RetryingModel(model, backoff=Backoff(attempts=3)))
    model.check_finished()


@pytest.mark.parametrize("error", [ModelError("no", fault="caller", may_retry=False), ValueError("odd")])
async def test_what_will_not_do_better_is_not_tried_again(error: Exception) -> None:
    with pytest.raises(type(error)):
        await read(RetryingModel(scripted(error, "x")))


@pytest.mark.parametrize("come", [TextDelta("Hel"), ReasoningDelta("hm")], ids=["text", "thoughts"])
async def test_a_reply_of_which_something_has_come_is_not_asked_for_again(come: Delta) -> None:
    model = Plays(come, BUSY)
    async with RetryingModel(model).stream(REQUEST) as deltas:
        assert await anext(deltas) == come
        with pytest.raises(ModelError):
            await anext(deltas)
    assert model.calls == 1


async def test_what_was_counted_before_the_reply_began_is_no_part_of_it(autojump_clock: MockClock) -> None:
    model = Plays(UsageDelta(5, 0), BUSY)
    with pytest.raises(ModelError, match="busy"):
        await read(RetryingModel(model, backoff=Backoff(attempts=3)))
    assert model.calls == 3


async def test_a_call_of_which_nothing_comes_is_made_again(autojump_clock: MockClock) -> None:
    model = Plays(UsageDelta(5, 0), 1000, TextDelta("late"))
    with pytest.raises(ModelTimedOut, match="nothing has come from plays for 10 s") as caught:
        await read(RetryingModel(model, backoff=Backoff(attempts=2, first=0), stalled=10))
    assert (model.calls, trio.current_time(), caught.value.may_retry) == (2, 20, True)


async def test_a_reply_that_stalls_after_it_began_is_left_to_its_reader(autojump_clock: MockClock) -> None:
    model = Plays(TextDelta("Hel"), 1000, EndDelta("stop"))
    assert await read(RetryingModel(model, stalled=10)) == [TextDelta("Hel"), EndDelta("stop")]


async def test_a_wait_of_the_model_s_own_is_no_stall(autojump_clock: MockClock) -> None:
    model = Plays(RetryingDelta("busy", 100), 100, 9, TextDelta("Hello."), EndDelta("stop"))
    assert len(await read(RetryingModel(model, stalled=10))) == 3


@pytest.mark.parametrize("stalled", [0, -1, float("nan")])
def test_what_is_no_number_of_seconds_cannot_be_stalled_for(stalled: float) -> None:
    with pytest.raises(ValueError, match="stalled"):
        RetryingModel(scripted(), stalled=stalled)


def limited(seconds: float) -> RateLimited:
    return RateLimited("slow down", fault="caller", may_retry=True, retry_after=seconds)


async def test_a_server_is_not_asked_before_the_time_it_named(autojump_clock: MockClock) -> None:
    waits = []
    for seed in range(50):
        model = RetryingModel(scripted(*[limited(20)] * 3, "x"), backoff=Backoff(source=random.Random(seed)))
        waits += [delta.seconds for delta in await read(model) if isinstance(delta, RetryingDelta)]
    assert all(20 <= wait <= 21 for wait in waits) and len(set(waits)) == 150


async def test_a_server_that_wants_to_be_left_alone_for_long_is(autojump_clock: MockClock) -> None:
    with pytest.raises(RateLimited) as caught:
        await read(RetryingModel(scripted(limited(31), "x")))
    assert (caught.value.retry_after, trio.current_time()) == (31, 0)


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
        Backoff(**options)


class Writer(Role):
    """Answers with what its model replies."""

    name = "writer"
    template = "Write."

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply(await self.think(context, await self.messages(post, context)))


async def test_an_intervention_ends_a_wait_at_once(autojump_clock: MockClock) -> None:
    backoff = Backoff(first=1000, longest=1000, source=random.Random(1))
    model = RetryingModel(scripted(BUSY, "Hello."), backoff=backoff)
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
    async with open_conversation(
        Writer(RetryingModel(scripted(BUSY, BUSY), backoff=Backoff(attempts=2)))
    ) as conversation:
        with pytest.raises(RoleFailed) as caught:
            await conversation.send("Greet.")
        assert isinstance(caught.value.__cause__, ModelError)


async def test_each_call_made_again_counts_against_the_limit_of_calls(autojump_clock: MockClock) -> None:
    model = scripted(BUSY, BUSY, BUSY, "x")
    options = ConversationOptions(limits=Limits(model_calls=2))
    async with open_conversation(Writer(RetryingModel(model)), options=options) as conversation:
        with pytest.raises(RoleFailed) as caught:
            await conversation.send("Greet.")
        assert isinstance(caught.value.__cause__, LimitReached)
        assert conversation.usage.total.model_calls == 3
    assert len(model.requests) == 2


async def test_a_wait_ends_with_the_time_of_its_turn(autojump_clock: MockClock) -> None:
    backoff = Backoff(first=1000, longest=1000, source=random.Random(1))
    options = ConversationOptions(limits=Limits(seconds=5))
    model = RetryingModel(scripted(BUSY, "x"), backoff=backoff)
    async with open_conversation(Writer(model), options=options) as conversation:
        with pytest.raises(RoleFailed) as caught:
            await conversation.send("Greet.")
        assert isinstance(caught.value.__cause__, LimitReached) and trio.current_time() == 5


async def test_waits_longer_than_a_step_may_be_silent_do_not_end_it(autojump_clock: MockClock) -> None:
    model = RetryingModel(scripted(limited(25), limited(25), limited(25), "Hello."))
    options = ConversationOptions(stalled=20)
    async with open_conversation(Writer(model), options=options) as conversation:
        assert (await conversation.send("Greet.")).message == "Hello."
