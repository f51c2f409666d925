"""Keys out of bytes, in whatever pieces these come."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callboard.service.terminal_keys import Key, KeyReader, Pressed, Typed

STREAM = "aü日🙂\x1b[A\x1b[1;5D\x1bOH\x1b[3~\x1bb\x7f\r\x1b[200~one\r\ntwo\t\x1b[31m\x1b[201~\x03z".encode()
KEYS = [
    *map(Typed, "aü日🙂"),
    *map(Pressed, ["up", "word left", "home", "delete", "word left", "backspace", "enter"]),
    *map(Typed, "one\ntwo    [31m"),
    Pressed("interrupt"),
    Typed("z"),
]


def single(keys: list[Key]) -> list[Key]:
    """The keys with one character in each text."""
    parts = ([Typed(one) for one in key.text] if isinstance(key, Typed) else [key] for key in keys)
    return [key for part in parts for key in part]


@example(list(range(len(STREAM))))
@given(st.lists(st.integers(0, len(STREAM))))
def test_the_keys_are_the_same_however_the_bytes_are_cut(cuts: list[int]) -> None:
    reader, places = KeyReader(), [0, *sorted(cuts), len(STREAM)]
    keys = [key for start, end in pairwise(places) for key in reader.feed(STREAM[start:end])]
    assert single(keys) == KEYS


def test_a_paste_is_one_text() -> None:
    assert KeyReader().feed(b"\x1b[200~a\nb\x1b[201~") == [Typed("a\nb")]


@pytest.mark.parametrize("begun", [b"\x1b", b"\x1b[", b"\x1b[1;", b"\x1bO"])
def test_a_sequence_that_has_begun_waits_and_may_be_given_up(begun: bytes) -> None:
    reader = KeyReader()
    assert reader.feed(begun) == []
    assert reader.waits
    reader.give_up()
    assert not reader.waits


def test_the_key_escape_eats_nothing_of_what_is_typed_later() -> None:
    reader = KeyReader()
    reader.feed(b"\x1b")
    reader.give_up()
    assert reader.feed(b"h") == [Typed("h")]


@pytest.mark.parametrize("data", [b"\x1b[99~", b"\x1b[<0;1;1M", b"\x1bOz", b"\x00", b"\x1bz"])
def test_what_means_nothing_types_nothing(data: bytes) -> None:
    assert KeyReader().feed(data) == [Pressed("")]


def test_bytes_that_are_no_utf_8_are_a_sign_that_says_so() -> None:
    assert KeyReader().feed(b"a\xffb") == [Typed("a\ufffdb")]


def test_ctrl_c_ends_a_paste_whose_end_is_lost() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b[200~abc\x03") == [Typed("abc"), Pressed("interrupt")]
    assert reader.feed(b"\r") == [Pressed("enter")]


@given(st.lists(st.binary(max_size=8)))
def test_no_bytes_whatever_break_it_or_stay_for_ever(pieces: list[bytes]) -> None:
    reader = KeyReader()
    for piece in pieces:
        reader.feed(piece)
    reader.give_up()
    assert reader.feed(b"\x1b[201~" if not reader.waits else b"")[-1:] in ([], [Pressed("")])
