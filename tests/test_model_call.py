"""A model call: what a host is told of it and what is counted, however it ends."""

from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from callboard.actors.model_call import call_model
from callboard.runtime.actor import Actor
from callboard.runtime.chat_model import (
    ChatModel,
    ChatRequest,
    EndDelta,
    FallbackDelta,
    ReasoningDelta,
    RetryingDelta,
    TextDelta,
    UsageDelta,
)
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import ModelError, Overloaded, RoleFailed
from callboard.runtime.limits import Limits
from callboard.runtime.model_event import ModelCalled
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.usage import Price, Usage

from .test_retrying_model import Plays

OPTIONS = ConversationOptions(prices={"plays": Price(4e6, 8e6, cached=1e6)}, stalled=60)
ALL = UsageDelta(10, 3, 6)


class Caller(Actor):
    """Answers with what its model says."""

    name = "Caller"

    def __init__(self, model: ChatModel, on_text: Callable[[str], object] | None = None) -> None:
        self.model = model
        self.on_text = on_text

    async def receive(self, post: Post, context: TurnContext) -> Post:
        await call_model(context, self.model, ChatRequest("Caller", ()), self.on_text or context.draft.write)
        return post.reply(context.draft.take())


async def called(model: ChatModel, on_text: Callable[[str], object] | None = None) -> tuple[ModelCalled, Usage]:
    """The event of one call, and all that was counted; the round may fail."""
    async with open_conversation(Caller(model, on_text), options=OPTIONS) as conversation:
        events = conversation.events()
        try:
            await conversation.send("Go.")
        except RoleFailed as failed:
            assert isinstance(failed.__cause__, ModelError)
        total = conversation.usage.total
    (event,) = [event async for event in events if isinstance(event, ModelCalled)]
    return event, total


async def test_one_event_tells_time_tokens_and_cost(autojump_clock: MockClock) -> None:
    event, total = await called(Plays(2, TextDelta("Hel"), 3, TextDelta("lo."), ALL, EndDelta("stop")))
    assert event == ModelCalled("Caller", "plays", 2, 5, 10, 3, 6, cost=4 * 4 + 1 * 6 + 8 * 3)
    assert (total.input_tokens, total.output_tokens, total.cost) == (10, 3, event.cost)


async def test_a_model_that_does_not_count_costs_nothing_that_is_known(autojump_clock: MockClock) -> None:
    event, _ = await called(Plays(TextDelta("Hello."), EndDelta("stop")))
    assert event == ModelCalled("Caller", "plays", 0, 0, None, None, None, 0.0)


async def test_waits_between_calls_are_in_the_time_to_the_first_delta(autojump_clock: MockClock) -> None:
    again, other = RetryingDelta("busy", 7), FallbackDelta("busy", "spare")
    event, total = await called(Plays(again, 7, other, 1, TextDelta("Hello."), EndDelta("stop")))
    assert (event.model, event.first_delta, total.model_calls) == ("spare", 8, 3)


async def test_a_call_that_fails_is_told_and_what_it_used_is_counted(autojump_clock: MockClock) -> None:
    event, total = await called(Plays(UsageDelta(10, 0), 4, Overloaded("busy", fault="server", may_retry=True)))
    assert (event.first_delta, event.seconds, event.output_tokens, total.input_tokens) == (0, 4, 0, 10)


async def test_a_call_that_has_brought_enough_ends_early_and_is_counted(autojump_clock: MockClock) -> None:
    event, total = await called(Plays(UsageDelta(10, 1), TextDelta("Hel"), 9, TextDelta("lo.")), lambda text: True)
    assert (event.seconds, total.tokens) == (0, 11)


async def test_a_call_that_is_cut_is_told_and_counted(autojump_clock: MockClock) -> None:
    model = Plays(UsageDelta(10, 1), TextDelta("Hel"), 9, TextDelta("lo."), EndDelta("stop"))
    async with open_conversation(Caller(model), options=OPTIONS) as conversation:
        events = conversation.events()
        started = conversation.communicate("Go.")
        await trio.sleep(4)
        conversation.intervene("Now.")
        await started.reply()
        assert conversation.usage.total.tokens == 22
    assert [event.seconds async for event in events if isinstance(event, ModelCalled)] == [4, 9]


async def test_a_model_that_thinks_for_long_has_not_stalled(autojump_clock: MockClock) -> None:
    thoughts = [item for _ in range(9) for item in (50, ReasoningDelta("hm"))]
    event, _ = await called(Plays(*thoughts, TextDelta("Yes."), EndDelta("stop")))
    assert event.seconds == 450


async def test_a_model_that_stops_thinking_has_stalled(autojump_clock: MockClock) -> None:
    event, _ = await called(Plays(50, ReasoningDelta("hm"), 1000))
    assert event.seconds == pytest.approx(50 + 60 * 9 / 8)


async def test_the_cost_that_is_told_is_what_the_limit_counts(autojump_clock: MockClock) -> None:
    options = ConversationOptions(prices=OPTIONS.prices, limits=Limits(cost=46))
    async with open_conversation(Caller(Plays(TextDelta("a"), ALL, EndDelta("stop"))), options=options) as conversation:
        assert (await conversation.send("Go.")).message == "a"
        assert conversation.usage.total.cost == 46
