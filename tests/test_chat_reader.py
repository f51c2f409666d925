"""The reader of chat completions: the same deltas however the bytes and the pieces are cut."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.runtime.chat_model import Delta, EndDelta, ReasoningDelta, TextDelta, UsageDelta
from callboard.runtime.errors import ContentRefused
from callboard.runtime.models.chat_reader import ChatReader
from callboard.runtime.models.http_error import HttpErrors

from .model_server import piece, stop

Body = dict[str, Any]


def stream(*bodies: Body) -> bytes:
    return b"".join(b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies)


def read(*chunks: bytes) -> list[Delta]:
    reader = ChatReader(HttpErrors("m", ()))
    found = [delta for chunk in chunks for delta in reader.feed(chunk)]
    return [*found, *reader.finish()]


def text(deltas: list[Delta], kind: type[TextDelta | ReasoningDelta] = TextDelta) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, kind))


def calling(arguments: object, index: object = 0) -> Body:
    """An event with a piece of a call's arguments; one without an index if it is None."""
    call = {"function": {"arguments": arguments}} | ({} if index is None else {"index": index})
    return {"choices": [{"delta": {"tool_calls": [call]}}]}


ARGUMENTS = json.dumps({"response": {"message": 'a "quoted" \\ 😀 line\n', "n": [1, {"x": None}]}})


def test_the_bytes_of_a_reply_may_be_cut_anywhere() -> None:
    thought = {"choices": [{"delta": {"reasoning": "hm\u2028"}}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    whole = stream(thought, piece("a😀b"), calling(ARGUMENTS), usage, stop())
    expected = read(whole)
    assert expected[-2:] == [UsageDelta(9, 2), EndDelta("stop")]
    assert all(read(whole[:at], whole[at:]) == expected for at in range(len(whole) + 1))
    assert read(*(bytes([byte]) for byte in whole)) == expected


@given(st.lists(st.integers(0, len(ARGUMENTS)), max_size=20))
def test_the_arguments_of_a_call_may_be_cut_anywhere(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(ARGUMENTS)]
    pieces = [calling(ARGUMENTS[start:end]) for start, end in pairwise(places)]
    assert text(read(stream(*pieces, stop("tool_calls")))) == ARGUMENTS


@pytest.mark.parametrize("index", [0, 1, None])
def test_the_first_of_several_calls_is_the_reply(index: int | None) -> None:
    other = calling("no", index=7)
    assert text(read(stream(calling("ye", index), other, calling("s", index), other, stop()))) == "yes"


def test_arguments_that_are_an_object_already_are_written_as_json() -> None:
    assert text(read(stream(calling({"a": 1}), stop()))) == '{"a": 1}'


def test_a_text_may_be_cut_between_the_halves_of_a_character() -> None:
    said = "a😀é􏿿b"
    units = said.encode("utf-16-le")
    for at in range(0, len(units) + 1, 2):
        halves = [part.decode("utf-16-le", "surrogatepass") for part in (units[:at], units[at:])]
        assert text(read(stream(*map(piece, halves), stop()))) == said


def test_half_a_character_of_the_thoughts_does_not_meet_one_of_the_text() -> None:
    thought = {"choices": [{"delta": {"reasoning_content": "\ud83d"}}]}
    found = read(stream(thought, piece("\ude00"), stop()))
    assert (text(found), text(found, ReasoningDelta)) == ("\ufffd", "\ufffd")


@pytest.mark.parametrize("usage", [{"prompt_tokens_details": {"cached_tokens": 6}}, {"prompt_cache_hit_tokens": 6}])
def test_tokens_that_the_provider_had_kept_are_told(usage: Body) -> None:
    counted = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, **usage}}
    assert UsageDelta(9, 2, 6) in read(stream(counted, stop()))


def test_a_refusal_is_no_reply() -> None:
    said = [{"choices": [{"delta": {"refusal": words}}]} for words in ("I ", "won't")]
    with pytest.raises(ContentRefused, match=r"refused: I won't$"):
        read(stream(*said, stop()))


def test_a_reply_that_was_filtered_is_none() -> None:
    with pytest.raises(ContentRefused, match="filter"):
        read(stream(piece("half"), stop("content_filter")))
