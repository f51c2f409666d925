"""Directories: which names there may be, who is under whom, and when a name is free again."""

from typing import Any

import pytest

from callboard.runtime.directory import Directory, Entry
from callboard.runtime.errors import DuplicateName, UnknownRole
from callboard.runtime.mailbox import Mailbox


def entry(name: str, superior: str | None = None) -> Entry:
    return Entry(name, superior, Mailbox())


def directory(*entries: Entry) -> Directory:
    made = Directory()
    for one in entries:
        made.add(one)
    return made


@pytest.mark.parametrize("name", ["A", "Planner", "code-interpreter_2", "user", "Memory"])
def test_a_name_is_a_letter_then_letters_digits_underscores_and_dashes(name: str) -> None:
    one = entry(name)
    assert directory(one).find(name) is one


@pytest.mark.parametrize("name", ["", "1st", "_x", "two words", "ümlaut", "a.b", "a\n", None, 3])
def test_what_is_no_name_is_refused(name: Any) -> None:
    made = Directory()
    with pytest.raises(ValueError, match=r"a role's name is a letter, then letters, digits, _ and -, not "):
        made.add(entry(name))
    assert list(made) == []


@pytest.mark.parametrize("name", ["User", "memory", "supervisor"])
@pytest.mark.parametrize("superior, second", [(None, "the conversation's own list"), ("Boss", "a subordinate of Boss")])
def test_a_reserved_name_is_refused_with_both_origins(name: str, superior: str | None, second: str) -> None:
    with pytest.raises(DuplicateName) as caught:
        directory(entry("Boss")).add(entry(name, superior))
    assert (caught.value.name, caught.value.first, caught.value.second) == (name, "the runtime itself", second)


def test_a_name_that_is_taken_is_refused_with_both_origins() -> None:
    made = directory(entry("Boss"), entry("Worker", "Boss"))
    with pytest.raises(DuplicateName) as caught:
        made.add(entry("Worker"))
    assert caught.value.first == "a subordinate of Boss"
    assert caught.value.second == "the conversation's own list"


def test_a_superior_knows_its_subordinates_in_the_order_of_their_start() -> None:
    boss = entry("Boss")
    made = directory(boss, entry("Second", "Boss"), entry("First", "Boss"), entry("Other"))
    assert list(boss.subordinates) == ["Second", "First"]
    made.remove(made.find("Second"))
    assert list(boss.subordinates) == ["First"]


def test_a_name_is_free_again_once_it_is_forgotten() -> None:
    old, new = entry("Worker"), entry("Worker")
    made = directory(old)
    made.remove(old)
    with pytest.raises(DuplicateName):
        made.add(new)
    made.forget(old)
    made.add(new)
    assert made.find("Worker") is new


def test_a_removed_role_is_not_asked_but_still_found_by_who_knows_it() -> None:
    old = entry("Worker")
    made = directory(old)
    assert made.ending("Worker") is None
    made.remove(old)
    assert "Worker" not in made
    with pytest.raises(UnknownRole):
        made.find("Worker")
    assert made.entry_of("Worker") is made.ending("Worker") is old


def test_a_role_outlives_its_superior_in_the_directory() -> None:
    boss, worker = entry("Boss"), entry("Worker", "Boss")
    made = directory(boss, worker)
    made.remove(boss)
    made.remove(worker)
    assert list(made) == []


@pytest.mark.parametrize("known, there_are", [((), "none"), (("Boss", "Clerk"), "Boss, Clerk")])
def test_an_unknown_name_is_refused_with_those_there_are(known: tuple[str, ...], there_are: str) -> None:
    made = directory(*map(entry, known))
    with pytest.raises(UnknownRole, match=f"no role 'Bos' in this conversation; there are {there_are}$") as caught:
        made.find("Bos")
    assert caught.value.name == "Bos"


def test_it_is_iterated_in_the_order_of_adding() -> None:
    made = directory(entry("B"), entry("A"))
    assert [one.name for one in made] == ["B", "A"]
    assert "A" in made
