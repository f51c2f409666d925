"""Terminal keys: what a person has pressed, out of the bytes that a terminal sends.

The rule to know: bytes come in any pieces. A character or an escape sequence that is not whole waits for its rest.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

PASTE_ON, PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
"""Have a terminal mark what is pasted, and not."""

_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_TEXT = re.compile(r"[^\x00-\x1f\x7f]+")
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|O[ -~]|[^\[O\x1b])", re.DOTALL)
_BEGUN = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}|O)?")

_NAMES = {
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x01": "home",
    "\x02": "left",
    "\x03": "interrupt",
    "\x04": "end of input",
    "\x05": "end",
    "\x06": "right",
    "\x0b": "delete to end",
    "\x0c": "redraw",
    "\x0e": "down",
    "\x10": "up",
    "\x15": "delete to start",
    "\x17": "delete word",
    "\x1a": "suspend",
    **{f"\x1b{lead}A": "up" for lead in "[O"},
    **{f"\x1b{lead}B": "down" for lead in "[O"},
    **{f"\x1b{lead}C": "right" for lead in "[O"},
    **{f"\x1b{lead}D": "left" for lead in "[O"},
    **{f"\x1b{lead}H": "home" for lead in "[O"},
    **{f"\x1b{lead}F": "end" for lead in "[O"},
    **{f"\x1b[{number}~": "home" for number in (1, 7)},
    **{f"\x1b[{number}~": "end" for number in (4, 8)},
    "\x1b[3~": "delete",
    **{f"\x1b[1;{held}C": "word right" for held in (3, 5)},
    **{f"\x1b[1;{held}D": "word left" for held in (3, 5)},
    "\x1bf": "word right",
    "\x1bb": "word left",
    "\x1b\x7f": "delete word",
    "\x1b\x08": "delete word",
}


@dataclass(frozen=True, slots=True)
class Typed:
    """Text that was typed or pasted; pasted lines are parted by newlines."""

    text: str


@dataclass(frozen=True, slots=True)
class Pressed:
    """A key that is no text, by its name; empty for one that means nothing here."""

    name: str


Key = Typed | Pressed


class KeyReader:
    """Turns bytes into keys, as they come."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        """What has come and is no whole key."""
        self._pasting = False

    @property
    def waits(self) -> bool:
        """Whether a sequence has begun that may as well be the key Escape alone; then `give_up` after a moment."""
        return bool(self._rest) and not self._pasting

    def feed(self, data: bytes) -> list[Key]:
        """The keys that are whole now."""
        self._rest += self._decoder.decode(data)
        return list(self._keys())

    def give_up(self) -> None:
        """Forgets a sequence whose rest has not come: it is the key Escape, which means nothing here."""
        self._rest = ""

    def _keys(self) -> Iterator[Key]:
        while self._rest:
            if self._pasting:
                pasted = self._pasted()
                if not pasted and self._pasting:
                    return
                if pasted:
                    yield Typed(pasted)
            elif _BEGUN.fullmatch(self._rest):
                return
            else:
                yield from self._key()

    def _key(self) -> Iterator[Key]:
        if text := _TEXT.match(self._rest):
            yield Typed(self._take(text.end()))
            return
        sequence = _SEQUENCE.match(self._rest)
        pressed = self._take(sequence.end() if sequence else 1)
        if pressed == _PASTE_BEGINS:
            self._pasting = True
        else:
            yield Pressed(_NAMES.get(pressed, ""))

    def _pasted(self) -> str:
        """The next piece of what is pasted; empty if it has to wait for more."""
        end = self._rest.find(_PASTE_ENDS)
        # Ctrl-C in the middle is no text either: without it a lost end mark would leave no way to stop anything.
        stop = self._rest.find("\x03")
        if stop >= 0 and (end < 0 or stop < end):
            self._pasting = False
            return _pasted_text(self._take(stop))
        if end >= 0:
            self._pasting = False
            text = self._take(end)
            self._take(len(_PASTE_ENDS))
            return _pasted_text(text)
        return _pasted_text(self._take(len(self._rest) - self._held_back()))

    def _held_back(self) -> int:
        """How much of the end may be the beginning of the end mark, or of a line's end."""
        if self._rest.endswith("\r"):
            return 1
        sizes = range(len(_PASTE_ENDS) - 1, 0, -1)
        return next((size for size in sizes if self._rest.endswith(_PASTE_ENDS[:size])), 0)

    def _take(self, length: int) -> str:
        taken, self._rest = self._rest[:length], self._rest[length:]
        return taken


def _pasted_text(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return "".join(character for character in text if character == "\n" or _TEXT.match(character))
