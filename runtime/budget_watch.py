"""Budget watch: holds against one conversation that an interruption gives nobody more to use, and nobody more time.

It keeps what was left of each turn's budget the last time it looked. A budget that grew, or a deadline that moved, is
told to `found` in words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import trio

from .conversation import Conversation
from .event import AttemptBegan, AttemptCut, Event, Paused, Resumed
from .turn import Turn

_DEADLINE = "own deadline"
_LENIENT = 1e-9
"""Seconds by which sums of times may differ."""


class BudgetWatch:
    """Looks when an attempt begins and when one is cut, and at both ends of a pause."""

    def __init__(self, conversation: Conversation, found: Callable[[str], None]) -> None:
        self._router = conversation._router
        self._found = found
        self._left: dict[Turn, Mapping[str, float]] = {}
        """What was left of each kind, and the own deadline; it and `seconds` are moments of working time."""
        self._paused_at = 0.0
        """The moment of working time at which the last pause began."""
        self.looks: Mapping[type[Event], Callable[[Any], None]] = {
            AttemptBegan: self._attempt_began,
            AttemptCut: self._attempt_cut,
            Paused: self._paused,
            Resumed: self._resumed,
        }
        """What is called for which event."""

    def _attempt_began(self, event: AttemptBegan) -> None:
        turn = self._turn(event.role, event.post)
        left = self._look(turn)
        if turn.asker is not None and turn.budget is not turn.asker.budget:
            for kind, most in _amounts(turn.asker, self._router.time.now()).items():
                if kind != _DEADLINE and left.get(kind, math.inf) > most + _LENIENT:
                    self._found(f"{turn} may use {left.get(kind)} of {kind}, who asked it only {most}")
        self._look_at_scope(turn)

    def _attempt_cut(self, event: AttemptCut) -> None:
        self._look(self._turn(event.role, event.post))

    def _look(self, turn: Turn) -> Mapping[str, float]:
        left = _amounts(turn, self._router.time.now())
        for kind, before in self._left.get(turn, {}).items():
            now = left.get(kind, math.inf)
            if now > before + _LENIENT:
                self._found(f"{turn} had {before} of {kind} left and has {now}")
            elif kind in ("seconds", _DEADLINE) and now < before - _LENIENT:
                self._found(f"the deadline of {turn} moved from {before} to {now}")
        self._left[turn] = left
        return left

    def _look_at_scope(self, turn: Turn) -> None:
        """The scope of a turn with a deadline of its own closes at that moment, unless time stands still."""
        if turn.scope is None or not turn.has_own_deadline:
            return
        closes = turn.scope.deadline - trio.current_time() + self._router.time.now()
        stands_still = closes == math.inf and self._router.time._holds
        if not stands_still and not math.isclose(closes, turn.budget.deadline, abs_tol=_LENIENT):
            self._found(f"attempt {turn.attempts} of {turn} ends at {closes}, its deadline is {turn.budget.deadline}")

    def _paused(self, _: Paused) -> None:
        self._paused_at = self._router.time.now()

    def _resumed(self, _: Resumed) -> None:
        passed = self._router.time.now() - self._paused_at
        if abs(passed) > _LENIENT:
            self._found(f"{passed} s of working time passed in a pause")

    def _turn(self, role: str, post_id: str) -> Turn:
        return next(turn for turn in self._router.turns if turn.post.id == post_id and turn.role == role)


def _amounts(turn: Turn, now: float) -> dict[str, float]:
    left = turn.budget.left(now)
    if "seconds" in left:
        left["seconds"] += now
        left[_DEADLINE] = turn.budget.deadline
    return left
