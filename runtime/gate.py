"""Gate: where turns stop, while the conversation is paused or words wait for their step to end.

Turns pass it at their boundaries: the start of an attempt, of a step, of an ask. A block that may not be interrupted
passes freely: it could neither go on nor be cancelled.
"""

from __future__ import annotations

from trio.lowlevel import ParkingLot

from .turn import Turn


class Gate:
    """Open, or closed by a pause for all turns and by waiting words for those that they hold."""

    __slots__ = ("_parked", "paused")

    def __init__(self) -> None:
        self.paused = False
        self._parked = ParkingLot()

    def stops(self, turn: Turn) -> bool:
        """Whether the turn may not go on for now."""
        return (self.paused or turn.holds > 0) and not turn.shields

    async def wait(self, turn: Turn) -> None:
        """Until the turn may go on; no checkpoint if it may. Cancelled: nothing happens."""
        while self.stops(turn):
            await self._parked.park()

    def look_again(self) -> None:
        """Something has changed: those that wait see whether they may go on."""
        self._parked.unpark_all()
