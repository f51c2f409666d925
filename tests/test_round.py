"""Rounds: made, written down and read again."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from callboard.runtime.post import Post
from callboard.runtime.round import Round
from callboard.runtime.text import temporal

POST = Post("post-1", "User", "Planner", "hello")
ROUND = Round("round-1", "hello", "finished", (POST,))


def test_a_new_round_is_created_and_empty() -> None:
    round_ = Round.create("hello")
    assert round_.id.startswith("round-")
    assert round_ == Round(round_.id, "hello", "created", ())


def test_a_new_round_takes_what_it_is_given() -> None:
    assert Round.create("hello", "round-1", "finished", [POST]) == ROUND


@pytest.mark.parametrize("state", ["created", "finished", "failed", "stopped"])
def test_a_round_has_one_of_four_states(state: Any) -> None:
    assert Round.create("", state=state).state == state


def test_another_state_is_refused() -> None:
    unfit: Any = "done"
    with pytest.raises(ValueError, match="'done' is no state of a round; there are created, finished"):
        Round.create("", state=unfit)


def test_a_query_that_no_file_could_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="user_query has half a surrogate pair"):
        Round.create("\ud800")


def test_a_file_holds_a_round_under_four_keys() -> None:
    assert list(ROUND.to_dict().items()) == [
        ("id", "round-1"),
        ("user_query", "hello"),
        ("state", "finished"),
        ("post_list", [POST.to_dict()]),
    ]


def test_a_restored_round_is_the_same() -> None:
    assert Round.restore(ROUND.to_dict()) == ROUND


def test_a_round_from_a_dict_has_new_ids_all_the_way_down() -> None:
    round_ = Round.from_dict(ROUND.to_dict())
    assert (round_.user_query, round_.state) == ("hello", "finished")
    assert round_.post_list[0].message == "hello"
    assert round_.id != "round-1"
    assert round_.post_list[0].id != "post-1"


def test_a_round_from_a_dict_needs_no_id_and_may_have_null_posts() -> None:
    assert Round.from_dict({"user_query": "", "state": "failed", "post_list": None}).post_list == ()


@pytest.mark.parametrize("key", ["user_query", "state", "post_list"])
def test_a_round_from_a_dict_needs_every_other_key(key: str) -> None:
    entry = ROUND.to_dict()
    del entry[key]
    with pytest.raises(KeyError, match=key):
        Round.from_dict(entry)


def test_a_round_cannot_be_changed() -> None:
    round_: Any = ROUND
    with pytest.raises(FrozenInstanceError):
        round_.state = "failed"


def test_later_rounds_show_a_round_without_what_is_temporal() -> None:
    post = Post.create("keep " + temporal("big"), "User", "Planner")
    later = Round("round-1", "hello", "finished", (POST, post)).without_temporal()
    assert [one.message for one in later.post_list] == ["hello", "keep "]
    assert later.post_list[0] is POST
    assert later.without_temporal() is later
