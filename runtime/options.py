"""Options: what a host may set for a conversation. Seconds are seconds of trio's clock."""

from __future__ import annotations

from dataclasses import dataclass

from .ids import Ids


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationOptions:
    """The defaults are the common case; a Board gives the same options to all its conversations."""

    id: str | None = None
    """The conversation's id; None makes one."""

    ids: Ids | None = None
    """Where ids and times come from, in this conversation's actors alone; None takes the host's own source."""

    mailbox: int = 64
    """How many posts may wait for one role before an `ask` waits for room."""

    tell_timeout: float = 5.0
    """How long a `tell` waits for room before its post is a dead letter."""

    idle_after: float = 30.0
    """After so long without work the tasks of roles without a lifetime of their own end, until the next post."""

    closing: float = 5.0
    """How long all lifetimes together may take to be left when the conversation ends."""

    def __post_init__(self) -> None:
        if not isinstance(self.mailbox, int) or isinstance(self.mailbox, bool) or self.mailbox < 1:
            raise ValueError(f"mailbox is a whole number from 1 on, not {self.mailbox!r}")
        for name in ("tell_timeout", "idle_after", "closing"):
            seconds = getattr(self, name)
            if not isinstance(seconds, int | float) or not seconds >= 0:
                raise ValueError(f"{name} is a number of seconds from 0 on, not {seconds!r}")
