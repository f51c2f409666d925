"""Condition: what stands in an ``{{if …}}``, in a small grammar of its own that can call nothing.

    either      = both ("or" both)*
    both        = negated ("and" negated)*
    negated     = "not" negated | compared
    compared    = operand (("==" | "!=" | "<" | "<=" | ">" | ">=") operand)?
    operand     = name ("." key)* | "text" | 'text' | number | true | false | null | "(" either ")"

The rule to know: a key that a value does not have is null; a name that has no value is refused before anything is
written.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from callboard.runtime.json_value import JsonValue

Values: TypeAlias = Mapping[str, JsonValue]
_Term: TypeAlias = Callable[[Values], JsonValue]

MOST_TOKENS = 50
"""Of one condition: far beyond need, and far from the interpreter's own limit."""

RESERVED = frozenset({"if", "else", "endif", "include", "and", "or", "not"})
"""What cannot be the name of a slot."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<name>[A-Za-z_]\w*(?:\.\w+)*)|(?P<number>-?\d+(?:\.\d+)?)|(?P<text>"[^"]*"|'[^']*')"""
    r"""|(?P<sign>[=!<>]=|[<>()]))""",
    re.ASCII,
)
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*", re.ASCII)
_LITERALS: dict[str, JsonValue] = {"true": True, "false": False, "null": None}
_LITERALS |= {"True": True, "False": False, "None": None}
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Path:
    """The name of a slot, and the keys by which one goes into its value."""

    slot: str
    keys: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Path:
        """The path that ``slot.key.key`` names; raises ValueError for what is none."""
        slot, *keys = text.split(".")
        if not _PATH.fullmatch(text) or slot in RESERVED or slot in _LITERALS:
            raise ValueError(f"{text!r} is no name of a slot")
        return cls(slot, tuple(keys))

    def value(self, values: Values) -> JsonValue:
        """What stands there; null where a key is missing."""
        value = values[self.slot]
        for key in self.keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was read, and can be asked any number of times."""

    source: str
    slots: frozenset[str]
    _term: _Term

    @classmethod
    def parse(cls, source: str) -> Condition:
        """Reads it; raises ValueError, with what stands where it ought not to."""
        reader = _Reader(source)
        term = reader.either()
        reader.end()
        return cls(source, frozenset(reader.slots), term)

    def holds(self, values: Values) -> bool:
        """Whether it is true: false are false, null, 0, and what is empty.

        Raises ValueError if it asks for the order of what has none.
        """
        try:
            return bool(self._term(values))
        except TypeError as error:
            raise ValueError(f"the condition {self.source!r}: {error}") from None


class _Reader:
    """Reads the tokens from left to right; each method takes those of its line of the grammar."""

    def __init__(self, source: str) -> None:
        self.slots: set[str] = set()
        self._tokens: list[tuple[str, str]] = []
        position, source = 0, source.rstrip()
        while position < len(source):
            found = _TOKEN.match(source, position)
            if found is None:
                raise ValueError(f"a condition cannot have {source[position:].strip()[:20]!r}")
            self._tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
            position = found.end()
        if len(self._tokens) > MOST_TOKENS:
            raise ValueError(f"a condition has at most {MOST_TOKENS} words and signs")
        self._tokens.reverse()

    def either(self) -> _Term:
        """Terms joined by ``or``."""
        term = self._both()
        while self._take("or"):
            term = _either(term, self._both())
        return term

    def end(self) -> None:
        """Nothing may be left."""
        if self._tokens:
            raise ValueError(f"a condition cannot go on with {self._tokens[-1][1]!r}")

    def _both(self) -> _Term:
        term = self._negated()
        while self._take("and"):
            term = _both(term, self._negated())
        return term

    def _negated(self) -> _Term:
        if not self._take("not"):
            return self._compared()
        term = self._negated()
        return lambda values: not term(values)

    def _compared(self) -> _Term:
        left = self._operand()
        for sign in ("==", "!=", *_ORDERS):
            if self._take(sign):
                return _compared(left, sign, self._operand())
        return left

    def _operand(self) -> _Term:
        kind, token = self._tokens.pop() if self._tokens else ("", "")
        match kind, token:
            case "sign", "(":
                term = self.either()
                if not self._take(")"):
                    raise ValueError("a condition has a parenthesis that does not close")
                return term
            case "text", _:
                return _literal(token[1:-1])
            case "number", _:
                return _literal(float(token) if "." in token else int(token))
            case "name", _ if token in _LITERALS:
                return _literal(_LITERALS[token])
            case "name", _ if token not in RESERVED:
                path = Path.parse(token)
                self.slots.add(path.slot)
                return path.value
        raise ValueError(f"a condition needs a name or a value where {token!r} stands" if token else "half a condition")

    def _take(self, token: str) -> bool:
        if self._tokens and self._tokens[-1][1] == token and self._tokens[-1][0] in ("name", "sign"):
            self._tokens.pop()
            return True
        return False


def _literal(value: JsonValue) -> _Term:
    return lambda values: value


def _either(left: _Term, right: _Term) -> _Term:
    return lambda values: left(values) or right(values)


def _both(left: _Term, right: _Term) -> _Term:
    return lambda values: left(values) and right(values)


def _compared(left: _Term, sign: str, right: _Term) -> _Term:
    if sign == "==":
        return lambda values: _same(left(values), right(values))
    if sign == "!=":
        return lambda values: not _same(left(values), right(values))
    return lambda values: _ordered(left(values), sign, right(values))


def _same(left: JsonValue, right: JsonValue) -> bool:
    # For Python true is 1; in JSON they are two values.
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _ordered(left: JsonValue, sign: str, right: JsonValue) -> bool:
    match left, right:
        case (bool(), _) | (_, bool()):
            pass
        case (int() | float(), int() | float()) | (str(), str()):
            return _ORDERS[sign](left, right)
    raise TypeError(f"only two numbers or two texts have an order, not {left!r:.50} and {right!r:.50}")
