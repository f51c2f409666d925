"""What a role shares with the others: an entry that memory keeps for a round or for the whole conversation.

The rule to know: an entry travels as the `extra` of an attachment of type ``shared_memory_entry``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from .ids import create_id
from .json_value import check_text

EntryType: TypeAlias = Literal["plan", "experience_sub_path", "example_sub_path"]
EntryScope: TypeAlias = Literal["round", "conversation"]

_TYPES: tuple[str, ...] = get_args(EntryType)
_SCOPES: tuple[str, ...] = get_args(EntryScope)


def check_type(type: str) -> None:
    """Nothing, if there is such a type of entry; raises ValueError otherwise."""
    if type not in _TYPES:
        raise ValueError(f"{type!r} is no type of shared memory entry; there are {', '.join(_TYPES)}")


@dataclass(frozen=True, slots=True)
class SharedMemoryEntry:
    """One shared entry; raises ValueError for a type or scope that does not exist, TypeError for what is no text."""

    type: EntryType
    """What it is about; memory answers by this."""
    content: str
    scope: EntryScope
    """How long it counts: while its round is the last one, or from then on."""
    id: str

    def __post_init__(self) -> None:
        check_type(self.type)
        if self.scope not in _SCOPES:
            raise ValueError(f"{self.scope!r} is no scope of shared memory entry; there are {', '.join(_SCOPES)}")
        check_text(self.content, "content")
        check_text(self.id, "id")

    @classmethod
    def create(cls, type: EntryType, content: str, scope: EntryScope, id: str | None = None) -> SharedMemoryEntry:
        """A new entry, with a new id if none is given."""
        return cls(type, content, scope, id or create_id("sme"))

    def to_dict(self) -> dict[str, str]:
        """The entry as a file holds it."""
        return {"type": self.type, "content": self.content, "scope": self.scope, "id": self.id}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> SharedMemoryEntry:
        """The entry that `to_dict` wrote, with a new id if it has none; raises KeyError for other keys."""
        return cls.create(entry["type"], entry["content"], entry["scope"], entry.get("id"))
