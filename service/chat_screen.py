"""Chat screen: finished lines above, and below them the drafts that grow and the line that is typed.

The rule to know: only the lowest rows are ever drawn again. They are erased, what is finished is written in their
place, and they are drawn below it, in one write; so nothing that comes scrambles the line that is typed.
"""

# A screen and a line editor of our own: readline cannot draw its line again while something else is written.
# prompt_toolkit can, but brings a loop of asyncio, so it would run in a thread that trio cannot cancel, and it prints
# whole lines only: no draft could grow above its prompt.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import terminal_size
from typing import Literal, Protocol

from .line_editor import LineEditor
from .plain_text import WIDTH, plain
from .text_width import end_within, width_of, wrap_line

Style = Literal["plain", "bold", "dim", "bad"]
_SIGNS = {"plain": "", "bold": "\x1b[1m", "dim": "\x1b[2m", "bad": "\x1b[31m"}
_OFF = "\x1b[0m"

MOST_DRAFT_ROWS = 8
"""How many rows all drafts together may take."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line to show, or several parted by newlines. Anything may stand in it: control characters are written out."""

    text: str
    style: Style = "plain"
    margin: str = ""
    """What stands before each row."""


class Screen(Protocol):
    """What a chat is shown on."""

    @property
    def width(self) -> int:
        """How many cells a row has."""

    def say(self, *lines: Line) -> None:
        """Shows lines that stay."""

    def draft(self, drafts: Iterable[Draft]) -> None:
        """Shows what is being written at this moment, in place of what was."""

    def ask(self, prompt: str) -> None:
        """Says before the line that is typed what typing does."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody has written up to now."""

    head: str
    text: str


class PlainScreen:
    """Lines as they are, for a program or a file to read; drafts are not shown."""

    width = WIDTH

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def say(self, *lines: Line) -> None:
        """Writes each row, however long."""
        for line in lines:
            for row in plain(line.text).split("\n"):
                self._write((line.margin + row).rstrip())

    def draft(self, drafts: Iterable[Draft]) -> None:
        """Nothing: what comes of them is said when it is recorded."""

    def ask(self, prompt: str) -> None:
        """Nothing."""


class TerminalScreen:
    """Rows that fit into a terminal whose size may change."""

    def __init__(self, write: Callable[[str], None], size: Callable[[], terminal_size]) -> None:
        self.editor = LineEditor()
        self._write = write
        self._size = size
        self._drafts: tuple[Draft, ...] = ()
        self._prompt = "> "
        self._below: list[int] = []
        """The widths of the rows that are drawn, from the first draft down to where the cursor stands."""

    @property
    def width(self) -> int:
        """One less than the terminal has: a row that is full to its end leaves the cursor where terminals disagree."""
        return max(2, self._size().columns - 1)

    def say(self, *lines: Line) -> None:
        """Writes the lines above the drafts."""
        width = self.width
        rows = (_styled(row, line.style) for line in lines for row in _rows(line, width))
        self._draw("".join(f"{row}\r\n" for row in rows))

    def draft(self, drafts: Iterable[Draft]) -> None:
        """Draws the ends of the drafts above the line that is typed."""
        self._drafts = tuple(drafts)
        self._draw()

    def ask(self, prompt: str) -> None:
        """Draws the prompt, if it is another."""
        if prompt != self._prompt:
            self._prompt = prompt
            self._draw()

    def redraw(self) -> None:
        """Draws the lowest rows again, as after a key or in a terminal of another size."""
        self._draw()

    def restore(self) -> None:
        """Draws them below whatever another program has written; nothing of it is erased."""
        self._below = []
        self._draw("\r\n")

    def clear(self) -> None:
        """Empties the terminal and draws them at its top."""
        self._below = []
        self._draw("\x1b[H\x1b[2J")

    def close(self) -> None:
        """Erases them; the cursor stands at the beginning of the row that comes next."""
        self._write(self._erased())
        self._below = []

    def _draw(self, finished: str = "") -> None:
        width, height = self.width, self._size().lines
        drafts = list(self._draft_rows(width, min(MOST_DRAFT_ROWS, height - 2)))
        prompt = self._prompt if width_of(self._prompt) < width // 2 else "> "
        room = max(1, width - width_of(prompt))
        typed, column = self.editor.view(room)
        column += width_of(prompt)
        parts = [self._erased(), finished]
        parts += (f"{_styled(row, 'dim')}\r\n" for row in drafts)
        parts += (_styled(prompt, "bold"), typed, "\r", f"\x1b[{column}C")
        self._write("\x1b[?25l" + "".join(parts) + "\x1b[?25h")
        self._below = [*map(width_of, drafts), column]

    def _erased(self) -> str:
        """Moves to the first of the rows that are drawn, and erases all from there.

        In a terminal that has become narrower each of them takes as many rows as it needs now.
        """
        if not self._below:
            return "\r\x1b[J"
        columns = self._size().columns
        *above, cursor = self._below
        up = sum(max(1, -(-width // columns)) for width in above) + cursor // columns
        return "\r" + (f"\x1b[{up}A" if up else "") + "\x1b[J"

    def _draft_rows(self, width: int, height: int) -> Iterator[str]:
        """The last rows of each draft; with several, all get the same number of rows."""
        if not self._drafts or height < 1:
            return
        each = max(1, height // len(self._drafts))
        for draft in self._drafts[: height // each]:
            head = plain(draft.head)
            yield head[: end_within(head, width)]
            yield from _last_rows(draft.text, width, each - 1)


def _last_rows(text: str, width: int, count: int) -> list[str]:
    """The last rows of a text of any length, at the cost of these alone."""
    if count < 1:
        return []
    # From a multiple of some step on, so that the rows do not shift with each character that comes.
    step = width * count
    start = max(0, (len(text) // step - 1) * step)
    return list(_rows(Line(text[start:].strip("\n"), margin="  "), width))[-count:]


def _rows(line: Line, width: int) -> Iterator[str]:
    room = max(2, width - width_of(line.margin))
    for row in plain(line.text).split("\n"):
        yield from ((line.margin + piece).rstrip() for piece in wrap_line(row.rstrip(), room))


def _styled(row: str, style: Style) -> str:
    return f"{_SIGNS[style]}{row}{_OFF}" if _SIGNS[style] and row else row
