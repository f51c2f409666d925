"""What a user says, before anybody has made a post of it.

The rule to know: the same `id` is the same words; said twice, they count once.
"""

from __future__ import annotations

from collections.abc import Mapping

from .attachment import Attachment
from .json_value import EMPTY, JsonValue, check_text, frozen
from .value import value


@value
class UserMessage:
    """A user's words; lists become tuples, and `extra` is frozen.

    Raises ValueError for what UTF-8 or JSON cannot hold, TypeError for a message that is no text.
    """

    message: str
    attachments: tuple[Attachment, ...] = ()
    system_message: tuple[str, ...] = ()
    """What the model is told beside the words, each as a system message."""
    id: str = ""
    """Who says the words may name them; the conversation names those that have no id."""
    extra: Mapping[str, JsonValue] = EMPTY
    """Fields for a template of one's own, such as a reason or a priority."""

    def __post_init__(self) -> None:
        check_text(self.message, "message")
        if isinstance(self.system_message, str):
            raise TypeError("system_message is one str; write a tuple of them")
        object.__setattr__(self, "attachments", tuple(self.attachments))
        object.__setattr__(self, "system_message", tuple(self.system_message))
        for number, text in enumerate(self.system_message):
            check_text(text, f"system_message[{number}]")
        object.__setattr__(self, "extra", frozen(self.extra))
