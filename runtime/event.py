"""Events: what a host can watch of a conversation while it runs. Frozen values; they steer nothing.

An event says what has already happened, in the step in which it happened. A name of a role, post or round is its name
or id; the post itself travels only in `PostRecorded` and `DeadLetter`.
"""

from __future__ import annotations

from typing import Literal

from .post import Post
from .user_message import UserMessage
from .value import value

WordsOutcome = Literal["seen", "told", "missed"]
CallOutcome = Literal["done", "failed", "interrupted", "not_started"]


@value
class Event:
    """The root of all events, for `isinstance` and for annotations."""


@value
class RoundBegan(Event):
    """A message of the user's has left the line and is being worked on."""

    round: str
    user_query: str


@value
class RoundEnded(Event):
    """The round's answer, or its error, is there; its receipts are settled."""

    round: str
    state: str


@value
class AttemptBegan(Event):
    """A role begins to work on a post: `attempt` 1, or a later one after an interruption."""

    role: str
    post: str
    attempt: int


@value
class AttemptCut(Event):
    """The scope of a running attempt was cancelled; what it had is recorded once it has unwound."""

    role: str
    post: str
    attempt: int
    words: str | None
    """The id of the words that interrupted it; None for a request that was recalled."""


@value
class PostRecorded(Event):
    """Memory has the post. Everything that travels or is kept passes here once, in order."""

    post: Post
    round: str


@value
class DraftGrew(Event):
    """A role has something more that is not recorded yet. These are the first to go when a buffer is full."""

    role: str
    post: str
    text: str
    """The new piece."""
    type: str = "message"
    """What grew: the message, an attachment by its type, or a tool's progress by the tool's name."""


@value
class ToolBegan(Event):
    """A role calls a tool."""

    role: str
    post: str
    tool: str
    call: str
    """The call's id."""


@value
class ToolEnded(Event):
    """The call has its outcome."""

    role: str
    post: str
    tool: str
    call: str
    outcome: CallOutcome


@value
class WorkAbandoned(Event):
    """Work that an interruption ended could not be ended within its limits, such as a thread: it may still run."""

    role: str
    post: str
    what: str


@value
class Paused(Event):
    """Turns stop at their next boundary."""


@value
class Resumed(Event):
    """Turns go on."""


@value
class QueueChanged(Event):
    """A round was put in line for later, edited, withdrawn, or has begun."""

    waiting: tuple[str, ...]
    """The ids of the messages that still wait, in order."""


@value
class ActorStarted(Event):
    """The directory has a new role; its task starts with its first post."""

    role: str
    superior: str | None


@value
class ActorEnded(Event):
    """A role that its superior ended has left, or one has failed too often and answers nobody any more."""

    role: str
    error: str
    """What leaving its lifetime raised, or why it failed; empty if nothing did."""


@value
class ActorRestarted(Event):
    """A role's lifetime ended by itself and is opened anew: `state` is new, the rounds stay."""

    role: str
    error: str


@value
class WordsAccepted(Event):
    """The user's words are in memory's log; nothing has been cut for them yet."""

    words: UserMessage


@value
class WordsSettled(Event):
    """What became of an intervention: a reached role read it, it lies in somebody's rounds, or it met nobody."""

    words: str
    outcome: WordsOutcome


@value
class DeadLetter(Event):
    """A post that nobody will take, with the reason."""

    post: Post
    reason: str


@value
class EventsDropped(Event):
    """This reader was too slow: so many events are missing at this place."""

    count: int
