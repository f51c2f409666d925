"""Step: one model call or one tool call inside an attempt, and the block that an interruption lets finish.

A step is what an intervention with `delivery="after_step"` lets end, and before which a pause stops.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import trio

from .errors import ModelTimedOut
from .gate import current_step
from .router import Router
from .shield import Shield, current_shield
from .turn import Turn

_LENIENT = 1 / 8
"""A deadline that each piece moved would cost more than the piece: it moves when so much of the time has passed."""


class Silence:
    """Ends a step in which nothing has come for `seconds`, or for up to an eighth more."""

    __slots__ = ("_clock", "_moved", "_seconds", "scope")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._clock = trio.lowlevel.current_clock()
        self._moved = trio.current_time()
        self.scope = trio.CancelScope(deadline=self._moved + seconds)

    def broken(self, pause: float = 0.0) -> None:
        """Something has come; after it nothing can come for `pause` seconds."""
        now = self._clock.current_time()
        if pause or now - self._moved > self._seconds * _LENIENT:
            self._moved = now + pause
            self.scope.deadline = self._moved + self._seconds * (1 + _LENIENT)


@contextmanager
def inside_step(turn: Turn, router: Router) -> Iterator[None]:
    """The turn is in a step; the end of one is a boundary."""
    attempt, around = turn.attempts, current_step.get()
    turn.in_step += 1
    current_step.set(turn.post.id)
    try:
        yield
    finally:
        current_step.set(around)
        if turn.attempts == attempt and turn.in_step:
            turn.in_step -= 1
        router.on_boundary()


@contextmanager
def ended_by(silence: Silence | None) -> Iterator[None]:
    """Raises ModelTimedOut if it was too long."""
    if silence is None:
        yield
        return
    with silence.scope:
        yield
    if silence.scope.cancelled_caught:
        said = f"nothing has come from the model for {silence._seconds:g} s"
        raise ModelTimedOut(said, fault="server", may_retry=True)


@asynccontextmanager
async def shielded_block(turn: Turn, router: Router, grace: float) -> AsyncIterator[None]:
    """See `TurnContext.uninterruptible`."""
    around = current_shield.get()
    shield = Shield(grace, nested=around in turn.shields)
    turn.shields = (*turn.shields, shield)
    current_shield.set(shield)
    if turn.cut:
        shield.begin_grace()
    try:
        late = turn.budget.deadline + grace if turn.has_own_deadline else math.inf
        with shield.scope, router.time.move_on_at(late):
            yield
    finally:
        current_shield.set(around)
        turn.shields = tuple(other for other in turn.shields if other is not shield)
    await trio.lowlevel.checkpoint_if_cancelled()


def check_grace(grace: float) -> float:
    """Raises ValueError for what is no finite number of seconds: a block is never let go on for ever."""
    if not isinstance(grace, int | float) or isinstance(grace, bool) or not 0 <= grace < math.inf:
        raise ValueError(f"grace is a number of seconds from 0 on, not {grace!r}")
    return grace
