"""The JSON of a transcript: plain data to bytes and back, and the line of a place in it.

The rule to know: it says no more and no less than the YAML of the same transcript, and is refused in the same words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from .errors import InvalidFile

Place: TypeAlias = tuple[str | int, ...]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],]|[^\s{}\[\],:"]+', re.DOTALL)


class _StandsTwice(Exception):
    """A mapping has a key more than once."""


def dump_json(data: object) -> bytes:
    """The JSON of plain data, keys in their order; raises TypeError and ValueError for what is not plain."""
    return (json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def parse_json(text: str) -> Any:
    """The plain data of a JSON text; raises InvalidFile, with the line, for what is no JSON."""
    try:
        return json.loads(text, object_pairs_hook=_distinct)
    except json.JSONDecodeError as error:
        raise InvalidFile(error.msg, line=error.lineno, remedy="correct the JSON") from error
    except _StandsTwice as error:
        place, position = _first_repeated(text)
        message = f"the key {place[-1]!r} stands twice"
        raise InvalidFile(message, line=_line(text, position), remedy="correct the JSON") from error
    except ValueError as error:
        raise InvalidFile(f"a value cannot be read: {error}", remedy="put it in quotes") from error
    except RecursionError as error:
        raise InvalidFile("the data is nested too deep", remedy="flatten it") from error


def json_line_of(text: str, place: Place) -> int | None:
    """The line, from 1, on which the value at that place begins, or the nearest around it that is there."""
    found: int | None = None
    for there, position in _places(text):
        if place[: len(there)] == there:
            found = position
    return None if found is None else _line(text, found)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise _StandsTwice
    return mapping


def _first_repeated(text: str) -> tuple[Place, int]:
    seen: set[Place] = set()
    for place, position in _places(text):
        if place in seen:
            return place, position
        seen.add(place)
    raise AssertionError("no key stands twice")


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _places(text: str) -> Iterator[tuple[Place, int]]:
    """Where each value of a sound JSON text begins, that of a key's value where the key does; outer ones first."""
    place: list[str | int] = []
    begins = True
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in "]}":
            place.pop()
            begins = False
        elif sign == ",":
            place[-1] = place[-1] + 1 if isinstance(place[-1], int) else ""
            begins = True
        elif begins and place and isinstance(place[-1], str):
            place[-1] = json.loads(sign)
            yield tuple(place), token.start()
            begins = False
        else:
            if begins:
                yield tuple(place), token.start()
            begins = sign in "[{"
            if begins:
                place.append(0 if sign == "[" else "")
