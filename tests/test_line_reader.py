"""Lines and events come out the same however the network cut their bytes."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callboard.runtime.errors import ModelError
from callboard.runtime.models.line_reader import EventReader, LineReader

Feed = Callable[[bytes], Iterator[str]]

# Dense in what matters: breaks, what looks like one, long characters, and bytes that are no UTF-8.
PARTS = [
    b"a",
    b"data: ",
    b"data:x\n",
    b"\n",
    b"\r",
    b"\r\n",
    "\u2028\x85\x0c€😀".encode(),
    b"\xff",
    b":",
    b"\xef\xbb\xbf",
]
BYTES = st.lists(st.sampled_from(PARTS) | st.binary(max_size=3), max_size=30).map(b"".join)


def read(feed: Feed, pieces: list[bytes]) -> list[str]:
    """What comes out of the pieces, an error being the last item."""
    found: list[str] = []
    try:
        for piece in pieces:
            for text in feed(piece):
                found.append(text)
    except ModelError as error:
        found.append(f"error: {error.message}")
    return found


def cut(data: bytes, at: list[int]) -> list[bytes]:
    """The bytes in pieces, some of them empty perhaps."""
    places = [0, *sorted(place % (len(data) + 1) for place in at), len(data)]
    return [data[start:stop] for start, stop in pairwise(places)]


@given(BYTES, st.lists(st.integers(min_value=0, max_value=200), max_size=12))
@example(b"a\r\nb\r\n", [2, 2, 5])
@example(b"a\r", [1, 2])
@example("😀\n".encode(), [1, 2, 3])
def test_lines_do_not_depend_on_the_cuts(data: bytes, at: list[int]) -> None:
    whole = read(LineReader(limit=12).feed, [data])
    assert read(LineReader(limit=12).feed, cut(data, at)) == whole
    assert read(LineReader(limit=12).feed, [bytes([byte]) for byte in data]) == whole


@given(BYTES, st.lists(st.integers(min_value=0, max_value=200), max_size=12))
def test_events_do_not_depend_on_the_cuts(data: bytes, at: list[int]) -> None:
    assert read(EventReader(limit=12).feed, cut(data, at)) == read(EventReader(limit=12).feed, [data])


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))), st.data())
def test_every_line_comes_back_as_it_was_written(lines: list[str], data: st.DataObject) -> None:
    breaks = [data.draw(st.sampled_from(["\n", "\r\n"])) for _ in lines]
    text = "\ufeff" + "".join(line + mark for line, mark in zip(lines, breaks, strict=True))
    assert read(LineReader().feed, [text.encode()]) == lines


def test_only_the_breaks_of_the_standard_end_a_line() -> None:
    text = "a\u2028b\x85c\x0cd\x0be\u2029f"
    assert read(LineReader().feed, [f"{text}\rx\r\n\ny\n".encode()]) == [text, "x", "", "y"]


def test_a_line_comes_with_its_return_and_the_feed_after_it_is_no_line() -> None:
    reader = LineReader()
    assert list(reader.feed(b"a\r")) == ["a"]
    assert list(reader.feed(b"")) == []
    assert list(reader.feed(b"\nb\n")) == ["b"]


def test_what_follows_the_last_break_is_no_line() -> None:
    assert read(LineReader().feed, [b"a\nb"]) == ["a"]


def test_a_line_may_be_as_long_as_the_limit_and_no_longer() -> None:
    assert read(LineReader(limit=3).feed, [b"abc\n", b"abc", b"d"]) == [
        "abc",
        "error: the server sent a line of more than 3 bytes",
    ]


def test_bytes_that_are_no_text_are_the_fault_of_the_server() -> None:
    with pytest.raises(ModelError, match="no UTF-8") as caught:
        list(LineReader().feed(b"\xff\n"))
    assert (caught.value.fault, caught.value.may_retry) == ("server", False)


def test_an_event_is_its_data_lines_joined() -> None:
    stream = b": comment\nevent: x\ndata: a\ndata:b\ndata:  c\ndata\nid: 1\n\n\n\ndata: d\n\ndata: cut off"
    assert read(EventReader().feed, [stream]) == ["a\nb\n c\n", "d"]


def test_an_event_of_many_lines_has_a_limit_too() -> None:
    assert read(EventReader(limit=10).feed, [b"data: abcd\n" * 3])[-1].startswith("error: the server sent an event")
