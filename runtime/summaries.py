"""Summaries: what one conversation has of summaries, and those that are being made.

Each is made in a task of the conversation's nursery, once for a range of rounds, however many roles wait for it. The
rule to know: it is at work for as long as somebody waits, and no longer; so whatever cuts the last of them, an
intervention, a stop or the conversation's end, ends it. What is shown of earlier rounds is settled once in each round,
so that what a model is sent within a round only grows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import trio

from .chat_model import UsageDelta
from .errors import describe
from .event import WorkAbandoned
from .json_value import check_text
from .model_event import RoundsSummarized, SummaryFailed
from .options import ConversationOptions
from .round import Round
from .router import Router
from .signal import Signal
from .step import inside_step
from .summary import CountUsage, Summarizer, Summary, SummaryRequest
from .turn import Turn
from .usage import Usage

LONGEST_DISTANCE = 8
"""After how many rounds at most a summary that failed is tried again."""

_Key: TypeAlias = tuple[frozenset[str], str, str, str]
"""The roles, the first and the last round of the range, and the summarizer's digest."""


class Summaries:
    """Of one conversation. `start` runs what it is given as a task that outlives turns."""

    def __init__(self, router: Router, options: ConversationOptions) -> None:
        self.start: Callable[[Callable[[], Awaitable[None]]], None]
        self._router = router
        self._options = options
        self._courses: dict[tuple[frozenset[str], str], _Course] = {}
        self._at_work: dict[_Key, _Work] = {}

    async def of(
        self, turn: Turn, rounds: Sequence[Round], roles: Collection[str], summarizer: Summarizer | None
    ) -> Summary | None:
        """See `TurnContext.summary_of`."""
        by, whose = summarizer or self._options.summarizer, frozenset(roles or [turn.role])
        if by is None or not rounds:
            return None
        course = self._courses.setdefault((whose, by.digest), _Course())
        if course.chosen(rounds, by):
            await trio.lowlevel.checkpoint_if_cancelled()
            await self._router.gate.wait(turn)
        chosen = course.chosen(rounds, by)  # in a pause another role may have had it made
        if chosen:
            with inside_step(turn, self._router):
                await self._made(course, SummaryRequest(whose, chosen, course.text_before(rounds)), by, turn)
        return course.summary if course.covered(rounds) else None

    async def _made(self, course: _Course, request: SummaryRequest, by: Summarizer, turn: Turn) -> None:
        """Waits until the summary is made, or has failed; begins it unless it is at work."""
        key = (request.roles, request.rounds[0].id, request.rounds[-1].id, by.digest)
        work = self._at_work.get(key)
        if work is None:
            work = self._at_work[key] = _Work(by, request, partial(self._count, turn))
            work.on_end = partial(self._ended, key, course)
            self.start(work.run)
        try:
            await work.wait()
        except BaseException:
            if work.is_left():
                del self._at_work[key]
                await self._end(work, turn)
            raise

    def _ended(self, key: _Key, course: _Course, work: _Work) -> None:
        if self._at_work.get(key) is not work:
            return  # nobody waited any more
        del self._at_work[key]
        roles, first, upto, _ = key
        names = tuple(sorted(roles))
        event: RoundsSummarized | SummaryFailed
        if work.text:
            course.made(work.text, work.request)
            event = RoundsSummarized(names, first, upto)
        else:
            course.failed()
            event = SummaryFailed(names, first, upto, work.problem)
        if self._router.events.wanted:
            self._router.events.publish(event)

    async def _end(self, work: _Work, turn: Turn) -> None:
        """Cancels it, and waits until it has ended, for a step of the ladder at most: it holds nobody up."""
        work.scope.cancel(reason="nobody waits for the summary any more")
        with trio.move_on_after(self._options.ladder, shield=True):
            await work.wait_ended()
        if not work.ended and self._router.events.wanted:
            self._router.events.publish(WorkAbandoned(turn.role, turn.post.id, "a summary"))

    def _count(self, turn: Turn, model: str, used: UsageDelta | None = None, /) -> None:
        """As `TurnContext.spend`, though the attempt that asked may be over while others wait."""
        usage, price = Usage(model_calls=1), self._options.prices.get(model)
        if used is not None:
            tokens = used.input_tokens, used.output_tokens
            cost = price.of(*tokens, used.cached_tokens) if price is not None else 0.0
            usage = Usage(input_tokens=tokens[0], output_tokens=tokens[1], cost=cost)
        self._router.ledger.count(self._router.round, turn.role, usage)
        turn.budget.spend(usage)


