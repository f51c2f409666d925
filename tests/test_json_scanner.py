"""The scanner: one JSON value that is told as it comes, and written again."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.prompts.json_scanner import JsonScanner
from callboard.prompts.json_string import sign_of
from callboard.prompts.json_text import JsonText

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=40)
@given(st.lists(VALUES) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), VALUES), st.integers(1, 9))
def test_what_it_tells_written_again_is_what_json_writes(value: object, size: int) -> None:
    try:
        expected = json.dumps(value, ensure_ascii=False)
        expected.encode()
    except UnicodeEncodeError:
        return
    for text in (json.dumps(value, indent=1), json.dumps(value, separators=(",", ":"))):
        written = JsonText()
        scanner = JsonScanner(written)
        for at in range(0, len(text), size):
            scanner.feed(text[at : at + size])
        assert (scanner.done, scanner.fault, scanner.position, written.text) == (True, None, len(text), expected)


def test_it_stops_behind_the_value() -> None:
    scanner = JsonScanner(JsonText(), position=100)
    assert scanner.feed("x[1] rest", 1) == 4
    assert (scanner.done, scanner.position) == (True, 103)


def test_the_place_of_a_fault_counts_from_where_it_began() -> None:
    scanner = JsonScanner(JsonText(), position=100)
    scanner.feed('{"a": ')
    scanner.feed("nul}")
    assert scanner.fault is not None
    assert (scanner.fault.at, scanner.fault.problem, scanner.done) == (106, "nul is no JSON", False)


@pytest.mark.parametrize("code", [0x0, 0x41, 0xE9, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF])
def test_every_escape_stands_for_its_sign(code: int) -> None:
    escape = "".join(f"\\u{unit:04X}" for unit in units(chr(code)))
    assert sign_of(escape) == chr(code)
    assert all(sign_of(escape[:size]) is None for size in (2, *range(6, len(escape))))


def units(sign: str) -> list[int]:
    """The sign in UTF-16."""
    data = sign.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]
