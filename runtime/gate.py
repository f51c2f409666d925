"""Gate: where turns stop, while the conversation is paused or words wait for their step to end.

Turns pass it at their boundaries: the start of an attempt, of a step, of an ask. A block that may not be interrupted
passes freely: it could neither go on nor be cancelled. So does what lies within a step, which is to come to its end.
"""

from __future__ import annotations

from contextvars import ContextVar

from trio.lowlevel import ParkingLot, checkpoint_if_cancelled

from .shield import current_shield
from .turn import Turn

current_step: ContextVar[str] = ContextVar("callboard_step", default="")
"""The id of the post in whose step code runs; a role's own tasks inherit it."""


class Gate:
    """Open, or closed by a pause for all turns and by waiting words for those that they hold."""

    __slots__ = ("_parked", "paused")

    def __init__(self) -> None:
        self.paused = False
        self._parked = ParkingLot()

    def stops(self, turn: Turn) -> bool:
        """Whether the turn may not go on for now."""
        if not (self.paused or turn.holds):
            return False
        return current_shield.get() not in turn.shields and current_step.get() != turn.post.id

    async def wait(self, turn: Turn) -> None:
        """Until the turn may go on; no checkpoint if it may. Cancelled, even when it was let go: nothing happens."""
        while self.stops(turn):
            await self._parked.park()
            await checkpoint_if_cancelled()

    def look_again(self) -> None:
        """Something has changed: those that wait see whether they may go on."""
        self._parked.unpark_all()
