"""How many cells a text takes, and texts wrapped to so many."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.service.text_width import end_within, width_of, wrap_line


@pytest.mark.parametrize(("text", "width"), [("", 0), ("abc", 3), ("日本", 4), ("e\u0301", 1), ("🙂", 2), ("ü", 1)])
def test_a_text_has_a_width(text: str, width: int) -> None:
    assert width_of(text) == width


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        ("", [""]),
        ("one two three", ["one two", "three"]),
        ("onetwothreefour", ["onetwoth", "reefour"]),
        ("    four", ["    four"]),
        ("    indented", ["    inde", "nted"]),
        ("日本語日本語", ["日本語日", "本語"]),
        ("eight888 next", ["eight888", "next"]),
    ],
)
def test_a_line_is_parted_at_spaces(line: str, rows: list[str]) -> None:
    assert list(wrap_line(line, 8)) == rows


@given(st.text(st.sampled_from("ab  日e\u0301🙂")), st.integers(2, 9))
def test_no_row_is_too_wide_and_no_character_but_a_space_is_lost(line: str, width: int) -> None:
    rows = list(wrap_line(line, width))
    assert all(width_of(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == line.replace(" ", "")


def test_a_character_that_is_too_wide_for_any_row_gets_one_all_the_same() -> None:
    assert list(wrap_line("日本", 1)) == ["日", "本"]


def test_a_wide_character_is_not_halved() -> None:
    assert end_within("a日", 2) == 1
