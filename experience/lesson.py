"""Lesson: what an earlier conversation has taught, the id that it is known by, and the names of its files.

    raw_exp_{id}.yaml           a conversation that was saved, not yet summarised
    handcrafted_exp_{id}.yaml   a lesson that a person wrote
    exp_{id}.yaml               the lesson with its vector, made of one of these, or alone

The rule to know: an id is text of one grammar, and the name of the file decides what it is.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, cast

from callboard.runtime.value import value

Kind: TypeAlias = Literal["raw_exp", "handcrafted_exp", "exp"]
"""How the name of a file begins."""

KINDS: tuple[Kind, ...] = ("handcrafted_exp", "raw_exp", "exp")
"""Those that a lesson is made of first, the one that a person wrote before the one that a model has to read."""

_ID = r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}"
_ID_PATTERN = re.compile(_ID)
_NAME_PATTERN = re.compile(rf"(raw_exp|handcrafted_exp|exp)_({_ID})\.yaml")
_MEANT_PATTERN = re.compile(r"(raw_exp|handcrafted_exp|exp)(_.*)?\.(yaml|yml)", re.IGNORECASE | re.DOTALL)


@value
class Lesson:
    """One lesson."""

    id: str
    text: str
    raw_path: str | None = None
    """Where the conversation lay that it was made of, as its file says; None for one that a person wrote."""


@value
class Found:
    """A lesson that a query has found."""

    lesson: Lesson
    score: float
    """How alike it is to the query, from -1 to 1."""


def check_id(id: str) -> str:
    """The id. Raises ValueError if it is none: 1 to 100 letters, digits, `_` and `-` of ASCII, no sign first."""
    if not _ID_PATTERN.fullmatch(id):
        raise ValueError(f"{id!r} is no id of a lesson; write up to 100 letters, digits, - and _, no sign first")
    return id


def file_name(kind: Kind, id: str) -> str:
    """The name of a file; raises ValueError for what is no id."""
    return f"{kind}_{check_id(id)}.yaml"


def read_name(name: str) -> tuple[Kind, str] | None:
    """The kind and the id that the name of a file says; None for that of any other file."""
    found = _NAME_PATTERN.fullmatch(name)
    return None if found is None else (cast(Kind, found[1]), found[2])


def is_misnamed(name: str) -> bool:
    """Whether the name is none of a lesson's and looks as if it was meant to be one."""
    return bool(_MEANT_PATTERN.fullmatch(name)) and not _NAME_PATTERN.fullmatch(name)
