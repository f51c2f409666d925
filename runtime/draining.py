"""Draining: how the conversations of a board come to rest for a deploy, and the report of that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import trio

from .conversation import Conversation
from .round import RoundState
from .user_message import UserMessage


@dataclass(frozen=True, slots=True)
class DrainedRound:
    """A round that ran when the draining began, or that the report of running background work has opened since."""

    conversation: str
    round: str
    user_query: str
    state: RoundState


@dataclass(frozen=True, slots=True)
class InLine:
    """A round that had not begun."""

    conversation: str
    message: UserMessage


@dataclass(frozen=True, slots=True)
class DrainReport:
    """What became of the rounds of a board; in the order of the conversations. Told work has no round of its own."""

    finished: tuple[DrainedRound, ...]
    """Came to an end of their own in time; the state of one that failed is ``failed``."""
    stopped: tuple[DrainedRound, ...]
    """Were ended, by the draining or by their own clients; what they had is kept."""
    in_line: tuple[InLine, ...]
    """Had not begun. Who waits for them got ConversationClosed; they can be sent to the next process."""


class Draining:
    """Begins when it is made, in one step; any number of tasks may wait for its end, each with its own deadline."""

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        for conversation in conversations:
            conversation.refuse_inside("drain")
        self._conversations = tuple(conversations)
        self._ended_before = [_count_ended(conversation) for conversation in conversations]
        self._in_line = tuple(
            InLine(conversation.id, message)
            for conversation in conversations
            for message in conversation.begin_draining()
        )

    async def wait(self, deadline: float) -> DrainReport:
        """Until nothing runs; what does so at the deadline is stopped. Cancelled: what runs goes on."""
        for conversation in self._conversations:
            conversation.refuse_inside("drain")
        async with trio.open_nursery() as nursery:
            for conversation in self._conversations:
                nursery.start_soon(_come_to_rest, conversation, deadline)
        rounds = [
            DrainedRound(conversation.id, one.id, one.user_query, one.state)
            for conversation, before in zip(self._conversations, self._ended_before, strict=True)
            for one in conversation.transcript().rounds[before:]
        ]
        return DrainReport(_of(rounds, "finished", "failed"), _of(rounds, "stopped"), self._in_line)


async def _come_to_rest(conversation: Conversation, deadline: float) -> None:
    with trio.CancelScope(deadline=deadline) as scope:
        await conversation.wait_idle()
    if scope.cancelled_caught:
        conversation.stop("the board is drained")
        await conversation.wait_idle()


def _count_ended(conversation: Conversation) -> int:
    return sum(one.state != "created" for one in conversation.transcript().rounds)


def _of(rounds: Iterable[DrainedRound], *states: RoundState) -> tuple[DrainedRound, ...]:
    return tuple(one for one in rounds if one.state in states)
