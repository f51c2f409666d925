"""What a line asks for: words, a command, or nothing there is."""

from typing import get_args

import pytest

from callboard.service.chat_commands import (
    HELP,
    Blank,
    Command,
    Enqueue,
    Line,
    Say,
    ShowQueue,
    Verb,
    Wrong,
    read_line,
)

READ: list[tuple[str, Line]] = [
    ("Only 2025.", Say("Only 2025.")),
    ("  Only\n2025. ", Say("Only\n2025.")),
    ("//etc is a folder", Say("/etc is a folder")),
    ("//", Say("/")),
    ("", Blank()),
    (" \t", Blank()),
    ("/level 2 Only 2025.", Say("Only 2025.", 2)),
    ("/level -1\ttop\nof all", Say("top\nof all", -1)),
    ("/queue And then?", Enqueue("And then?")),
    ("/queue", ShowQueue()),
    ("/stop", Command("stop")),
    (" /exit ", Command("exit")),
]


@pytest.mark.parametrize(("typed", "line"), READ)
def test_a_line_is_read(typed: str, line: Line) -> None:
    assert read_line(typed) == line


@pytest.mark.parametrize(
    "typed", ["/level", "/level 2", "/level two x", "/level 0 x", "/level 1.5 x", "/level " + "9" * 9999]
)
def test_a_level_is_a_whole_number_with_words_behind_it(typed: str) -> None:
    line = read_line(typed)
    assert isinstance(line, Wrong) and "/level 2 Count" in line.why


@pytest.mark.parametrize(("typed", "near"), [("/stpo", "/stop"), ("/Resume x", "/resume"), ("/lvl 2 x", "/level")])
def test_an_unknown_command_is_told_with_the_nearest(typed: str, near: str) -> None:
    line = read_line(typed)
    assert isinstance(line, Wrong) and f"the nearest is {near}," in line.why and "\n" not in line.why


@pytest.mark.parametrize("typed", ["/", "/xyzzy", "/ stop"])
def test_what_has_no_near_command_leads_to_the_help(typed: str) -> None:
    line = read_line(typed)
    assert isinstance(line, Wrong) and "/help" in line.why


def test_words_behind_a_command_that_takes_none_are_not_lost_silently() -> None:
    assert isinstance(read_line("/stop it now"), Wrong)


@pytest.mark.parametrize("name", ["level", "queue", *get_args(Verb)])
def test_the_help_names_every_command(name: str) -> None:
    assert f"/{name} " in HELP
