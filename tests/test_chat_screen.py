"""What a terminal shows of a chat: finished lines above, drafts and the line that is typed below, never mixed up."""

import re
from os import terminal_size

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.service.chat_screen import MOST_DRAFT_ROWS, Draft, Line, PlainScreen, TerminalScreen
from callboard.service.terminal_keys import Typed
from callboard.service.text_width import cells

SIGN = re.compile(r"\x1b\[(\??)(\d*)([A-Za-z])|([^\x1b])", re.DOTALL)


class Grid:
    """As much of a terminal as the chat uses; anything else it is sent is an error."""

    def __init__(self, columns: int = 40, lines: int = 12) -> None:
        self.size = terminal_size((columns, lines))
        self.rows: list[list[str]] = [[]]
        """All rows from the first on; those above the screen's height have been scrolled away."""
        self.row = self.column = 0
        self.lowest = 0

    def write(self, data: str) -> None:
        place = 0
        while place < len(data):
            sign = SIGN.match(data, place)
            assert sign is not None, f"no terminal is asked for {data[place : place + 9]!r}"
            place = sign.end()
            if sign[4]:
                self._put(sign[4])
            else:
                self._move(int(sign[2] or 1), sign[1] + sign[3])

    def shown(self) -> list[str]:
        return ["".join(row).rstrip() for row in self.rows]

    def _move(self, count: int, command: str) -> None:
        match command:
            case "A":
                assert self.row - count >= max(0, len(self.rows) - self.size.lines), "above the screen"
                self.row -= count
            case "C":
                self.column = min(self.size.columns - 1, self.column + count)
            case "J":
                del self.rows[self.row + 1 :]
                del self.rows[self.row][self.column :]
            case "m" | "?h" | "?l":
                pass
            case _:
                raise AssertionError(f"no terminal is asked for {command!r}")

    def _put(self, character: str) -> None:
        match character:
            case "\r":
                self.column = 0
            case "\n":
                self.row += 1
                self.rows += [[]] * (self.row == len(self.rows))
            case _:
                self._print(character)

    def _print(self, character: str) -> None:
        assert character.isprintable()
        row, width = self.rows[self.row], cells(character)
        assert self.column + width < self.size.columns, "a row is full"
        row += [" "] * (self.column - len(row))
        row[self.column : self.column + max(width, 1)] = [character, *[""] * (width - 1)]
        self.column += width


def screen_on(grid: Grid) -> TerminalScreen:
    screen = TerminalScreen(grid.write, lambda: grid.size)
    screen.redraw()
    return screen


def test_what_is_said_stands_above_the_line_that_is_typed() -> None:
    screen = screen_on(grid := Grid())
    screen.editor.press(Typed("half a li"))
    screen.say(Line("one"), Line("two", "bold", "  "))
    assert grid.shown() == ["one", "  two", "> half a li"]
    assert grid.column == len("> half a li")


def test_a_draft_grows_in_place_and_goes() -> None:
    screen = screen_on(grid := Grid())
    for text in ("Once", "Once upon\na ti"):
        screen.draft([Draft("Planner …", text)])
    assert grid.shown() == ["Planner …", "  Once upon", "  a ti", "> "[:1]]
    screen.draft(())
    assert grid.shown() == [">"]


def test_of_a_long_draft_the_end_is_seen() -> None:
    screen = screen_on(grid := Grid())
    screen.draft([Draft("Planner …", "\n".join(map(str, range(100))))])
    assert grid.shown()[1:-1] == [f"  {number}" for number in range(93, 100)]


def test_many_drafts_leave_room_on_a_low_screen() -> None:
    screen = screen_on(grid := Grid(lines=4))
    screen.draft(Draft(f"W{number}", "x\ny") for number in range(20))
    assert len(grid.shown()) <= 4 and grid.shown()[-1] == ">"


def test_a_draft_of_one_endless_line_costs_what_its_end_costs() -> None:
    screen = screen_on(grid := Grid())
    screen.draft([Draft("Planner …", "x" * 1_000_000)])
    assert len(grid.shown()) == MOST_DRAFT_ROWS + 1


def test_the_prompt_says_what_typing_does() -> None:
    screen = screen_on(grid := Grid())
    screen.ask("interrupt> ")
    assert grid.shown() == ["interrupt>"]


def test_what_was_drawn_wider_is_erased_on_a_narrower_screen() -> None:
    screen = screen_on(grid := Grid(40))
    screen.say(Line("first"))
    screen.draft([Draft("Planner …", "x" * 30)])
    # The terminal itself has wrapped the row of 32 cells into two of 20.
    grid.size = terminal_size((20, 12))
    grid.rows[2:3] = [grid.rows[2][:20], grid.rows[2][20:]]
    grid.row += 1
    screen.redraw()
    assert grid.shown() == ["first", "Planner …", "  " + "x" * 17, "  " + "x" * 13, ">"]


def test_a_typed_line_that_wraps_on_a_narrower_screen_is_erased_whole() -> None:
    screen = screen_on(grid := Grid(40))
    screen.say(Line("first"))
    screen.editor.press(Typed("x" * 30))
    screen.redraw()
    grid.size = terminal_size((20, 12))
    grid.rows[1:] = [grid.rows[1][:20], grid.rows[1][20:]]
    grid.row, grid.column = 2, 12
    screen.redraw()
    assert grid.shown() == ["first", "> " + "x" * 16]


def test_nothing_of_it_stays_when_it_is_closed() -> None:
    screen = screen_on(grid := Grid())
    screen.draft([Draft("Planner …", "x")])
    screen.close()
    assert (grid.shown(), grid.column) == ([""], 0)


def test_control_characters_of_a_model_are_written_out() -> None:
    screen = screen_on(grid := Grid())
    screen.say(Line("a\x1b[2Jb\rc"))
    screen.draft([Draft("Pla\x07nner", "\x9b31m")])
    assert grid.shown()[:3] == ["a\\x1b[2Jb\\rc", "Pla\\x07nner", "  \\x9b31m"]


@given(
    st.lists(st.tuples(st.sampled_from(["say", "draft", "type"]), st.text(st.sampled_from("ab \n日\x1b"), max_size=60)))
)
def test_whatever_comes_the_line_that_is_typed_is_whole_and_lowest(steps: list[tuple[str, str]]) -> None:
    screen = screen_on(grid := Grid(30, 6))
    for what, text in steps:
        match what:
            case "say":
                screen.say(Line(text))
            case "draft":
                screen.draft([Draft("W", text), Draft("V", text)])
            case _:
                screen.editor.press(Typed(text.replace("\x1b", "")))
                screen.redraw()
    seen, column = screen.editor.view(27)
    assert grid.shown()[-1] == f"> {seen}".rstrip()
    assert grid.column == column + 2


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_a_terminal_of_no_width_is_no_error(columns: int) -> None:
    written: list[str] = []
    screen = TerminalScreen(written.append, lambda: terminal_size((columns, 1)))
    screen.draft([Draft("Planner", "日本語")])
    screen.say(Line("日本語"))
    assert written


def test_a_pipe_gets_whole_lines_without_signs_or_drafts() -> None:
    written: list[str] = []
    screen = PlainScreen(written.append)
    screen.ask("interrupt> ")
    screen.draft([Draft("Planner", "x")])
    screen.say(Line("a\x1b\nb" * 2, "bad", "  "))
    assert written == ["  a\\x1b", "  ba\\x1b", "  b"]
