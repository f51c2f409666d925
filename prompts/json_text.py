"""JSON text: a value that a scanner tells, written again in one way, whatever spaces and commas it came with."""

from __future__ import annotations

import json


class JsonText:
    """Takes what a scanner tells of one value."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._string: list[str] = []
        self._first = True

    @property
    def text(self) -> str:
        """What has come of it."""
        return "".join(self._parts)

    def opened(self, bracket: str) -> None:
        """A list or an object begins."""
        self._separate(bracket)
        self._first = True

    def closed(self, bracket: str) -> None:
        """It has ended."""
        self._parts.append(bracket)
        self._first = False

    def key(self, name: str) -> None:
        """The value of that name comes next."""
        self._separate(f"{json.dumps(name, ensure_ascii=False)}: ")
        self._first = True

    def string_began(self) -> None:
        """A string that is a value begins."""
        self._string = []

    def piece(self, text: str) -> None:
        """More of that string."""
        self._string.append(text)

    def string_ended(self) -> None:
        """It is whole."""
        self.scalar(json.dumps("".join(self._string), ensure_ascii=False))

    def scalar(self, source: str) -> None:
        """A number, or a literal."""
        self._separate(source)
        self._first = False

    def _separate(self, text: str) -> None:
        self._parts.append(text if self._first else f", {text}")
