"""The fallback model: the next one is called where nothing came of the first, and all can see who replied."""

from typing import Any

import pytest
from trio.testing import MockClock

from callboard.runtime.backoff import Backoff
from callboard.runtime.chat_model import ChatModel, ChatRequest, Delta, EndDelta, FallbackDelta, TextDelta
from callboard.runtime.errors import AuthenticationFailed, ModelError, Overloaded
from callboard.runtime.event import Event
from callboard.runtime.fallback_model import FallbackModel
from callboard.runtime.model_event import ModelCalled, ModelReplaced
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.retrying_model import RetryingModel
from callboard.runtime.scripted_model import Reply, ScriptedModel
from callboard.runtime.usage import Price

from .test_retrying_model import Plays, Writer

BUSY = Overloaded("busy", fault="server", may_retry=True)
NO_KEY = AuthenticationFailed("no key", fault="caller", may_retry=False)
REQUEST = ChatRequest("writer", ())


def scripted(name: str, *steps: Any) -> ScriptedModel:
    return ScriptedModel({"writer": list(steps)}, name=name)


async def read(model: ChatModel) -> list[Delta]:
    async with model.stream(REQUEST) as deltas:
        return [delta async for delta in deltas]


async def test_the_first_model_is_enough_if_it_replies() -> None:
    second = scripted("b", "Bye.")
    model = FallbackModel([scripted("a", Reply("Hello.", pieces=1)), second])
    assert await read(model) == [TextDelta("Hello."), EndDelta("stop")]
    assert (model.name, second.requests) == ("a", ())


@pytest.mark.parametrize("error", [BUSY, NO_KEY])
async def test_the_next_is_called_if_nothing_came(error: ModelError) -> None:
    model = FallbackModel([scripted("a", error), scripted("b", BUSY), scripted("c", Reply("Hello.", pieces=1))])
    assert await read(model) == [
        FallbackDelta(str(error), "b"),
        FallbackDelta("busy", "c"),
        TextDelta("Hello."),
        EndDelta("stop"),
    ]


async def test_none_is_called_after_something_came() -> None:
    second = scripted("b", "Bye.")
    with pytest.raises(Overloaded):
        await read(FallbackModel([Plays(TextDelta("Hel"), BUSY), second]))
    assert second.requests == ()


async def test_the_last_raises_what_it_raised() -> None:
    with pytest.raises(Overloaded):
        await read(FallbackModel([scripted("a", NO_KEY), scripted("b", BUSY)]))


async def test_what_is_no_failure_of_a_model_is_not_hidden() -> None:
    with pytest.raises(KeyError):
        await read(FallbackModel([scripted("a", KeyError("odd")), scripted("b", "Bye.")]))


def test_no_models_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        FallbackModel([])


async def test_each_may_be_called_again_before_the_next(autojump_clock: MockClock) -> None:
    first = scripted("a", BUSY, BUSY)
    model = FallbackModel([RetryingModel(first, backoff=Backoff(attempts=2)), scripted("b", "Hello.")])
    assert FallbackDelta("busy", "b") in await read(model)
    assert len(first.requests) == 2 and "RetryingModel" in repr(model)


async def test_events_name_the_model_that_replied_and_its_price_counts() -> None:
    model = FallbackModel([scripted("a", BUSY), scripted("b", Reply("Hello.", usage=(10, 2)))])
    options = ConversationOptions(prices={"a": Price(1e6, 1e6), "b": Price(2e6, 3e6)})
    async with open_conversation(Writer(model), options=options) as conversation:
        events = conversation.events()
        await conversation.send("Greet.")
        total = conversation.usage.total
    seen: list[Event] = [event async for event in events if isinstance(event, ModelCalled | ModelReplaced)]
    assert seen[0] == ModelReplaced("writer", "a", "busy", "b")
    assert isinstance(seen[1], ModelCalled) and (seen[1].model, seen[1].cost) == ("b", 26)
    assert (total.cost, total.model_calls) == (26, 2)
