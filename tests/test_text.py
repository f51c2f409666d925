"""Texts: what `temporal`, `+` and `join` make of strings and spans, and which spans cannot be."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.runtime.text import NO_TEXT, Span, Text, check_spans, cut, temporal

from .test_transcript_properties import quick

BIG = temporal("big")


def test_temporal_text_is_one_span_over_the_whole() -> None:
    assert Text("big", (Span(0, 3, "round"),)) == BIG
    assert temporal("") == NO_TEXT


def test_what_is_temporal_in_temporal_text_is_part_of_the_one_span() -> None:
    assert temporal("a " + BIG + " b") == temporal("a big b")


@pytest.mark.parametrize(
    ("text", "string", "spans"),
    [
        ("a " + BIG, "a big", (Span(2, 5),)),
        (BIG + " b", "big b", (Span(0, 3),)),
        ("é" + BIG + "é" + BIG, "ébigébig", (Span(1, 4), Span(5, 8))),
        (BIG + BIG, "bigbig", (Span(0, 6),)),
        (BIG + "" + NO_TEXT + BIG, "bigbig", (Span(0, 6),)),
        (Text(", ").join(["a", BIG, "b"]), "a, big, b", (Span(3, 6),)),
        (temporal("-").join(["a", BIG, "b"]), "a-big-b", (Span(1, 6),)),
        (NO_TEXT.join([]), "", ()),
    ],
)
def test_adding_and_joining_keep_the_spans(text: Text, string: str, spans: tuple[Span, ...]) -> None:
    assert text == Text(string, spans)


def test_a_text_in_an_f_string_is_its_string_alone() -> None:
    assert (f"a {BIG}", len(BIG), bool(NO_TEXT)) == ("a big", 3, False)


@pytest.mark.parametrize("join", [lambda: BIG + 5, lambda: 5 + BIG, lambda: BIG.join([5])])  # type: ignore[operator, list-item]  # that it cannot be is the test
def test_only_texts_and_strings_are_joined(join: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        join()


@pytest.mark.parametrize("bounds", [(0, 0), (2, 1), (-1, 1), (0, 1, "day")])
def test_a_span_that_cannot_be_is_refused(bounds: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="span"):
        Span(*bounds)


@pytest.mark.parametrize("bounds", [(True, 2), (0, 1.0), ("0", 1)])
def test_the_bounds_of_a_span_are_whole_numbers(bounds: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="whole number"):
        Span(*bounds)


@pytest.mark.parametrize(
    ("spans", "reason"),
    [
        ((Span(0, 2), Span(1, 3)), "sorted and disjoint"),
        ((Span(2, 3), Span(0, 1)), "sorted and disjoint"),
        ((Span(0, 4),), "beyond the 3 characters"),
        ([Span(0, 1)], "tuple of Span"),
        ([], "tuple of Span"),
        (((0, 1),), "tuple of Span"),
    ],
)
def test_spans_that_do_not_lie_in_the_text_are_refused(spans: Any, reason: str) -> None:
    with pytest.raises((TypeError, ValueError), match=reason):
        Text("big", spans)


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="half a surrogate pair"):
        temporal("\ud800")


TEMPORAL = st.sampled_from(["a", "é", "abc"]).map(temporal)


@quick
@given(st.lists(TEMPORAL | st.sampled_from(["", "a", "é"]), max_size=5), TEMPORAL | st.just(Text(", ")))
def test_what_is_joined_and_cut_is_what_is_cut_and_joined(parts: list[str | Text], between: Text) -> None:
    joined = between.join(parts)
    assert joined.string == between.string.join(map(str, parts))
    assert lasting(joined) == lasting(between).join(map(lasting, parts))
    check_spans(joined.spans, joined.string, "spans")


def lasting(text: str | Text) -> str:
    """What is left of it after its round."""
    return cut(text.string, text.spans) if isinstance(text, Text) else text
