"""Alternation: neighbours of one author become one message."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.prompts.alternation import alternating
from callboard.runtime.chat_model import ImagePart, Message

MESSAGES = st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), st.text(max_size=3)), max_size=8)


def test_neighbours_are_one_message_with_all_their_parts() -> None:
    shown = (ImagePart("data:1"),)
    merged = alternating([Message("user", "a", shown), Message("user", ""), Message("user", "b", shown)])
    assert merged == (Message("user", "a\n\nb", shown + shown),)


@settings(max_examples=50)
@given(MESSAGES)
def test_authors_alternate_and_nothing_is_lost(messages: list[Message]) -> None:
    merged = alternating(messages)
    assert all(one.role != after.role for one, after in pairwise(merged))
    assert alternating(merged) == merged
    for author in ("user", "assistant"):
        texts = [message.content for message in messages if message.role == author]
        assert "".join(one.content for one in merged if one.role == author).replace("\n", "") == "".join(texts).replace(
            "\n", ""
        )


def test_messages_that_alternate_stay_as_they_are() -> None:
    messages = (Message("system", "s"), Message("user", "a"), Message("assistant", "b"))
    assert alternating(messages) == messages
