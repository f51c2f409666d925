"""What a user says is checked and frozen when it is said."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from callboard.runtime.attachment import Attachment
from callboard.runtime.json_value import FrozenMapping
from callboard.runtime.user_message import UserMessage

PLAN = Attachment.create("plan", "1. think")


def test_words_alone_are_enough() -> None:
    said = UserMessage("hello")
    assert (said.attachments, said.system_message, said.id, said.extra) == ((), (), "", {})


def test_lists_become_tuples() -> None:
    attachments: Any = [PLAN]
    system: Any = ["be brief"]
    said = UserMessage("hello", attachments, system)
    assert said.attachments == (PLAN,)
    assert said.system_message == ("be brief",)


def test_the_extra_is_frozen() -> None:
    extra = {"reason": ["late"]}
    said = UserMessage("hello", extra=extra)
    extra["reason"].append("still")
    assert said.extra == {"reason": ["late"]}
    assert isinstance(said.extra, FrozenMapping)


def test_equal_words_are_equal_and_have_one_hash() -> None:
    assert {UserMessage("hello", extra={"a": 1}), UserMessage("hello", extra={"a": 1})} == {
        UserMessage("hello", (), (), "", {"a": 1})
    }


@pytest.mark.parametrize(
    "unfit", [{"message": "\ud800"}, {"system_message": ("a", "\ud800")}, {"extra": {"a": "\ud800"}}]
)
def test_half_a_surrogate_pair_is_refused(unfit: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="half a surrogate pair"):
        UserMessage(**{"message": "", **unfit})


@pytest.mark.parametrize("unfit", [{"message": 5}, {"system_message": "be brief"}, {"system_message": (5,)}])
def test_what_is_no_text_is_refused(unfit: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(unfit))):
        UserMessage(**{"message": "", **unfit})


def test_an_extra_that_is_no_json_is_refused() -> None:
    unfit: Any = {"a": object()}
    with pytest.raises(ValueError, match=r"value\.a is of type object"):
        UserMessage("", extra=unfit)


def test_words_cannot_be_changed() -> None:
    said: Any = UserMessage("hello")
    with pytest.raises(FrozenInstanceError):
        said.message = "other"
