"""Shield: a block that an interruption lets finish, and in which of them code runs."""

from __future__ import annotations

from contextvars import ContextVar

import trio

current_shield: ContextVar[Shield | None] = ContextVar("callboard_shield", default=None)
"""The innermost block in which code runs; what a role asks there inherits it."""


class Shield:
    """Made for one block, which has `grace` seconds from an interruption on.

    One inside another is no shield against the outer one: when that one's time is over, so is its own.
    """

    __slots__ = ("grace", "scope")

    def __init__(self, grace: float, *, nested: bool = False) -> None:
        self.grace = grace
        self.scope = trio.CancelScope(shield=not nested)

    def begin_grace(self) -> None:
        """The interruption has come; a second one does not prolong it."""
        self.scope.deadline = min(self.scope.deadline, trio.current_time() + self.grace)
