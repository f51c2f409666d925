"""Shield: a block of work that an interruption lets finish, but not for ever."""

from __future__ import annotations

import trio


class Shield:
    """A block that an interruption lets finish, within `grace` seconds from its coming on."""

    __slots__ = ("grace", "scope")

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self.scope = trio.CancelScope(shield=True)

    def begin_grace(self) -> None:
        """The interruption has come; a second one does not prolong it."""
        self.scope.deadline = min(self.scope.deadline, trio.current_time() + self.grace)
