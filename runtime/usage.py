"""Usage: what work has cost, by role and by round, and the prices from which cost is reckoned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import UnionType

PER_MILLION = 1_000_000
_COUNTS = ("replies", "model_calls", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Amounts; they add up with `+`. Raises ValueError for what is no amount: nothing can be given back."""

    replies: int = 0
    """Answers of roles, the round's own included."""
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """In the currency of the host's prices."""

    def __post_init__(self) -> None:
        for kind in _COUNTS:
            _check(kind, getattr(self, kind), int)
        _check("cost", self.cost, int | float)

    @property
    def tokens(self) -> int:
        """Of both directions."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            replies=self.replies + other.replies,
            model_calls=self.model_calls + other.model_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=self.cost + other.cost,
        )


def _check(kind: str, amount: float, of: type | UnionType) -> None:
    if isinstance(amount, bool) or not isinstance(amount, of) or not 0 <= amount < math.inf:
        raise ValueError(f"{kind} is a {'whole ' if of is int else ''}number from 0 on, not {amount!r}")


NOTHING_USED = Usage()


@dataclass(frozen=True, slots=True)
class Price:
    """What a model's tokens cost, for a million of them. Raises ValueError for what is no price."""

    input: float
    output: float
    cached: float | None = None
    """Of the input, what the provider had kept from an earlier call; None: as all input."""

    def __post_init__(self) -> None:
        _check("input", self.input, int | float)
        _check("output", self.output, int | float)
        if self.cached is not None:
            _check("cached", self.cached, int | float)

    def of(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """The cost of so many tokens; `cached_tokens` are among the input."""
        cached = self.input if self.cached is None else self.cached
        new = input_tokens - cached_tokens
        return (self.input * new + cached * cached_tokens + self.output * output_tokens) / PER_MILLION


@dataclass(frozen=True, slots=True)
class ConversationUsage:
    """What a conversation has used up to now."""

    total: Usage
    by_role: Mapping[str, Usage]
    by_round: Mapping[str, Usage]
    """By the id of the round that ran when it was used."""
    by_round_and_role: Mapping[tuple[str, str], Usage]


class Ledger:
    """Counts what is used, for ever: an interruption takes nothing back."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, str], Usage] = {}
        self._replies: dict[tuple[str, str], int] = {}
        """Apart, since every turn counts here: a number is added to in a tenth of the time."""

    def count(self, round_id: str, role: str, usage: Usage) -> None:
        """Adds to what the role has used in that round."""
        key = (round_id, role)
        self._used[key] = self._used.get(key, NOTHING_USED) + usage

    def count_reply(self, round_id: str, role: str) -> None:
        """One more answer of the role."""
        key = (round_id, role)
        self._replies[key] = self._replies.get(key, 0) + 1

    def report(self) -> ConversationUsage:
        """All of it, as one value."""
        both = dict(self._used)
        for key, replies in self._replies.items():
            both[key] = both.get(key, NOTHING_USED) + Usage(replies=replies)
        by_role: dict[str, Usage] = {}
        by_round: dict[str, Usage] = {}
        for (round_id, role), usage in both.items():
            by_role[role] = by_role.get(role, NOTHING_USED) + usage
            by_round[round_id] = by_round.get(round_id, NOTHING_USED) + usage
        return ConversationUsage(sum(both.values(), NOTHING_USED), by_role, by_round, both)
