"""Options: the defaults, and what is refused."""

import math
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from callboard.runtime.options import ConversationOptions

SECONDS = ["tell_timeout", "idle_after", "closing"]


def test_the_defaults_are_the_common_case() -> None:
    options = ConversationOptions()
    assert (options.id, options.ids, options.mailbox) == (None, None, 64)
    assert [getattr(options, name) for name in SECONDS] == [5.0, 30.0, 5.0]


@pytest.mark.parametrize("mailbox", [0, -1, 1.0, "1", None, math.inf, True])
def test_a_mailbox_holds_a_whole_number_from_one_on(mailbox: Any) -> None:
    assert ConversationOptions(mailbox=1).mailbox == 1
    with pytest.raises(ValueError, match="mailbox is a whole number from 1 on, not "):
        ConversationOptions(mailbox=mailbox)


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize("seconds", [-0.1, math.nan, "1", None])
def test_what_is_no_time_is_refused(name: str, seconds: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} is a number of seconds from 0 on, not "):
        ConversationOptions(**{name: seconds})


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize("seconds", [0, 3, 0.5, math.inf])
def test_a_time_is_a_number_from_zero_on(name: str, seconds: Any) -> None:
    assert getattr(ConversationOptions(**{name: seconds}), name) == seconds


def test_options_cannot_be_changed() -> None:
    options: Any = ConversationOptions()
    with pytest.raises(FrozenInstanceError):
        options.mailbox = 2
