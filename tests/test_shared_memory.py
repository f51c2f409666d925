"""Shared entries are checked when they are made."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from callboard.runtime.shared_memory import SharedMemoryEntry


def test_an_entry_gets_an_id_of_its_own_unless_one_is_given() -> None:
    assert SharedMemoryEntry.create("plan", "1. think", "round").id.startswith("sme-")
    assert SharedMemoryEntry.create("plan", "1. think", "round", "mine").id == "mine"


def test_a_file_holds_an_entry_under_four_keys() -> None:
    entry = SharedMemoryEntry.create("plan", "1. think", "round", "sme-1")
    assert list(entry.to_dict().items()) == [
        ("type", "plan"),
        ("content", "1. think"),
        ("scope", "round"),
        ("id", "sme-1"),
    ]


def test_an_entry_comes_back_from_its_dict() -> None:
    entry = SharedMemoryEntry.create("experience_sub_path", "sales", "conversation")
    assert SharedMemoryEntry.from_dict(entry.to_dict()) == entry


def test_an_entry_without_an_id_gets_a_new_one() -> None:
    entry = SharedMemoryEntry.from_dict({"type": "plan", "content": "", "scope": "round"})
    assert entry.id.startswith("sme-")


@pytest.mark.parametrize("key", ["type", "content", "scope"])
def test_an_entry_without_one_of_the_other_keys_is_refused(key: str) -> None:
    entry = SharedMemoryEntry.create("plan", "", "round").to_dict()
    del entry[key]
    with pytest.raises(KeyError, match=key):
        SharedMemoryEntry.from_dict(entry)


@pytest.mark.parametrize("changed", [{"type": "plans"}, {"scope": "session"}, {"content": "\ud800"}])
def test_what_cannot_be_is_refused(changed: dict[str, Any]) -> None:
    entry = {"type": "plan", "content": "", "scope": "round", **changed}
    with pytest.raises(ValueError, match=next(iter(changed))):
        SharedMemoryEntry.from_dict(entry)


@pytest.mark.parametrize("type_", ["plan", "experience_sub_path", "example_sub_path"])
@pytest.mark.parametrize("scope", ["round", "conversation"])
def test_every_type_goes_with_every_scope(type_: Any, scope: Any) -> None:
    entry = SharedMemoryEntry.create(type_, "x", scope)
    assert (entry.type, entry.scope) == (type_, scope)


def test_an_entry_cannot_be_changed() -> None:
    entry: Any = SharedMemoryEntry.create("plan", "", "round")
    with pytest.raises(FrozenInstanceError):
        entry.content = "other"
