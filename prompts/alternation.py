"""Alternation: messages for servers that take user and assistant in turn only.

The rule to know: neighbours of one author become one message, and none other changes; so a message that has been sent
grows at its end, where a message more would else have been.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from callboard.runtime.chat_model import Message

BETWEEN = "\n\n"
"""What stands between the texts of two merged messages."""


def alternating(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages, neighbours of one author merged: texts with an empty line between, then all their parts."""
    return tuple(_merged(tuple(group)) for _, group in groupby(messages, key=lambda message: message.role))


def _merged(group: tuple[Message, ...]) -> Message:
    if len(group) == 1:
        return group[0]
    text = BETWEEN.join(message.content for message in group if message.content)
    return Message(group[0].role, text, tuple(part for message in group for part in message.parts))
