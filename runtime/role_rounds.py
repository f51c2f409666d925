"""RoleRounds: the rounds that one role is given, as a sequence that shares what memory holds; and how they grow.

The rule to know: a round before the current one is built once for a role, without its temporal parts, and every later
answer points to it. So an answer on a long conversation costs no more than one on a short one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, overload

from .filed_round import FiledRound
from .round import Round


class RoleRounds(Sequence[Round]):
    """Rounds, oldest first: read as a tuple is, equal to a tuple of the same, and it never changes.

    A slice of it is a tuple.
    """

    __slots__ = ("_before", "_count", "_last")

    def __init__(self, before: list[Round], last: Round | None) -> None:
        self._before = before
        """Memory's own list, which only ever grows: the first `_count` are of this answer."""
        self._count = len(before)
        self._last: tuple[Round, ...] = () if last is None else (last,)

    def __len__(self) -> int:
        return self._count + len(self._last)

    @overload
    def __getitem__(self, index: int) -> Round: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Round, ...]: ...

    def __getitem__(self, index: int | slice) -> Round | tuple[Round, ...]:
        if isinstance(index, slice):
            return tuple(self[number] for number in range(*index.indices(len(self))))
        number = range(len(self))[index]
        return self._before[number] if number < self._count else self._last[0]

    def __iter__(self) -> Iterator[Round]:
        return chain(islice(self._before, self._count), self._last)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, RoleRounds | tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        # The list that it shares may have grown since, and must not travel with it.
        return tuple, (tuple(self),)


class RoleHistory:
    """One role's rounds as they grow. Changed by memory alone."""

    __slots__ = ("_every", "_first", "_left_out", "_next", "_unfailed")

    def __init__(self, first: int = 0, left_out: int = 0) -> None:
        self._first = first
        """The number of the round that it begins in; of that one the first `left_out` posts are not in it."""
        self._left_out = left_out
        self._next = first
        """The number of the round that has not been left behind yet."""
        self._every: list[Round] = []
        self._unfailed: list[Round] = []

    def of(self, role: str, rounds: Sequence[FiledRound], include_failure_rounds: bool) -> RoleRounds | tuple[()]:
        """The role's rounds up to now; the last of `rounds` is the current one."""
        current = len(rounds) - 1
        while self._next < current:
            filed = rounds[self._next]
            self._leave_behind(self._seen(role, filed).without_temporal())
            filed.forget(role)
        if current < self._next:
            return ()
        before = self._every if include_failure_rounds else self._unfailed
        shown = include_failure_rounds or rounds[current].head.state != "failed"
        if not (before or shown):
            return ()
        return RoleRounds(before, self._seen(role, rounds[current]) if shown else None)

    def _leave_behind(self, round_: Round) -> None:
        self._next += 1
        self._every.append(round_)
        if round_.state != "failed":
            self._unfailed.append(round_)

    def _seen(self, role: str, filed: FiledRound) -> Round:
        return filed.seen_by(role, self._left_out if self._next == self._first else 0)
