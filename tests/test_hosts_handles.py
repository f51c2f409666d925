"""The handles of the hosts: what a conversation, a receipt and a queued round offer in trio, they offer elsewhere."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from callboard.runtime import hosts
from callboard.runtime.hosts import BlockingHost, TrioHost
from callboard.runtime.opening import open_conversation

from .make_handles import HANDLES, LEFT_OUT, targets

PAIRS = [(style, name) for style in ("Asyncio", "Blocking") for name in HANDLES]


def test_the_files_are_what_the_generator_writes() -> None:
    stale = [path.name for path, text in targets() if path.read_text(encoding="utf-8") != text]
    assert not stale, "run python -m tests.make_handles"


@pytest.mark.parametrize(("style", "name"), PAIRS)
def test_a_handle_has_every_verb_and_reading_under_the_same_name(style: str, name: str) -> None:
    original, handle = HANDLES[name], getattr(hosts, f"{style}{name}")
    assert public(handle) == public(original) - LEFT_OUT
    assert inspect.getdoc(handle) == inspect.getdoc(original)


@pytest.mark.parametrize(("style", "name"), PAIRS)
def test_a_verb_has_the_same_parameters_and_the_same_docstring(style: str, name: str) -> None:
    original, handle = HANDLES[name], getattr(hosts, f"{style}{name}")
    for verb in public(handle):
        ours, theirs = getattr(handle, verb), getattr(original, verb)
        assert inspect.getdoc(ours) == inspect.getdoc(theirs), verb
        if callable(theirs):
            assert taken(ours) == taken(theirs), verb


@pytest.mark.parametrize("host", [TrioHost, BlockingHost])
def test_a_host_opens_conversations_with_the_same_parameters(host: Any) -> None:
    assert taken(host.open_conversation)[1:] == taken(open_conversation)
    assert inspect.getdoc(host.open_conversation) == inspect.getdoc(open_conversation)


def test_what_waits_blocks_in_the_one_and_is_awaited_in_the_other() -> None:
    for name in HANDLES:
        for verb in public(HANDLES[name]) - LEFT_OUT:
            ours = getattr(getattr(hosts, f"Asyncio{name}"), verb)
            assert isinstance(ours, property) or inspect.iscoroutinefunction(ours) or verb in ("events", "replies")
            assert not inspect.iscoroutinefunction(getattr(getattr(hosts, f"Blocking{name}"), verb))


def public(cls: type) -> set[str]:
    """The names without an underscore."""
    return {name for name in dir(cls) if not name.startswith("_")}


def taken(function: Callable[..., object]) -> list[inspect.Parameter]:
    """The parameters of a function."""
    return list(inspect.signature(function).parameters.values())
