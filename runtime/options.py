"""Options: what a host may set for a conversation. Seconds are seconds of trio's clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .ids import Ids
from .inspection import Hook
from .limits import Limits, check_limits
from .post import Post
from .summary import Summarizer
from .usage import Price

ROUND_LIMITS = Limits(replies=10)
_SECONDS = ("tell_timeout", "idle_after", "closing", "grace", "ladder", "stalled")
_COUNTS = ("mailbox", "max_depth", "fan_out")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationOptions:
    """The defaults are the common case; a Board gives the same options to all its conversations."""

    id: str | None = None
    """The conversation's id; None makes one."""

    ids: Ids | None = None
    """Where ids and times come from, in this conversation's actors alone; None takes the host's own source."""

    profiles: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    """Factories of actors by name, for roles that start subordinates by `profile`."""

    limits: Limits = ROUND_LIMITS
    """What a round may use, with all the work below it."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    """By the name of the model; what has none costs nothing."""

    summarizer: Summarizer | None = None
    """Makes summaries of earlier rounds for roles that ask with `context.summary_of`; None: there are none."""

    on_question: Callable[[Post], Awaitable[Post | str]] | None = None
    """Answers the questions that no role answers; deadlines stand still meanwhile. None: NobodyToAsk is raised."""

    on_post: Hook | None = None
    """Sees every post that is asked, told or replied, in part too, and gives what shall travel instead, or None. Sync;
    it guards by raising: the asker, or the role that replied, gets PostRefused. Notes and errors do not travel."""

    on_intervention: Hook | None = None
    """Sees the post by which the user's words are written into a role's rounds, and gives what shall stand there
    instead, or None. Sync; what it raises stands in the receipt's `stopped()`."""

    mailbox: int = 64
    """How many posts may wait for one role before an `ask` waits for room."""

    tell_timeout: float = 5.0
    """How long a `tell` waits for room before its post is a dead letter."""

    idle_after: float = 30.0
    """After so long without work the tasks of roles without a lifetime of their own end, until the next post."""

    closing: float = 5.0
    """How long all lifetimes together may take to be left when the conversation ends."""

    grace: float = 30.0
    """How long a tool with `interruptible=False` may go on after an interruption, unless it says so itself."""

    ladder: float = 2.0
    """How long each step of ending work that cannot be cancelled may take; so too an `on_interrupt`."""

    stalled: float = 60.0
    """After so long without a piece of its reply a model's step fails."""

    max_depth: int = 5
    """How deep roles may start subordinates: the root is 1. What the host gives at the opening may be deeper."""

    fan_out: int = 32
    """How many roles may be there at once that were started on the way, over the whole tree."""

    def __post_init__(self) -> None:
        check_limits(self.limits)
        for model, price in self.prices.items():
            if not isinstance(price, Price):
                raise TypeError(f"the price of {model!r} is a Price, not {type(price).__name__}")
        for name in _COUNTS:
            count = getattr(self, name)
            if not isinstance(count, int) or isinstance(count, bool) or count < 1:
                raise ValueError(f"{name} is a whole number from 1 on, not {count!r}")
        for name in _SECONDS:
            seconds = getattr(self, name)
            if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds >= 0:
                raise ValueError(f"{name} is a number of seconds from 0 on, not {seconds!r}")
