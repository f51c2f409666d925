"""The handles of the hosts: what a conversation, a receipt and a queued round offer in trio, they offer elsewhere."""

import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

import pytest

from callboard.runtime import hosts
from callboard.runtime.board import Board
from callboard.runtime.hosts import BlockingHost, TrioHost
from callboard.runtime.hosts.handle import Handle
from callboard.runtime.opening import open_conversation
from callboard.runtime.streaming import StreamedReply

from .make_handles import HANDLES, INSTEAD, LEFT_OUT, reworded, targets
from .test_hosts_asyncio import Clerk

PAIRS = [(style, name) for style in ("Asyncio", "Blocking") for name in HANDLES]
BLOCKS = {"stream": "Conversation", "open_conversation": "Board"}
PROTOCOLS = ["__len__", "__bool__", "__iter__", "__aiter__", "__await__", "__contains__", "__getitem__", "__call__"]


def test_the_files_are_what_the_generator_writes() -> None:
    stale = [path.name for path, text in targets() if path.read_text(encoding="utf-8") != text]
    assert not stale, "run python -m tests.make_handles"


@pytest.mark.parametrize(("style", "name"), PAIRS)
def test_a_handle_has_every_verb_and_reading_under_the_same_name(style: str, name: str) -> None:
    original, handle = HANDLES[name], getattr(hosts, f"{style}{name}")
    assert public(handle) == public(original) - LEFT_OUT.keys()
    assert [hasattr(handle, one) for one in PROTOCOLS] == [hasattr(original, one) for one in PROTOCOLS]
    assert inspect.getdoc(handle) == reworded(style, inspect.getdoc(original) or "")


def test_what_is_left_out_is_there_in_trio_and_has_a_reason() -> None:
    assert LEFT_OUT.keys() <= set().union(*map(public, HANDLES.values()))
    assert all(LEFT_OUT.values())


@pytest.mark.parametrize("style", ["Asyncio", "Blocking"])
def test_a_streamed_reply_has_all_but_what_its_conversation_calls(style: str) -> None:
    handle = getattr(hosts, f"{style}StreamedReply")
    assert public(handle) == public(StreamedReply) - {"follow", "leave", "see"}
    step, theirs = ("__anext__" if style == "Asyncio" else "__next__"), StreamedReply.__anext__
    assert inspect.getdoc(getattr(handle, step)) == inspect.getdoc(theirs)
    for name in public(handle):
        assert inspect.getdoc(getattr(handle, name)) == inspect.getdoc(getattr(StreamedReply, name))


@pytest.mark.parametrize(("style", "name"), PAIRS)
def test_a_verb_has_the_same_parameters_and_the_same_docstring(style: str, name: str) -> None:
    original, handle = HANDLES[name], getattr(hosts, f"{style}{name}")
    for verb in public(handle) - INSTEAD.keys():
        ours, theirs = getattr(handle, verb), getattr(original, verb)
        assert inspect.getdoc(ours) == inspect.getdoc(theirs), verb
        if callable(theirs):
            assert taken(ours) == taken(theirs), verb


@pytest.mark.parametrize("style", ["Asyncio", "Blocking"])
def test_a_board_is_drained_in_seconds_and_this_is_the_one_difference(style: str) -> None:
    ours, theirs = getattr(hosts, f"{style}Board").drain, Board.drain
    assert [one.replace(name="deadline") for one in taken(ours)[1:]] == taken(theirs)[1:]
    moment, seconds = "at `deadline`, a moment of trio's clock, what", "after so many `seconds` what"
    assert (inspect.getdoc(ours) or "").split() == (inspect.getdoc(theirs) or "").replace(moment, seconds).split()


@pytest.mark.parametrize("host", [TrioHost, BlockingHost])
def test_a_host_opens_conversations_and_boards_with_the_same_parameters(host: Any) -> None:
    assert taken(host.open_conversation)[1:] == taken(open_conversation)
    assert inspect.getdoc(host.open_conversation) == inspect.getdoc(open_conversation)
    assert taken(host.open_board)[1:] == taken(Board)
    said = reworded("Asyncio" if host is TrioHost else "Blocking", inspect.getdoc(Board) or "")
    assert (inspect.getdoc(host.open_board) or "").split() == said.split()


def test_what_waits_blocks_in_the_one_and_is_awaited_in_the_other() -> None:
    for name in HANDLES:
        for verb in public(HANDLES[name]) - LEFT_OUT.keys() - BLOCKS.keys():
            ours = getattr(getattr(hosts, f"Asyncio{name}"), verb)
            assert isinstance(ours, property) or inspect.iscoroutinefunction(ours) or verb in ("events", "replies")
            assert not inspect.iscoroutinefunction(getattr(getattr(hosts, f"Blocking{name}"), verb))


@pytest.mark.parametrize(("verb", "name"), BLOCKS.items())
def test_what_is_entered_is_entered_here_too(verb: str, name: str) -> None:
    for style, manager in (("Asyncio", AbstractAsyncContextManager), ("Blocking", AbstractContextManager)):
        handle = getattr(hosts, f"{style}{name}")
        assert isinstance(getattr(handle, verb)(handle(None, None), ""), manager)


def test_a_handle_says_of_itself_what_trio_says() -> None:
    with BlockingHost() as host, host.open_board(Clerk()) as board, board.open_conversation("a") as conversation:
        started = conversation.communicate("wait")
        later = conversation.enqueue("later")
        for handle in (board, conversation, started, later):
            said = repr(handle._handled)
            assert repr(handle) == said.replace("<", "<Blocking", 1), said
        assert repr(conversation) == "<BlockingConversation a running>"
        assert repr(started) == f"<BlockingReceipt {started.id}: started a round>"
        conversation.stop("enough")
        conversation.wait_idle()
        assert repr(conversation) == "<BlockingConversation a idle>"


def test_a_handle_that_is_read_while_trio_changes_it_reads_again() -> None:
    class Changing:
        def __init__(self, times: int) -> None:
            self.times = times

        def __repr__(self) -> str:
            self.times -= 1
            if self.times >= 0:
                raise RuntimeError("dictionary changed size during iteration")
            return "<Changing for good>"

    assert repr(Handle(Changing(3))) == "<Handle for good>"
    assert repr(Handle(Changing(1000))) == "<Handle>"


def public(cls: type) -> set[str]:
    """The names without an underscore."""
    return {name for name in dir(cls) if not name.startswith("_")}


def taken(function: Callable[..., object]) -> list[inspect.Parameter]:
    """The parameters of a function."""
    return list(inspect.signature(function).parameters.values())
