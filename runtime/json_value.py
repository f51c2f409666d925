"""Values as JSON knows them, frozen, so that they can be shared between actors and kept as they were.

The rule to know: `freeze` at the edge, once; what is frozen is passed on without copies, and `thaw` makes
plain dicts and lists of it for a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from reprlib import repr as short_repr
from typing import Any, TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"

MAX_DEPTH = 100
"""How deep values may be nested: far beyond need, and far from the interpreter's own limit."""


class FrozenMapping(Mapping[str, JsonValue]):
    """A mapping that cannot change, hashable, in the order it was given; raises what `freeze` raises."""

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[str, Any] | None = None, /) -> None:
        self._items: dict[str, JsonValue] = _freeze_items(items or {}, "value", 1)
        self._hash: int | None = None

    def __getitem__(self, key: str) -> JsonValue:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenMapping):
            return self._items == other._items
        if not isinstance(other, Mapping):
            return NotImplemented
        try:
            return self._items == _freeze_items(other, "value", 1)
        except ValueError:
            return False

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._items.items()))
        return self._hash

    def __copy__(self) -> FrozenMapping:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenMapping:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenMapping, (self._items,)

    def __repr__(self) -> str:
        return f"FrozenMapping({short_repr(self._items)})"


def frozen(mapping: Mapping[str, Any]) -> FrozenMapping:
    """The mapping itself if it is frozen already, else a frozen copy; raises what `freeze` raises."""
    return mapping if isinstance(mapping, FrozenMapping) else FrozenMapping(mapping)


def freeze(value: object, where: str = "value") -> JsonValue:
    """The value with dicts as `FrozenMapping` and lists as tuples; `where` names it in errors.

    Raises ValueError, with the place, for what JSON or UTF-8 cannot hold: other types, keys that are no
    strings, half a surrogate pair, nan, infinities; and for nesting beyond `MAX_DEPTH`.
    """
    return _freeze(value, where, 0)


def _freeze(value: object, where: str, depth: int) -> JsonValue:
    if depth > MAX_DEPTH:
        raise ValueError(f"{where:.60} is nested deeper than {MAX_DEPTH} levels")
    match value:
        case None | bool() | FrozenMapping():
            return value
        case str():
            check_text(value, where)
            return str.__str__(value)
        case int():
            return int(value)
        case float():
            return _finite(value, where)
        case Mapping():
            return _freeze_mapping(value, where, depth)
        case list() | tuple():
            return tuple(_freeze(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value))
    raise ValueError(f"{where} is of type {type(value).__name__}, which JSON does not know")


def _freeze_mapping(items: Mapping[Any, Any], where: str, depth: int) -> FrozenMapping:
    frozen = FrozenMapping()
    frozen._items = _freeze_items(items, where, depth + 1)
    return frozen


def _freeze_items(items: Mapping[Any, Any], where: str, depth: int) -> dict[str, JsonValue]:
    return {_key(key, where): _freeze(item, f"{where}.{key}", depth) for key, item in items.items()}


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise ValueError(f"{where} has the key {key!r}, which is no string")
    check_text(key, f"a key of {where}")
    return str.__str__(key)


def _finite(value: float, where: str) -> float:
    if not isfinite(value):
        raise ValueError(f"{where} is {value}, which JSON does not know")
    return float(value)


EMPTY = FrozenMapping()
"""The mapping of nothing, shared by all that have nothing to hold."""


def thaw(value: object) -> Any:
    """The value with plain dicts and lists in place of frozen ones, new ones each time."""
    match value:
        case Mapping():
            return {key: thaw(item) for key, item in value.items()}
        case tuple() | list():
            return [thaw(item) for item in value]
    return value


def check_text(text: object, where: str) -> None:
    """Nothing, if UTF-8 can hold the text.

    Raises ValueError for half a surrogate pair, TypeError for what is no string.
    """
    if not isinstance(text, str):
        raise TypeError(f"{where} is of type {type(text).__name__}, not str")
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{where} has half a surrogate pair at character {error.start}") from None
