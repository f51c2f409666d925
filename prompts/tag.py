"""Tag: what stands between double braces in a template.

    {{name}}              a slot; {{name.key}} goes into a mapping
    {{if …}} … {{endif}}  text that stands there only if the condition holds
    {{include "name"}}    another template
    {{include original}}  the template of the same name in the next lower folder
    {{"text"}}            the text itself; {{"{{"}} is how double braces are written

The rule to know: double braces always open a tag, and a tag ends on its line. What is none is an error, not text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from .condition import Condition, Path

_OPENING = "{{"
_TAG = re.compile(r"""\{\{((?:[^"'{}\n]|"[^"\n]*"|'[^'\n]*')*+)\}\}""")
_QUOTED = re.compile(r""""[^"]*"|'[^']*'""")
_ESCAPE = """write {{"{{"}} for the braces themselves"""


class TemplateFault(ValueError):
    """What is wrong in the text of a template, where in it, and what to do."""

    def __init__(self, message: str, position: int, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class If:
    """The beginning of a block."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class EndIf:
    """The end of a block."""


@dataclass(frozen=True, slots=True)
class Include:
    """Another template."""

    name: str | None
    """None: the original, of the same name."""


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that is no part of the template's grammar."""

    text: str


Meaning: TypeAlias = Path | If | EndIf | Include | Literal


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag, and where it stands in its text."""

    meaning: Meaning
    start: int
    end: int


def read_tags(text: str) -> Iterator[Tag]:
    """The tags of a text, in order; raises TemplateFault."""
    position = 0
    for found in _TAG.finditer(text):
        _refuse_braces(text, position, found.start())
        yield Tag(_meaning(found[1].strip(), found.start()), found.start(), found.end())
        position = found.end()
    _refuse_braces(text, position, len(text))


def _refuse_braces(text: str, start: int, end: int) -> None:
    if (position := text.find(_OPENING, start, end)) >= 0:
        line = text[position : position + 30].partition("\n")[0]
        raise TemplateFault(f"{line!r} is no tag that ends on its line", position, _ESCAPE)


def _meaning(inside: str, position: int) -> Meaning:
    word, rest = [*inside.split(None, 1), "", ""][:2]
    match word:
        case "endif" if not rest:
            return EndIf()
        case "include":
            return _include(rest, position)
        case "else":
            raise TemplateFault("there is no else", position, "write a block of its own, {{if not …}}")
    try:
        if word == "if":
            return If(Condition.parse(rest))
        return Literal(inside[1:-1]) if _QUOTED.fullmatch(inside) else Path.parse(inside)
    except ValueError as error:
        raise TemplateFault(str(error), position, None if word == "if" else _ESCAPE) from None


def _include(what: str, position: int) -> Include:
    if what == "original":
        return Include(None)
    name = what[1:-1].removesuffix(".md") if _QUOTED.fullmatch(what) else ""
    if not name:
        remedy = 'write {{include "name"}} or {{include original}}'
        raise TemplateFault(f"{what!r} cannot be included", position, remedy)
    if is_path(name):
        raise TemplateFault(f"{name!r} is a path", position, "include a template by its name alone")
    return Include(name)


def is_path(name: str) -> bool:
    """Whether a name could lead out of the folders of a library."""
    return ".." in name or "/" in name or "\\" in name or "\0" in name
