"""Recorded and replayed models: what is kept, what is hidden, and what is said of a request that was not recorded."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.chat_model import (
    ChatModel,
    ChatRequest,
    Delta,
    EndDelta,
    FilePart,
    ImagePart,
    Message,
    ReasoningDelta,
    ReplySchema,
    RetryingDelta,
    TextDelta,
    UsageDelta,
)
from callboard.runtime.errors import BrokenStream, InvalidFile, ModelError
from callboard.runtime.json_value import FrozenMapping
from callboard.runtime.recording_model import RecordingModel
from callboard.runtime.replay_model import ReplayModel

from .test_retrying_model import BUSY, Plays

WHOLE: list[Delta] = [
    ReasoningDelta("hm"),
    TextDelta("Gr\u00fc\u00df"),
    TextDelta(" Gott\u2028\n"),
    UsageDelta(9, 2, 4),
    EndDelta("stop"),
]


def asking(*contents: str, **more: Any) -> ChatRequest:
    roles = ["system", "user", "assistant", "user", "assistant"]
    messages = zip(roles, contents, strict=False)
    return ChatRequest("writer", tuple(Message(role, said) for role, said in messages), **more)  # type: ignore[arg-type]  # zip forgets the names


ASKED = asking("Be brief.", "Hello.")


async def read(model: ChatModel, request: ChatRequest = ASKED) -> list[Delta]:
    async with model.stream(request) as deltas:
        return [delta async for delta in deltas]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cassette.jsonl"


def kept(path: Path) -> str:
    """What the file holds."""
    return path.read_bytes().decode() if path.exists() else ""


async def recorded(path: Path, *requests: ChatRequest, items: list[Any] = WHOLE, **options: Any) -> None:
    for request in requests:
        await read(RecordingModel(Plays(*items), path, **options), request)


async def test_a_replay_is_the_reply_that_was_recorded(path: Path) -> None:
    await recorded(path, ASKED)
    model = ReplayModel(path)
    assert (await read(model), model.name) == (WHOLE, "plays")
    assert await read(model) == WHOLE  # the last for ever


async def test_the_role_that_asks_is_no_part_of_the_key(path: Path) -> None:
    await recorded(path, ASKED)
    assert await read(ReplayModel(path), ChatRequest("another", ASKED.messages)) == WHOLE


async def test_one_line_of_utf_8_is_added_for_each_call(path: Path) -> None:
    await recorded(path, ASKED, asking("Be brief.", "Bye."))
    first, second, end = kept(path).split("\n")
    assert end == "" and "Gr\u00fc\u00df" in second
    assert json.loads(first)["messages"][1] == {"role": "user", "content": "Hello."}


async def test_calls_with_the_same_messages_are_played_in_their_order(path: Path) -> None:
    for text in ("one", "two"):
        await recorded(path, ASKED, items=[TextDelta(text), EndDelta("stop")])
    model = ReplayModel(path)
    assert [(await read(model))[0] for _ in range(3)] == [TextDelta("one"), TextDelta("two"), TextDelta("two")]


async def test_time_is_left_out_or_kept(path: Path, autojump_clock: MockClock) -> None:
    items = [3, TextDelta("a"), 4, TextDelta("b"), EndDelta("stop")]
    for timing, seconds in (("left out", 0), ("kept", 7)):
        cassette = path.with_name(timing)
        await recorded(cassette, ASKED, items=items, timing=timing)
        start = trio.current_time()
        await read(ReplayModel(cassette))
        assert trio.current_time() - start == pytest.approx(seconds)


async def test_what_happened_on_the_way_to_the_reply_is_not_kept(path: Path) -> None:
    await recorded(path, ASKED, items=[RetryingDelta("busy at host", 0.0), *WHOLE])
    assert await read(ReplayModel(path)) == WHOLE


async def test_a_call_that_failed_or_was_cancelled_is_not_kept(path: Path, autojump_clock: MockClock) -> None:
    with pytest.raises(ModelError):
        await recorded(path, ASKED, items=[TextDelta("a"), BUSY])
    with trio.move_on_after(1):
        await recorded(path, ASKED, items=[TextDelta("a"), 99])
    assert kept(path) == ""


async def test_a_reply_that_was_enough_for_its_reader_is_kept_as_far_as_it_was_read(path: Path) -> None:
    async with RecordingModel(Plays(*WHOLE), path).stream(ASKED) as deltas:
        first = [await anext(deltas), await anext(deltas)]
    async with ReplayModel(path).stream(ASKED) as deltas:
        assert [await anext(deltas), await anext(deltas)] == first
        with pytest.raises(BrokenStream, match="not read any further"):
            await anext(deltas)


@pytest.mark.parametrize("seed", range(5))
async def test_no_secret_is_kept_however_it_is_cut(path: Path, seed: int) -> None:
    secret = "sk-0123456789"
    said = f"the key {secret} and {secret}."
    source = random.Random(seed)
    cuts = sorted(source.sample(range(1, len(said)), 6))
    pieces = [TextDelta(said[start:end]) for start, end in zip([0, *cuts], [*cuts, len(said)], strict=True)]
    shown = (ImagePart(f"https://host/?key={secret}"), FilePart("a", f"data:text/plain,{secret}"))
    request = ChatRequest("writer", (Message("user", f"use {secret}", shown),))
    await recorded(path, request, items=[ReasoningDelta(secret), *pieces, EndDelta("stop")], secrets=[secret])
    assert secret not in kept(path)
    _, text, end = await read(ReplayModel(path, secrets=[secret]), request)
    assert (text, end) == (TextDelta("the key [secret] and [secret]."), EndDelta("stop"))


async def test_pieces_without_a_secret_stay_as_they_were(path: Path) -> None:
    await recorded(path, ASKED, secrets=["sk-0123456789"])
    assert await read(ReplayModel(path)) == WHOLE


def test_an_empty_secret_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="not empty"):
        RecordingModel(Plays(), path, secrets=[""])


async def test_data_is_kept_as_its_digest(path: Path) -> None:
    def shown(data: str) -> ChatRequest:
        return ChatRequest("writer", (Message("user", "look", (ImagePart(f"data:image/png;base64,{data}"),)),))

    await recorded(path, shown("A" * 100_000))
    assert len(kept(path)) < 1000
    model = ReplayModel(path)
    assert await read(model, shown("A" * 100_000)) == WHOLE
    with pytest.raises(ModelError, match=r"message 1 of 1 \(user\), what is shown with it"):
        await read(model, shown("A" * 99_999 + "B"))


SCHEMA = ReplySchema("reply", FrozenMapping({"type": "object"}))


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (
            asking("Be brief.", "Hello!"),
            r"2 of 2 \(user\), from character 5 on: recorded 'Hello.', asked 'Hello!'",
        ),
        (asking("Be long.", "Hello."), r"message 1 of 2 \(system\), from character 3 on"),
        (asking("Be brief.", "Hello.", "Yes."), "number of messages: recorded 4, asked 3, the first 3 being the same"),
        (asking("Be brief.", "Hello.", "No.", "What?"), r"message 3 of 4 \(assistant\), from character 0 on"),
        (ChatRequest("w", (Message("user", "Be brief."),)), "message 1 of 1, the role: recorded system, asked user"),
        (
            asking("Be brief.", "Hello.", schema=SCHEMA),
            "the schema of the reply: recorded none, asked {'name'",
        ),
    ],
    ids=["text", "first", "fewer", "later", "role", "schema"],
)
async def test_a_request_that_was_not_recorded_is_told_what_is_different(
    path: Path, request_: ChatRequest, said: str
) -> None:
    await recorded(path, ASKED, asking("Be brief.", "Hello.", "Yes.", "Why?"), asking("Else", "Hello?"))
    with pytest.raises(ModelError, match=f"none of 3 recorded calls is this one; the nearest differs in .*{said}"):
        await read(ReplayModel(path), request_)


async def test_a_cassette_without_calls_says_so() -> None:
    with pytest.raises(ModelError, match="no call is recorded"):
        await read(ReplayModel(os.devnull))


def test_a_line_that_was_not_written_to_its_end_spoils_no_other(path: Path) -> None:
    trio.run(recorded, path, ASKED)
    whole = path.read_bytes()
    for end in range(1, len(whole) - 1, 40):
        path.write_bytes(whole[:end])
        trio.run(recorded, path, asking("Be brief.", "Bye."))
        assert repr(ReplayModel(path)).endswith("1 calls>")


@pytest.mark.parametrize("line", ['{"digest": "x"}', '{"a": 1, "deltas": [{"smile": 1}]}', "oops"])
def test_what_is_no_cassette_is_refused_with_its_line(path: Path, line: str) -> None:
    path.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(InvalidFile, match=r"line 2: is no recorded call"):
        ReplayModel(path)
