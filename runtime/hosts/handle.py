"""Handle: what a host holds of an object that lives in trio's thread."""

from __future__ import annotations

from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")
TRIES = 10
"""Readings of an object that changes meanwhile; the next one begins within microseconds."""


class Handle(Generic[T]):
    """Two handles of one object are equal. It says of itself what that object says."""

    def __init__(self, handled: T) -> None:
        self._handled = handled

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other._handled is self._handled

    def __hash__(self) -> int:
        return hash(id(self._handled))

    def __repr__(self) -> str:
        said = ""
        for _ in range(TRIES):
            # Trio's thread may change a collection while it is read here: that is what these errors say.
            with suppress(RuntimeError, ValueError):
                said = repr(self._handled).removeprefix(f"<{type(self._handled).__name__}")
                break
        return f"<{type(self).__name__}{said or '>'}"
