"""Backoff: how long to wait before a model, or whatever else failed with a ModelError, is called again.

The rule to know: waits are random, so that many that failed together do not come back together.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from .errors import ModelError


@dataclass(frozen=True, slots=True)
class Backoff:
    """At most `attempts` calls, with a wait before each that follows the first.

    A wait is a random time of at most `first` seconds, twice as many each further time, never more than `longest`. A
    server that says when it wants to be asked again is not asked before; one that says later than `longest` is not
    asked again at all. Raises ValueError for what is no number of attempts or seconds.
    """

    attempts: int = 4
    first: float = 1.0
    longest: float = 30.0
    source: random.Random = field(default_factory=random.Random, repr=False, compare=False)
    """Of what is random."""

    def __post_init__(self) -> None:
        attempts = self.attempts
        if not isinstance(attempts, int) or isinstance(attempts, bool) or attempts < 1:
            raise ValueError(f"attempts is a whole number from 1 on, not {attempts!r}")
        if not 0 <= self.first <= self.longest:
            raise ValueError(f"first is a number of seconds from 0 to longest, not {self.first!r}")

    def pause(self, failed: int, error: Exception) -> float | None:
        """Seconds to wait now that `failed` calls have failed, the last with `error`; None: do not call again."""
        if failed >= self.attempts or not (isinstance(error, ModelError) and error.may_retry):
            return None
        asked = error.retry_after or 0.0
        if asked > self.longest:
            return None
        # Behind what the server asked for a short random time is enough: it said when it can serve.
        most = self.first if asked else min(self.longest, self.first * 2 ** (failed - 1))
        return asked + self.source.uniform(0, most)
