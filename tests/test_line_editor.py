"""The line that is typed: what keys do to it, and what a narrow screen shows of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.service.line_editor import LineEditor
from callboard.service.terminal_keys import Pressed, Typed
from callboard.service.text_width import width_of

EDITED = [
    (["left", "left"], "one two", 5),
    (["home", "right"], "one two", 1),
    (["home", "left", "end", "right"], "one two", 7),
    (["backspace"], "one tw", 6),
    (["home", "delete"], "ne two", 0),
    (["home", "backspace"], "one two", 0),
    (["delete"], "one two", 7),
    (["delete word"], "one ", 4),
    (["delete word", "delete word"], "", 0),
    (["word left"], "one two", 4),
    (["word left", "word left", "word right"], "one two", 3),
    (["word left", "delete to start"], "two", 0),
    (["word left", "delete to end"], "one ", 4),
    (["tab", ""], "one two", 7),
]


def edited(text: str, *names: str) -> LineEditor:
    """An editor in which a text was typed and then keys were pressed."""
    editor = LineEditor()
    editor.press(Typed(text))
    for name in names:
        editor.press(Pressed(name))
    return editor


@pytest.mark.parametrize(("names", "text", "cursor"), EDITED)
def test_keys_edit_the_line(names: list[str], text: str, cursor: int) -> None:
    editor = edited("one two", *names)
    assert (editor.text, editor.cursor) == (text, cursor)


def test_text_is_put_where_the_cursor_stands() -> None:
    editor = edited("日語", "left")
    editor.press(Typed("本"))
    assert (editor.text, editor.cursor) == ("日本語", 2)


def test_what_is_set_over_a_character_goes_with_it() -> None:
    assert edited("ae\u0301", "backspace").text == "a"
    assert edited("ae\u0301", "home", "right", "delete").text == "a"


def test_lines_that_were_taken_are_found_again_and_the_new_one_too() -> None:
    editor = edited("one")
    for text in ("two", "two", "new"):
        editor.take()
        editor.press(Typed(text))
    shown = []
    for name in ("up", "up", "up", "down", "down", "down"):
        editor.press(Pressed(name))
        shown.append(editor.text)
    assert shown == ["two", "one", "one", "two", "new", "new"]


def test_a_long_line_moves_under_the_cursor() -> None:
    editor = edited("abcdefghij")
    assert editor.view(5) == ("ghij", 4)
    editor.press(Pressed("home"))
    assert editor.view(5) == ("abcde", 0)


def test_a_wider_screen_shows_the_beginning_again() -> None:
    editor = edited("abcdefghij")
    editor.view(5)
    assert editor.view(20) == ("abcdefghij", 10)


def test_a_page_that_was_pasted_costs_what_is_in_view() -> None:
    editor = edited("x" * 1_000_000)
    measured = editor.view(20), editor.view(10)
    assert measured == (("x" * 19, 19), ("x" * 9, 9))


def test_a_newline_is_seen_and_a_control_character_is_written_out() -> None:
    assert edited("a\nb\u202e").view(20) == ("a↵b\\u202e", 9)


@given(st.text(st.sampled_from("a日 e\u0301\n🙂")), st.lists(st.sampled_from(["left", "home", "end", "backspace"])))
def test_the_cursor_is_always_in_view(text: str, names: list[str]) -> None:
    editor = edited(text, *names)
    for width in (9, 4, 20):
        seen, column = editor.view(width)
        assert width_of(seen) <= width and 0 <= column < width
