"""Summary: what is shown of earlier rounds in their place, and the edge to whatever makes it.

The rule to know: a summarizer keeps no state. What was summarised, and when it is tried again, is the conversation's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .chat_model import UsageDelta
from .round import Round
from .value import value


@value
class Summary:
    """What is shown in the place of a range of rounds, which begins where the summary before it ends."""

    text: str
    upto: str
    """The id of the last round of the range. Rounds of the range that are not given any more need not be."""


@value
class SummaryRequest:
    """What is to be summarised."""

    roles: frozenset[str]
    """Whose rounds these are: they hold the posts from and to these roles."""
    rounds: tuple[Round, ...]
    """Oldest first."""
    previous: str = ""
    """What is said up to now of the rounds before these; the new summary stands in its place too."""


class CountUsage(Protocol):
    """Counts what models use as if the role had used it that waits for the summary."""

    def __call__(self, model: str, used: UsageDelta | None = None, /) -> None:
        """One call more of that model, before it is made; or with `used` what a call has used.

        Raises LimitReached once it is counted.
        """


class Summarizer(Protocol):
    """Makes summaries. One object serves any number of roles and conversations at once."""

    @property
    def digest(self) -> str:
        """What a summary depends on beside its rounds, such as its template: another digest, another summary."""

    @property
    def seconds(self) -> float:
        """How long one summary may take, of trio's clock; then it is given up, and counts as failed."""

    def choose(self, rounds: Sequence[Round]) -> int:
        """How many of these, from the first, are to be summarised now: 0 for none, and never the last, which runs.

        They are the rounds that no summary covers yet. What it raises, the role's turn raises.
        """

    async def summarize(self, request: SummaryRequest, count: CountUsage) -> str:
        """The text of the summary; an empty one counts as failed, and so does what this raises.

        Cancelled: what it has asked for is ended at once.
        """
