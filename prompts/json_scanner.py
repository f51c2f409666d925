"""JSON scanner: one JSON value that comes in pieces, told as it comes.

The rule to know: what it tells, and where it stops, does not depend on how the text was cut; and it looks at each
character once, so a piece costs the same at the end of a long text as at its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from callboard.runtime.json_value import MAX_DEPTH

from .json_string import IN_STRING, end_of, sign_of, unescaped

TRAILING_COMMA, RAW_CONTROL, LEADING_ZERO = "a comma before }", "a control character in a string", "a leading zero"

_OTHER = re.compile(r"[\x00-\x1f]+|[\ud800-\udfff]+")
_SPACE = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(r"[-+.\w]*", re.ASCII)
_NUMBER = re.compile(r"(-?)0*(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)", re.ASCII)


class Listener(Protocol):
    """Whom a scanner tells what it finds, in the step in which it finds it."""

    def opened(self, bracket: str) -> None:
        """A list or an object begins."""

    def closed(self, bracket: str) -> None:
        """It has ended."""

    def key(self, name: str) -> None:
        """The value of that name comes next."""

    def string_began(self) -> None:
        """A string that is a value begins."""

    def piece(self, text: str) -> None:
        """More of that string, unescaped."""

    def string_ended(self) -> None:
        """It is whole."""

    def scalar(self, source: str) -> None:
        """A number as it was written, or true, false or null."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a text is no JSON, and where, in characters."""

    at: int
    problem: str


class JsonScanner:
    """Reads one value. Accepted, and noted in `lenient`: a comma before }, raw control characters, leading zeros."""

    def __init__(self, listener: Listener, position: int = 0) -> None:
        self.position = position
        self.done = False
        self.fault: Fault | None = None
        self.lenient: dict[str, None] = {}
        """What was accepted that JSON does not allow."""
        self._listener = listener
        self._base = position
        self._open: list[set[str] | None] = []
        """The keys of each object that is open; None for a list."""
        self._state: Callable[[str, int], int] = self._value
        self._token: list[str] = []
        """What has come of a key or a scalar."""
        self._began = position
        self.escape = ""
        """What has come of one that is not whole."""
        self._escape_at = position
        self._is_key = False
        self._comma = False

    def feed(self, text: str, at: int = 0) -> int:
        """Reads on from `at`; gives where it stopped: behind the text, behind the value, or where it met a fault."""
        self._base = self.position - at
        while at < len(text) and not self.done and self.fault is None:
            at = self._state(text, at)
        self.position = self._base + at
        return at

    def stop(self) -> None:
        """The listener wants no more, though the value is not whole."""
        self.done = True

    def refuse(self, problem: str) -> None:
        """The listener wants no such value, where one begins."""
        self.fault = Fault(self._began, problem)

    def _fail(self, at: int, problem: str) -> int:
        self.fault = Fault(self._base + at, problem)
        return at

    def _value(self, text: str, at: int) -> int:
        at = end_of(_SPACE, text, at)
        if at == len(text):
            return at
        sign, self._began = text[at], self._base + at
        if sign in "{[":
            return self._opened(sign, at)
        if sign == '"':
            self._is_key, self._state = False, self._string
            self._listener.string_began()
            return at + 1
        if sign == "]" and self._open and self._open[-1] is None and not self._comma:
            return self._closed(sign, at)
        if end_of(_SCALAR, text, at) == at:
            return self._fail(at, "a value is missing")
        self._token, self._state = [], self._scalar
        return at

    def _opened(self, bracket: str, at: int) -> int:
        if len(self._open) >= MAX_DEPTH:
            return self._fail(at, "it is nested too deeply")
        self._open.append(set() if bracket == "{" else None)
        self._comma = False
        self._state = self._key if bracket == "{" else self._value
        self._listener.opened(bracket)
        return at + 1

    def _closed(self, bracket: str, at: int) -> int:
        if self._comma:
            self.lenient[TRAILING_COMMA] = None
        self._open.pop()
        self._value_ended()
        self._listener.closed(bracket)
        return at + 1

    def _value_ended(self) -> None:
        self._comma = False
        self.done = not self._open
        self._state = self._separator

    def _separator(self, text: str, at: int) -> int:
        at = end_of(_SPACE, text, at)
        if at == len(text):
            return at
        sign, bracket = text[at], "]" if self._open[-1] is None else "}"
        if sign == bracket:
            return self._closed(sign, at)
        if sign != ",":
            return self._fail(at, f"a comma or {bracket} is missing")
        self._comma, self._state = True, self._value if bracket == "]" else self._key
        return at + 1

    def _key(self, text: str, at: int) -> int:
        at = end_of(_SPACE, text, at)
        if at == len(text):
            return at
        if text[at] == "}":
            return self._closed("}", at)
        if text[at] != '"':
            return self._fail(at, "a key in double quotes is missing")
        self._began, self._token = self._base + at, []
        self._is_key, self._state = True, self._string
        return at + 1

    def _colon(self, text: str, at: int) -> int:
        at = end_of(_SPACE, text, at)
        if at == len(text):
            return at
        if text[at] != ":":
            return self._fail(at, "a colon is missing")
        self._comma, self._state = False, self._value
        return at + 1

    def _string(self, text: str, at: int) -> int:
        stop = end_of(IN_STRING, text, at)
        if stop > at:
            self._say(unescaped(text[at:stop]))
            if stop == len(text):
                return stop
        match text[stop]:
            case '"':
                return self._string_end(stop + 1)
            case "\\":
                self.escape, self._state, self._escape_at = "\\", self._in_escape, self._base + stop
                return stop + 1
        if text[stop] < " ":
            self.lenient[RAW_CONTROL] = None
        end = end_of(_OTHER, text, stop)
        self._say(text[stop:end])
        return end

    def _say(self, text: str) -> None:
        if self._is_key:
            self._token.append(text)
        else:
            self._listener.piece(text)

    def _string_end(self, at: int) -> int:
        if not self._is_key:
            self._value_ended()
            self._listener.string_ended()
            return at
        name, keys = "".join(self._token), self._open[-1]
        assert keys is not None, "a list has no keys"
        if name in keys:
            self.refuse(f"the key {name!r} stands twice")
            return at
        keys.add(name)
        self._state = self._colon
        self._listener.key(name)
        return at

    def _in_escape(self, text: str, at: int) -> int:
        # The four digits at once, all else sign by sign: what is no escape is met at the same place in any pieces.
        begun = len(self.escape)
        wanted = 6 if 1 < begun < 6 else begun + 1
        self.escape = escape = self.escape + text[at : at + wanted - begun]
        try:
            sign = sign_of(escape)
        except ValueError as error:
            self.fault = Fault(self._escape_at, str(error))
            return at + 1
        if sign is not None:
            self.escape, self._state = "", self._string
            self._say(sign)
        return at + len(escape) - begun

    def _scalar(self, text: str, at: int) -> int:
        stop = end_of(_SCALAR, text, at)
        self._token.append(text[at:stop])
        if stop == len(text):
            return stop
        source = "".join(self._token)
        if source not in ("true", "false", "null"):
            number = _NUMBER.fullmatch(source)
            if number is None:
                self.refuse(f"{source[:40]} is no JSON")
                return stop
            if number[1] + number[2] != source:
                self.lenient[LEADING_ZERO] = None
                source = number[1] + number[2]
        self._value_ended()
        self._listener.scalar(source)
        return stop
