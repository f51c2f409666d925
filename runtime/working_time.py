"""Working time: the clock of deadlines. It stands still while nobody is expected to work."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import trio


class WorkingTime:
    """Seconds in which work could go on, from the start of trio's clock; and the scopes that end by them."""

    __slots__ = ("_holds", "_scopes", "_since", "_stood")

    def __init__(self) -> None:
        self._holds = 0
        self._since = 0.0
        """When it began to stand still."""
        self._stood = 0.0
        """For how long it has stood still before."""
        self._scopes: dict[trio.CancelScope, float] = {}

    def now(self) -> float:
        """The moment of working time."""
        return (self._since if self._holds else trio.current_time()) - self._stood

    def passed(self, deadline: float) -> bool:
        """Whether a scope with this deadline is cancelled: reckoned as its own is, which `now` is but nearly."""
        return not self._holds and trio.current_time() >= deadline + self._stood

    def limit(self, scope: trio.CancelScope, deadline: float) -> None:
        """The scope is cancelled at this moment of working time; an infinite one costs nothing."""
        if deadline != math.inf:
            self._scopes[scope] = deadline
            scope.deadline = math.inf if self._holds else deadline + self._stood

    def forget(self, scope: trio.CancelScope) -> None:
        """The scope has ended."""
        self._scopes.pop(scope, None)

    @contextmanager
    def move_on_at(self, deadline: float) -> Iterator[trio.CancelScope]:
        """As trio's, for a moment of working time: the block is cancelled, and its end is the end of that."""
        with trio.CancelScope() as scope:
            self.limit(scope, deadline)
            try:
                yield scope
            finally:
                self.forget(scope)

    def stand_still(self) -> None:
        """Nothing is cancelled until as many calls of `go_on` have followed."""
        self._holds += 1
        if self._holds == 1:
            self._since = trio.current_time()
            for scope in self._scopes:
                scope.deadline = math.inf

    def go_on(self) -> None:
        """Deadlines are later by the time that it stood still."""
        self._holds -= 1
        if not self._holds:
            self._stood += trio.current_time() - self._since
            for scope, deadline in self._scopes.items():
                scope.deadline = deadline + self._stood

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """While a person is waited for."""
        self.stand_still()
        try:
            yield
        finally:
            self.go_on()