@dataclass(slots=True)
class _Course:
    """How far the rounds of some roles are summarised, and when that is tried again."""

    summary: Summary | None = None
    _present: str = ""
    """The round that ran when it was asked for last."""
    _settled: bool = False
    """Whether it stands what is shown in that round."""
    _failures: int = 0
    _distance: int = 0
    """In how many rounds it is tried again; 0: in this one."""

    def chosen(self, rounds: Sequence[Round], by: Summarizer) -> tuple[Round, ...]:
        """What is to be summarised before the last of these rounds goes on; nothing, if that is settled."""
        present = rounds[-1].id
        if present != self._present:
            self._present, self._settled, self._distance = present, False, max(self._distance - 1, 0)
        if self._settled or self._distance:
            return ()
        uncovered = rounds[self.covered(rounds) :]
        count = by.choose(uncovered)
        if not 0 <= count < len(uncovered):
            raise ValueError(f"{count!r} of {len(uncovered)} rounds cannot be summarised: the last one runs")
        self._settled = not count
        return tuple(uncovered[:count])

    def covered(self, rounds: Sequence[Round]) -> int:
        """How many of these rounds the summary stands for: none, if its last is not there, as after a reset."""
        if self.summary is None:
            return 0
        before_present = range(len(rounds) - 2, -1, -1)  # from the end: that is where it is
        return next((number + 1 for number in before_present if rounds[number].id == self.summary.upto), 0)

    def text_before(self, rounds: Sequence[Round]) -> str:
        """What the summary says of the rounds that it stands for."""
        return self.summary.text if self.summary is not None and self.covered(rounds) else ""

    def made(self, text: str, request: SummaryRequest) -> None:
        """There is a summary up to the last of these rounds."""
        self.summary = Summary(text, request.rounds[-1].id)
        self._settled, self._failures = True, 0

    def failed(self) -> None:
        """There is none; the distance to the next try doubles."""
        self._settled, self._distance = True, min(2**self._failures, LONGEST_DISTANCE)
        self._failures += 1


class _Work:
    """One summary that is being made, and those who wait for it."""

    def __init__(self, by: Summarizer, request: SummaryRequest, count: CountUsage) -> None:
        self.on_end: Callable[[_Work], None]
        self.ended = False
        self.text = ""
        self.problem = ""
        """Why there is none."""
        self.scope = trio.CancelScope(shield=True)
        """Those who wait are cut when the conversation is; that ends it, and nothing else does."""
        self._by = by
        self.request = request
        self._count = count
        self._waiting = 0
        self._signal = Signal()

    async def run(self) -> None:
        """Makes it. Errors of the summarizer are the summary's failure."""
        try:
            with self.scope:
                await self._summarize()
        finally:
            self.ended = True
            self.on_end(self)
            self._signal.fire()

    async def wait(self) -> None:
        """Until it has ended. Cancelled: who waits has left; see `is_left`."""
        self._waiting += 1
        try:
            await self.wait_ended()
        finally:
            self._waiting -= 1

    async def wait_ended(self) -> None:
        """As `wait`, without being one of those it is made for."""
        while not self.ended:
            await self._signal.wait()

    def is_left(self) -> bool:
        """Whether it is at work for nobody."""
        return not self.ended and not self._waiting

    async def _summarize(self) -> None:
        with trio.move_on_after(self._by.seconds) as limit:
            try:
                text = (await self._by.summarize(self.request, self._count)).strip()
                check_text(text, "a summary")
                self.text, self.problem = text, "" if text else "it is empty"
            except Exception as error:
                self.problem = describe(error)
        if limit.cancelled_caught:
            self.problem = f"it took longer than {self._by.seconds:g} s"
