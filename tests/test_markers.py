"""Markers: what a file holds for temporal text, and that nothing becomes temporal by being written there."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.runtime.markers import END, START, first_misplaced, marked, unmarked
from callboard.runtime.text import Span, Text, cut, temporal

from .test_transcript_properties import quick, spanned

BIG = f"{START}big{END}"


def read(written: str, entry: dict[str, Any] | None = None) -> Text:
    """What a file says, as a Text."""
    text = unmarked(written, entry or {})
    return text if isinstance(text, Text) else Text(text)


def test_markers_stand_round_a_span_and_its_place_beside() -> None:
    text = "a " + temporal("big") + " b"
    written, beside = marked(text.string, text.spans)
    assert written == f"a {BIG} b"
    assert beside == {"temporal": [{"start": 2, "end": 2 + len(BIG), "lifetime": "round"}]}
    assert written[2 : 2 + len(BIG)] == BIG


def test_plain_text_is_written_as_it_is_with_nothing_beside() -> None:
    assert marked("a {{b}}", ()) == ("a {{b}}", {})


@pytest.mark.parametrize("text", [BIG, START, f"a{END}"])
def test_text_that_looks_like_a_marker_is_written_with_the_key_that_says_it_is_none(text: str) -> None:
    assert marked(text, ()) == (text, {"temporal": []})
    assert read(*marked(text, ())) == Text(text)


# As TaskWeaver's own files have it: < and > stand for the markers, [ and ] for the bounds of the spans read.
BALANCED = {
    "x<a>y": "x[a]y",
    "x<a>y<b>z": "x[a]y[b]z",
    "adjacent: <a><b>": "adjacent: [a][b]",
    "nested: <a<b>c>d": "nested: [abc]d",
    "nested side by side: <<a><b>>": "nested side by side: [ab]",
    "unclosed: x<a": "unclosed: x<a",
    "not opened: x>a": "not opened: x>a",
    "the wrong way round: ><": "the wrong way round: ><",
    "unclosed before one that is closed: <a<b>y": "unclosed before one that is closed: <a[b]y",
    "closed twice: <a>y>": "closed twice: [a]y>",
    "empty: x<>y": "empty: xy",
    "nothing but empty ones: <<>>": "nothing but empty ones: ",
    "": "",
}


@pytest.mark.parametrize("case", BALANCED)
def test_without_the_key_the_markers_that_balance_mean_something(case: str) -> None:
    text = read(case.replace("<", START).replace(">", END))
    shown = text.string
    for span in reversed(text.spans):
        shown = f"{shown[: span.start]}[{shown[span.start : span.end]}]{shown[span.end :]}"
    assert shown.replace(START, "<").replace(END, ">") == BALANCED[case]


def test_a_marker_that_only_comes_about_when_others_go_is_text() -> None:
    half = len(START) // 2
    written = f"{START[:half]}{START}x{END}{START[half:]}y{END}"
    assert read(written) == Text(f"{START[:half]}x{START[half:]}y{END}", (Span(half, half + 1),))


@pytest.mark.parametrize(
    "places",
    [
        [(1, len(BIG))],
        [(0, len(BIG) - 1)],
        [(0, len(BIG) + 1)],
        [(-len(BIG), len(BIG))],
        [(0, len(BIG)), (0, len(BIG))],
        [(len(BIG), len(BIG) + len(START + END))],
        [(0, 10**9)],
    ],
)
def test_a_place_without_markers_is_refused(places: list[tuple[int, int]]) -> None:
    entry = {"temporal": [{"start": start, "end": end} for start, end in places]}
    written = BIG + START + END
    assert first_misplaced(written, entry["temporal"]) == len(places) - 1
    with pytest.raises(ValueError, match="is no place of a part between markers"):
        unmarked(written, entry)


def test_a_place_needs_no_lifetime() -> None:
    assert read(BIG, {"temporal": [{"start": 0, "end": len(BIG)}]}) == temporal("big")


@quick
@given(spanned)
def test_what_is_written_is_read_as_it_was_and_what_others_cut_is_what_is_temporal(text: Text) -> None:
    written, beside = marked(text.string, text.spans)
    assert read(written, beside) == text
    if not beside.get("temporal"):
        assert written == text.string
    if not (START in text.string or END in text.string):
        assert read(written) == text
        assert _as_others_cut(written) == cut(text.string, text.spans)


def _as_others_cut(written: str) -> str:
    """TaskWeaver's own way: from the first marker to the next that ends, again and again."""
    while (start := written.find(START)) >= 0 and (end := written.find(END, start)) >= 0:
        written = written[:start] + written[end + len(END) :]
    return written


@quick
@given(st.lists(st.sampled_from([START, END, START[:9], START[9:], END[3:], "a", ""]), max_size=9).map("".join))
def test_whatever_a_file_of_others_holds_is_saved_and_read_as_it_was_first_read(written: str) -> None:
    text = read(written)
    again, beside = marked(text.string, text.spans)
    assert read(again, beside) == text
    assert marked(*_parts(read(again, beside))) == (again, beside)


def _parts(text: Text) -> tuple[str, tuple[Span, ...]]:
    return text.string, text.spans
