"""Line editor: the line that a person is typing, where the cursor stands, and the lines before it.

The rule to know: it is pure. It draws nothing; `view` says what a screen of some width shows of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .plain_text import plain
from .terminal_keys import Key, Pressed, Typed
from .text_width import cells, end_within, width_of

_WORD_END = re.compile(r"\W*\w+|\W+")


class LineEditor:
    """One line; newlines that were pasted stand in it as characters."""

    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        """Before which character it stands."""
        self._before: list[str] = []
        """The lines that were taken, oldest first."""
        self._place = 0
        """Which of them is shown; their number for the line that is new."""
        self._new = ""
        """The new line, while another is shown."""
        self._first = 0
        """The first character that is in view."""
        self._keys: dict[str, Callable[[], None]] = {
            "left": lambda: self._move(self._left()),
            "right": lambda: self._move(self._right()),
            "home": lambda: self._move(0),
            "end": lambda: self._move(len(self.text)),
            "word left": lambda: self._move(self._word_left()),
            "word right": lambda: self._move(self._word_right()),
            "backspace": lambda: self._delete(self._left(), self.cursor),
            "delete": lambda: self._delete(self.cursor, self._right()),
            "delete word": lambda: self._delete(self._word_left(), self.cursor),
            "delete to start": lambda: self._delete(0, self.cursor),
            "delete to end": lambda: self._delete(self.cursor, len(self.text)),
            "up": lambda: self._show(self._place - 1),
            "down": lambda: self._show(self._place + 1),
        }

    def press(self, key: Key) -> None:
        """Changes the line as the key says; a key that edits nothing changes nothing."""
        match key:
            case Typed(text):
                self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
                self.cursor += len(text)
            case Pressed(name) if name in self._keys:
                self._keys[name]()

    def take(self) -> str:
        """The line, which is empty again; what it held can be found with the key up."""
        taken = self.text
        if taken.strip() and taken not in self._before[-1:]:
            self._before.append(taken)
        self._set("")
        self._place, self._new = len(self._before), ""
        return taken

    def view(self, width: int) -> tuple[str, int]:
        """What is seen of it in so many cells, and in which of them the cursor stands."""
        # No more than can be in view: a whole page that was pasted is measured with each piece of a draft.
        low = max(0, self.cursor - 2 * width)
        shown = [_shown(character) for character in self.text[low : self.cursor + 2 * width]]
        widths = [width_of(piece) for piece in shown]
        first, cursor = max(0, min(self._first, self.cursor) - low), self.cursor - low
        column = sum(widths[first:cursor])
        while column > max(0, width - 1):
            column -= widths[first]
            first += 1
        left = width - 1 - sum(widths[first:])
        while first and widths[first - 1] <= left:  # the screen has become wider, or the line shorter
            first -= 1
            column += widths[first]
            left -= widths[first]
        self._first = low + first
        seen = "".join(shown[first:])
        return seen[: end_within(seen, width)], column

    def _set(self, text: str) -> None:
        self.text, self.cursor, self._first = text, len(text), 0

    def _move(self, cursor: int) -> None:
        self.cursor = cursor

    def _delete(self, start: int, end: int) -> None:
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start

    def _left(self) -> int:
        """Before the character on the left, with all that is set over it."""
        at = max(0, self.cursor - 1)
        while at and not cells(self.text[at]):
            at -= 1
        return at

    def _right(self) -> int:
        at = min(len(self.text), self.cursor + 1)
        while at < len(self.text) and not cells(self.text[at]):
            at += 1
        return at

    def _word_left(self) -> int:
        before = self.text[: self.cursor].rstrip()
        return max(before.rfind(" "), before.rfind("\n")) + 1

    def _word_right(self) -> int:
        word = _WORD_END.match(self.text, self.cursor)
        return word.end() if word else len(self.text)

    def _show(self, place: int) -> None:
        """Another line; what was changed in an old one is forgotten when it is left."""
        if not 0 <= place <= len(self._before):
            return
        if self._place == len(self._before):
            self._new = self.text
        self._place = place
        self._set(self._new if place == len(self._before) else self._before[place])


def _shown(character: str) -> str:
    return "↵" if character == "\n" else plain(character)
