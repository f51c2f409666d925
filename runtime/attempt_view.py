"""AttemptView: what a role sees during one attempt. Used after its attempt it raises AttemptEnded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .above import Above
from .directory import Entry
from .draft import Draft
from .errors import AttemptEnded
from .event import DraftGrew, Event
from .round import Round
from .router import Router
from .step import Silence
from .summary import Summarizer, Summary
from .turn import Turn
from .usage import Price
from .user_message import UserMessage


class AttemptView:
    """The reading half of `TurnContext`."""

    __slots__ = ("_above", "_entry", "_router", "_silences", "_turn", "attempt")

    def __init__(self, turn: Turn, entry: Entry, router: Router, above: Above) -> None:
        self._turn = turn
        self._entry = entry
        self._router = router
        self._above = above
        self._silences: tuple[Silence, ...] = ()
        self.attempt = turn.attempts
        """1, or more after interruptions of this turn."""

    @property
    def role(self) -> str:
        """The name under which this role was started."""
        return self._entry.name

    @property
    def superior(self) -> str | None:
        """The name of the role that this one was started under; None for one that stands at the top."""
        return self._entry.superior

    @property
    def subordinates(self) -> tuple[str, ...]:
        """The names of the roles started under this one, in the order of their start."""
        return tuple(self._entry.subordinates)

    @property
    def state(self) -> Any:
        """What this actor's `live` gave; None for an actor without one."""
        return self._entry.state

    @property
    def round(self) -> str:
        """The id of the round into which this attempt records."""
        return self._router.round

    @property
    def user_words(self) -> tuple[UserMessage, ...]:
        """What the user said to this turn while it was worked on, newest last. Reading counts as seeing."""
        turn = self._live()
        if turn.heard:
            self._above.saw(turn.role, [words.id for words in turn.heard])
        return tuple(words.read_by(turn.role) for words in turn.heard)

    @property
    def draft(self) -> Draft:
        """What this attempt has so far: interrupted, its text is kept as a partial post."""
        turn = self._live()
        if turn.draft is None:
            turn.draft = Draft(turn.role, self.attempt, self._draft_grew)
        return turn.draft

    @property
    def limits(self) -> Mapping[str, float]:
        """What this request may still use of each kind that is limited: replies, seconds, tokens and so on."""
        return self._live().budget.left(self._router.time.now())

    def price_of(self, model: str) -> Price | None:
        """What the host says that the model's tokens cost; None for a model without a price."""
        return self._above.options.prices.get(model)

    def step_goes_on(self, pause: float = 0.0) -> None:
        """Says that a step has not stalled though its draft does not grow, and that nothing comes for `pause` seconds.

        A model that thinks before it replies is such a step.
        """
        for silence in self._silences:
            silence.broken(pause)

    async def summary_of(self, rounds: Sequence[Round], *roles: str, by: Summarizer | None = None) -> Summary | None:
        """What stands for the first of these rounds, made first if the summarizer finds it time; None: nothing does.

        The rounds are those of `roles`, of this role unless given, oldest first, and the last one runs: it is never
        summarised. `by` takes the place of the conversation's summarizer. Making a summary is a step, whose usage is
        this role's; several that ask for the same share it. One that fails loses nothing: it is tried again in a later
        round, and within a round the answer stays the same. Cancelled: the summary is ended, unless others wait for it.
        """
        return await self._above.summaries.of(self._live(), rounds, roles, by)

    def _draft_grew(self, text: str, type: str) -> None:
        for silence in self._silences:
            silence.broken()
        self._publish(DraftGrew(self._turn.role, self._turn.post.id, text, type))

    def _publish(self, event: Event) -> None:
        events = self._router.events
        if events.wanted:
            events.publish(event)

    def _live(self) -> Turn:
        turn = self._turn
        if turn.attempts != self.attempt or turn.state != "running":
            raise AttemptEnded(turn.role, self.attempt)
        return turn

    def __repr__(self) -> str:
        return f"<TurnContext {self.role} attempt {self.attempt}>"
