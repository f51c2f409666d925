"""Values: frozen, slotted dataclasses whose constructor writes their slots directly.

The constructor that `dataclasses` makes for a frozen class goes through `object.__setattr__` and takes twice as long;
a round makes a dozen of these, and it would be the largest single cost of a round that is not trio's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """As `dataclass(frozen=True, slots=True)`, for classes that are made often. Defaults must be immutable values."""
    made: Any = dataclass(frozen=True, slots=True)(cls)
    made.__init__ = _constructor(made)
    with_slots: type[T] = made
    return with_slots


def _constructor(made: Any) -> Callable[..., None]:
    names = [field.name for field in fields(made)]
    defaults = tuple(field.default for field in fields(made) if field.default is not MISSING)
    setters = {f"set_{name}": made.__dict__[name].__set__ for name in names}
    lines = [f"set_{name}(self, {name})" for name in names]
    lines.append("self.__post_init__()" if hasattr(made, "__post_init__") else "pass")
    # The names are those of fields in our own source; nothing from outside is compiled.
    exec(f"def __init__(self, {', '.join(names)}):\n  " + "\n  ".join(lines), setters)
    constructor: Any = setters["__init__"]
    constructor.__defaults__ = defaults
    constructor.__annotations__ = {field.name: field.type for field in fields(made)}
    constructor.__qualname__ = f"{made.__qualname__}.__init__"
    constructor.__module__ = made.__module__
    typed: Callable[..., None] = constructor
    return typed
