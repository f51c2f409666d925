"""Invariants: what must hold whatever is interrupted, wherever; and the breach of one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Invariant(Enum):
    """What must hold whatever is interrupted, wherever; the value says it in full."""

    ACCEPT_THEN_CUT = (
        "accept, then cut; record, then begin: a new attempt reads the words, after all its predecessor did"
    )
    RECALLED = "an abandoned ask is a recalled request, and it is joined"
    ALONE = (
        "no attempt beside an old one: nothing it started or asked for is alive when the next begins or send returns"
    )
    ONE_SCOPE = "one scope an attempt"
    ONCE = "the highest interrupted turn of a chain starts again, once"
    ONE_ANSWER = "one answer: every request has one outcome, and no ask hangs"
    CLEAN_UP = "clean-up that raises is recorded and does not fail the turn"
    HOST_UNHARMED = "the host's program ends as it does without an interruption"
    CALLS = "no call stays without an outcome: done, failed, interrupted or not started"
    NOTHING_LOST = "no message is lost: words are seen, told or missed, once; what was done is kept"
    NOTHING_LEFT = "nothing is left behind: no task, process, descriptor or thread is alive after the conversation"
    ORDER_KEPT = "order is kept: of one sender's posts to one recipient, none stands before an earlier one"
    LOADS = "a transcript that is written loads again: the same rounds, posts and ids"
    FAILURE = "a failure goes to whoever asked: nobody else gets it, and the conversation can be used afterwards"
    BUDGETS = "a budget never grows: what is left only falls, attempt after attempt, and no deadline moves"
    ENDS = "an end ends all: no work, background work included, outlives a stop, idleness or the closing"
    RECEIPTS = "a receipt is not early: stopped, settled and seen are said once they are so"
    BOUNDARIES = "what waits for a boundary takes hold there: no ask or call passes it, no step is ended, in order"


@dataclass(frozen=True, slots=True)
class Breach:
    """An invariant that did not hold, and where."""

    invariant: Invariant
    what: str

    def __str__(self) -> str:
        return f"{self.invariant.value.split(':')[0]}: {self.what}"
