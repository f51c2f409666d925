"""Drafts: what grows, is taken, or is left when its attempt ends."""

from collections.abc import Callable

import pytest

from callboard.runtime.draft import Draft, Unfinished
from callboard.runtime.errors import AttemptEnded
from callboard.runtime.text import NO_TEXT, Span, temporal

Grown = list[tuple[str, str]]


def drafted(*pieces: str) -> tuple[Draft, Grown]:
    """A draft of those pieces, and what it told of its growth."""
    grown: Grown = []
    draft = Draft("Worker", 2, lambda text, type: grown.append((text, type)))
    for piece in pieces:
        draft.write(piece)
    return draft, grown


def test_a_draft_is_all_its_pieces_in_order() -> None:
    draft, grown = drafted("one ", "two")
    assert (draft.text, grown) == ("one two", [("one ", "message"), ("two", "message")])


def test_an_empty_piece_is_no_growth() -> None:
    draft, grown = drafted("", "one", "")
    draft.attach("plan", "")
    draft.progress("search", "")
    assert (draft.text, draft.attachments, grown) == ("one", (), [("one", "message")])


def test_what_is_taken_is_no_longer_in_the_draft() -> None:
    draft, _ = drafted("one", "two")
    assert draft.take() == "onetwo"
    draft.write("three")
    assert (draft.text, draft.take(), draft.take()) == ("three", "three", "")


def test_attachments_grow_by_type_in_the_order_of_their_beginning() -> None:
    draft, grown = drafted()
    for type, text in (("plan", "1."), ("execution_result", "out"), ("plan", " 2.")):
        draft.attach(type, text)
    assert [(one.type.value, one.content) for one in draft.attachments] == [
        ("plan", "1. 2."),
        ("execution_result", "out"),
    ]
    assert grown == [("1.", "plan"), ("out", "execution_result"), (" 2.", "plan")]


def test_attachments_are_taken_apart_from_the_text() -> None:
    draft, _ = drafted("one")
    draft.attach("plan", "1.")
    assert [one.content for one in draft.take_attachments()] == ["1."]
    assert (draft.text, draft.attachments) == ("one", ())


@pytest.mark.parametrize("type", ["no such type", "text"])
def test_a_type_that_cannot_be_saved_is_refused_at_once(type: str) -> None:
    draft, _ = drafted()
    with pytest.raises(ValueError, match=type):
        draft.attach(type, "x")
    assert not draft.seal()


@pytest.mark.parametrize("grow", ["write", "attach", "progress"])
def test_what_could_not_be_recorded_is_refused_at_once(grow: str) -> None:
    draft, _ = drafted()
    arguments = {"write": (), "attach": ("plan",), "progress": ("search",)}[grow]
    with pytest.raises(ValueError, match="half a surrogate pair"):
        getattr(draft, grow)(*arguments, "\ud800")
    with pytest.raises(ValueError, match=r"context\.share"):
        draft.attach("shared_memory_entry", "x")
    assert not draft.seal()


def test_progress_is_kept_for_each_call_of_a_tool() -> None:
    draft, grown = drafted()
    draft.progress("search", "a", "call-1")
    draft.progress("search", "b", "call-2")
    draft.progress("search", "c", "call-1")
    assert (draft.take_progress("search", "call-1"), draft.take_progress("search", "call-1")) == ("ac", "")
    assert (draft.take_progress("search", "call-2"), grown[0]) == ("b", ("a", "search"))


def test_sealing_gives_what_was_left() -> None:
    draft, _ = drafted("one", "two")
    draft.attach("plan", "1.")
    left = draft.seal()
    assert (str(left.text), [one.content for one in left.attachments], draft.text) == ("onetwo", ["1."], "")
    assert draft.seal() == Unfinished()


@pytest.mark.parametrize(
    "late",
    [
        lambda draft: draft.write("late"),
        lambda draft: draft.write(""),
        lambda draft: draft.attach("plan", "late"),
        lambda draft: draft.progress("search", "late"),
        Draft.take,
        Draft.take_attachments,
    ],
)
def test_a_sealed_draft_takes_nothing_more(late: Callable[[Draft], object]) -> None:
    draft, grown = drafted("one")
    draft.seal()
    with pytest.raises(AttemptEnded, match="attempt 2 of Worker has ended"):
        late(draft)
    assert grown == [("one", "message")]


def test_temporal_pieces_are_kept_as_such() -> None:
    draft, grown = drafted("keep ")
    draft.write(temporal("big"))
    draft.attach("plan", temporal("1.") + " 2.")
    draft.attach("plan", temporal(" 3.") + temporal(" 4."))
    assert (draft.text, grown[1]) == ("keep big", ("big", "message"))
    (plan,) = draft.attachments
    assert (plan.content, plan.temporal) == ("1. 2. 3. 4.", (Span(0, 2), Span(5, 11)))
    assert draft.take_text() == "keep " + temporal("big")
    draft.write(temporal("more"))
    assert draft.seal().text == temporal("more")


def test_what_is_taken_as_a_string_is_its_string_alone() -> None:
    draft, _ = drafted()
    draft.write(temporal("big"))
    assert (draft.take(), draft.take_text()) == ("big", NO_TEXT)
