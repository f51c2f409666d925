"""Reply members: what a scanner tells of the object that may be the reply, as members that begin, grow and end.

The rule to know: the members are those of the object under ``response``; all others are named and passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from .json_text import JsonText

RESPONSE = "response"

_MEMBER = 2
"""How many objects are open where the members stand."""


class MemberListener(Protocol):
    """Whom a reader tells of the members of a reply, in the step in which they come."""

    def began(self, name: str) -> None:
        """A member's name has come."""

    def grew(self, name: str, text: str) -> None:
        """More of a member's text."""

    def ended(self, name: str, value: str) -> bool:
        """A member is whole; True: no more is wanted."""


class Unheard:
    """Listens to nothing, for who reads the values at the end."""

    def began(self, name: str) -> None:
        """A member's name has come."""

    def grew(self, name: str, text: str) -> None:
        """More of a member's text."""

    def ended(self, name: str, value: str) -> bool:
        """A member is whole."""
        return False


class Members:
    """Listens to the scanner of one object."""

    def __init__(self, known: Collection[str], listener: MemberListener) -> None:
        self.found = False
        """Whether this object is the reply."""
        self.values: dict[str, str] = {}
        """The members that are whole, in the order in which they came."""
        self.unknown: list[str] = []
        """The names of those that were passed over."""
        self.growing = False
        """Whether a string is under way that is a member's text."""
        self.refuse: Callable[[str], None] = _nobody
        """Tells the scanner that the value which begins is none for its place."""
        self.stop: Callable[[], None] = _nothing
        """Tells the scanner that no more is wanted."""
        self._known = known
        self._listener = listener
        self._depth = 0
        self._inside = False
        """Whether the value of `response` is under way."""
        self._name = ""
        """The member whose value comes; empty for one that is passed over."""
        self._nested: JsonText | None = None
        self._value: list[str] = []
        self._pieces: list[str] = []
        """What has grown, and nobody was told of yet."""

    def flush(self) -> None:
        """Tells what has grown since."""
        if self._pieces:
            text = "".join(self._pieces)
            self._pieces.clear()
            if text:
                self.grow(text)

    def grow(self, text: str) -> None:
        """More of the text that is under way."""
        self._value.append(text)
        self._listener.grew(self._name, text)

    def opened(self, bracket: str) -> None:
        """A list or an object begins."""
        if self._depth == 1 and self._inside and bracket != "{":
            self.refuse(f"{RESPONSE!r} must be an object, and is a list")
        if self._depth == _MEMBER and self._name:
            self._nested = JsonText()
        self._depth += 1
        if self._nested is not None:
            self._nested.opened(bracket)

    def closed(self, bracket: str) -> None:
        """It has ended."""
        self._depth -= 1
        if self._nested is not None:
            self._nested.closed(bracket)
            self._after_value()
        elif self._depth == 1:
            self._inside = False

    def key(self, name: str) -> None:
        """The value of that name comes next."""
        if self._nested is not None:
            self._nested.key(name)
        elif self._depth == 1:
            self._inside = name == RESPONSE
            self.found = self.found or self._inside
            if not self._inside:
                self.unknown.append(name)
        elif self._depth == _MEMBER and self._inside:
            self._name = name if name in self._known else ""
            if self._name:
                self._listener.began(name)
            else:
                self.unknown.append(name)

    def string_began(self) -> None:
        """A string that is a value begins."""
        if self._depth == 1 and self._inside:
            self.refuse(f"{RESPONSE!r} must be an object, and is a string")
        elif self._nested is not None:
            self._nested.string_began()
        else:
            self.growing = self._depth == _MEMBER and bool(self._name)

    def piece(self, text: str) -> None:
        """More of that string."""
        if self._nested is not None:
            self._nested.piece(text)
        elif self.growing:
            self._pieces.append(text)

    def string_ended(self) -> None:
        """It is whole."""
        if self._nested is not None:
            self._nested.string_ended()
        elif self.growing:
            self.growing = False
            self._end()

    def scalar(self, source: str) -> None:
        """A number, or a literal."""
        if self._depth == 1 and self._inside:
            self.refuse(f"{RESPONSE!r} must be an object, and is {source:.40}")
        elif self._nested is not None:
            self._nested.scalar(source)
        elif self._depth == _MEMBER and self._name:
            self._pieces.append("" if source == "null" else source)
            self._end()

    def _after_value(self) -> None:
        if self._depth == _MEMBER and self._nested is not None:
            self._pieces.append(self._nested.text)
            self._nested = None
            self._end()

    def _end(self) -> None:
        self.flush()
        self.values[self._name] = value = "".join(self._value)
        self._value.clear()
        name, self._name = self._name, ""
        if self._listener.ended(name, value):
            self.stop()


def _nothing() -> None:
    """Stands for a scanner until there is one."""


def _nobody(problem: str) -> None:
    """Stands for a scanner until there is one."""
