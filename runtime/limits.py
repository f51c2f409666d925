"""Limits: how much a round, or one request, may use; and the budget that keeps count of it.

A budget belongs to a request and all the work below it, so every attempt shares it: an interruption gives nothing back.
What a subordinate was allotted and has not used is its asker's, since all that is used counts on the whole line up to
the round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

from .errors import LimitReached
from .json_value import JsonValue
from .usage import Usage

_COUNTED = ("replies", "model_calls", "tokens", "cost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """None: no limit of that kind. Raises ValueError for what is no positive number."""

    replies: int | None = None
    """Answers of roles, failures too; the last must be that of the request which the limit is set for."""
    seconds: float | None = None
    """Of working time: without what a pause, or the wait for a person's answer, took."""
    model_calls: int | None = None
    tokens: int | None = None
    """Of both directions."""
    cost: float | None = None
    """In the currency of the host's prices."""

    def __post_init__(self) -> None:
        for field in fields(self):
            limit = getattr(self, field.name)
            whole = field.name not in ("seconds", "cost")
            number = isinstance(limit, int if whole else int | float) and not isinstance(limit, bool)
            if limit is not None and not (number and limit > 0):
                kind = "a whole number" if whole else "a number"
                raise ValueError(f"{field.name} is {kind} above 0, or None, not {limit!r}")


def limit_behind(error: BaseException) -> Mapping[str, JsonValue]:
    """What an error post says in `extra` of the limit that its error comes from: its name and size; {} if of none."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, LimitReached):
            return {"limit": cause.which, "size": cause.limit}
        cause = cause.__cause__
    return {}


def check_limits(limits: object) -> None:
    """Raises TypeError for what is no Limits."""
    if not isinstance(limits, Limits):
        raise TypeError(f"limits are Limits, not {type(limits).__name__}")


class Budget:
    """What may still be used, for one request and all below it. Raises TypeError for limits that are none."""

    __slots__ = ("_left", "_limits", "_parent", "deadline")

    def __init__(self, limits: Limits, now: float = 0.0, parent: Budget | None = None) -> None:
        check_limits(limits)
        self._limits = limits
        self._parent = parent
        self._left = {kind: limit for kind in _COUNTED if (limit := getattr(limits, kind)) is not None}
        self.deadline = math.inf if limits.seconds is None else now + limits.seconds
        """The moment of working time at which the request fails."""

    def spend(self, usage: Usage) -> None:
        """Counts on the whole line, then raises LimitReached if any of it is overdrawn: nothing used is uncounted."""
        overdrawn: LimitReached | None = None
        budget: Budget | None = self
        while budget is not None:
            for kind in budget._left:
                used = getattr(usage, kind)
                budget._left[kind] -= used
                if used and budget._left[kind] < 0:
                    overdrawn = budget._reached(kind)
            budget = budget._parent
        if overdrawn is not None:
            raise overdrawn

    def count_reply(self, owner: bool) -> LimitReached | None:
        """One more answer, a failure too; `owner`: the one that this budget was waiting for.

        Gives the limit that it reaches, if it was the last that the line had room for, and not the one waited for.
        """
        reached: LimitReached | None = None
        budget: Budget | None = self
        while budget is not None:
            if "replies" in budget._left:
                budget._left["replies"] -= 1
                if budget._left["replies"] <= 0 and not owner:
                    reached = budget._reached("replies")
            budget, owner = budget._parent, False
        return reached

    def check_room(self) -> None:
        """Raises LimitReached if one more answer would be one too many."""
        budget: Budget | None = self
        while budget is not None:
            if budget._left.get("replies", 1) <= 0:
                raise budget._reached("replies")
            budget = budget._parent

    def left(self, now: float) -> dict[str, float]:
        """What is left of each kind that is limited, over the whole line; `now` is a moment of working time."""
        left: dict[str, float] = {}
        budget: Budget | None = self
        while budget is not None:
            known: dict[str, float] = dict(budget._left)
            if budget.deadline != math.inf:
                known["seconds"] = budget.deadline - now
            for kind, amount in known.items():
                left[kind] = min(left.get(kind, math.inf), amount)
            budget = budget._parent
        return left

    def out_of_time(self) -> LimitReached:
        """The error of a request whose deadline has passed."""
        return self._reached("seconds")

    def _reached(self, kind: str) -> LimitReached:
        return LimitReached(kind, getattr(self._limits, kind))


UNLIMITED = Budget(Limits())
"""Of work that no round has asked for."""
