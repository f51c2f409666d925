"""A scripted model plays each role its own lines, in their time, and says when a script does not fit."""

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.chat_model import (
    ChatModel,
    ChatRequest,
    Delta,
    EndDelta,
    Message,
    ReasoningDelta,
    TextDelta,
    UsageDelta,
)
from callboard.runtime.errors import ModelError
from callboard.runtime.scripted_model import Reply, ScriptedModel


def request(role: str = "writer", words: str = "hello") -> ChatRequest:
    return ChatRequest(role, (Message("user", words),))


async def ask(model: ChatModel, role: str = "writer", words: str = "hello") -> list[Delta]:
    """All deltas of one reply."""
    async with model.stream(request(role, words)) as deltas:
        return [delta async for delta in deltas]


def text(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


async def test_a_string_is_a_whole_reply_in_four_pieces() -> None:
    deltas = await ask(ScriptedModel({"writer": ["abcdefghij"]}))
    assert deltas == [TextDelta("ab"), TextDelta("cde"), TextDelta("fg"), TextDelta("hij"), EndDelta("stop")]


@pytest.mark.parametrize(("words", "pieces"), [("", 0), ("a", 1), ("abc", 3), ("abcd", 4), ("abcdefghi", 4)])
async def test_no_piece_is_empty(words: str, pieces: int) -> None:
    deltas = await ask(ScriptedModel({"writer": [words]}))
    assert (text(deltas), len(deltas)) == (words, pieces + 1)


async def test_a_reply_says_all_that_a_model_may() -> None:
    reply = Reply("ab", pieces=1, reasoning="hm", usage=(3, 2), reason="length")
    assert await ask(ScriptedModel({"writer": [reply]})) == [
        ReasoningDelta("hm"),
        TextDelta("ab"),
        UsageDelta(3, 2),
        EndDelta("length"),
    ]


async def test_the_delay_lies_between_two_pieces(autojump_clock: MockClock) -> None:
    start = trio.current_time()
    async with ScriptedModel({"writer": [Reply("abc", delay=2, usage=(1, 1))]}).stream(request()) as deltas:
        times = [round(trio.current_time() - start, 6) async for _ in deltas]
    assert times == [0, 2, 4, 4, 4]


async def test_each_role_has_its_own_script() -> None:
    model = ScriptedModel({"writer": ["one", "two"], "editor": ["red"]})
    replies = [text(await ask(model, role)) for role in ("writer", "editor", "writer")]
    assert replies == ["one", "red", "two"]
    assert [seen.role for seen in model.requests] == ["writer", "editor", "writer"]


async def test_a_step_may_be_an_error_to_raise() -> None:
    model = ScriptedModel({"writer": [ModelError("busy", fault="server", may_retry=True), ValueError("odd"), "ok"]})
    with pytest.raises(ModelError, match="busy"):
        await ask(model)
    with pytest.raises(ValueError, match="odd"):
        await ask(model)
    assert text(await ask(model)) == "ok"


async def test_a_step_may_depend_on_what_is_asked() -> None:
    model = ScriptedModel({"writer": [lambda asked: asked.messages[-1].content.upper(), lambda _: Reply("b")]})
    assert [text(await ask(model, words="aha")), text(await ask(model))] == ["AHA", "b"]


async def test_asking_beyond_the_script_names_the_role_and_its_steps() -> None:
    model = ScriptedModel({"writer": ["one"]})
    await ask(model)
    with pytest.raises(ModelError, match=r"'writer' asks for more than its script has: 1 step$"):
        await ask(model)
    with pytest.raises(ModelError, match="'reader' asks for more than its script has: 0 steps"):
        await ask(model, "reader")
    assert len(model.requests) == 3


async def interrupted(model: ScriptedModel, seconds: float) -> str:
    """What came until then."""
    came: list[Delta] = []
    with trio.move_on_after(seconds):
        async with model.stream(request()) as deltas:
            async for delta in deltas:
                came.append(delta)
    return text(came)


async def test_an_interrupted_step_is_not_played_again(autojump_clock: MockClock) -> None:
    model = ScriptedModel({"writer": [Reply("abcd", delay=1), "next"]})
    assert await interrupted(model, 1.5) == "ab"
    assert text(await ask(model)) == "next"


async def test_an_interrupted_step_is_played_again_if_it_says_so(autojump_clock: MockClock) -> None:
    model = ScriptedModel({"writer": [lambda _: Reply("abcd", delay=1, again=True), "next"]})
    assert [await interrupted(model, seconds) for seconds in (0.5, 2.5)] == ["a", "abc"]
    assert [text(await ask(model)), text(await ask(model))] == ["abcd", "next"]


async def test_cancelled_on_entering_no_step_is_taken() -> None:
    model = ScriptedModel({"writer": ["one"]})
    assert await interrupted(model, 0) == ""
    assert text(await ask(model)) == "one" and len(model.requests) == 1


async def test_left_over_steps_are_named() -> None:
    model = ScriptedModel({"writer": ["one", "two"], "editor": ["red"]})
    await ask(model, "editor")
    await ask(model)
    with pytest.raises(AssertionError, match=r"left over: 'writer' has 1 of 2: \['two'\]$"):
        model.check_finished()


async def test_the_block_checks_on_a_clean_exit_alone() -> None:
    with pytest.raises(AssertionError, match="left over"), ScriptedModel({"writer": ["one"]}):
        pass
    with pytest.raises(KeyError), ScriptedModel({"writer": ["one"]}):
        raise KeyError
    with ScriptedModel({"writer": ["one"]}) as model:
        await ask(model)


def test_a_string_is_no_script() -> None:
    with pytest.raises(TypeError, match="the script of 'writer' is a string"):
        ScriptedModel({"writer": "hello"})


def test_it_has_a_name_and_a_short_repr() -> None:
    model = ScriptedModel({"writer": ["one"]}, name="parrot")
    assert (model.name, repr(model)) == ("parrot", "<ScriptedModel 'parrot', steps left: writer: 1>")
