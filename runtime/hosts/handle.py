"""Handle: what a host holds of an object that lives in trio's thread."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar


class Identified(Protocol):
    """What has an id that never changes."""

    @property
    def id(self) -> str:
        """The id."""
        ...


T = TypeVar("T", bound=Identified)


class Handle(Generic[T]):
    """Two handles of one object are equal."""

    def __init__(self, handled: T) -> None:
        self._handled = handled

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other._handled is self._handled

    def __hash__(self) -> int:
        return hash(id(self._handled))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._handled.id}>"
