"""Drafts: text that grows, is taken, or is left when its attempt ends."""

from collections.abc import Callable

import pytest

from callboard.runtime.draft import Draft
from callboard.runtime.errors import AttemptEnded


def drafted(*pieces: str) -> tuple[Draft, list[str]]:
    """A draft of those pieces, and what it told of its growth."""
    grown: list[str] = []
    draft = Draft("Worker", 2, grown.append)
    for piece in pieces:
        draft.write(piece)
    return draft, grown


def test_a_draft_is_all_its_pieces_in_order() -> None:
    draft, grown = drafted("one ", "two")
    assert (draft.text, grown) == ("one two", ["one ", "two"])


def test_an_empty_piece_is_no_growth() -> None:
    draft, grown = drafted("", "one", "")
    assert (draft.text, grown) == ("one", ["one"])


def test_what_is_taken_is_no_longer_in_the_draft() -> None:
    draft, _ = drafted("one", "two")
    assert draft.take() == "onetwo"
    draft.write("three")
    assert (draft.text, draft.take(), draft.take()) == ("three", "three", "")


def test_sealing_gives_what_was_left() -> None:
    draft, _ = drafted("one", "two")
    assert (draft.seal(), draft.text, draft.seal()) == ("onetwo", "", "")


@pytest.mark.parametrize("late", [lambda draft: draft.write("late"), lambda draft: draft.write(""), Draft.take])
def test_a_sealed_draft_takes_nothing_more(late: Callable[[Draft], object]) -> None:
    draft, grown = drafted("one")
    draft.seal()
    with pytest.raises(AttemptEnded, match="attempt 2 of Worker has ended"):
        late(draft)
    assert grown == ["one"]
