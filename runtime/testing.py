"""Testing: deterministic runs of conversations, and interruptions at every moment of one.

A moment lies between two task steps, a step being what trio runs of one task between two of its checkpoints, or at the
end of a batch, before the clock may move: everywhere another task could have called a verb. An instrument calls it
there. It adds no task and draws no random number, so the run up to there is the one that was counted.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .conversation import Conversation
from .failure import Failure
from .leftovers import Holdings, tasks
from .moments import RUNTIME_TASKS, STEPS, Moments
from .receipt import Receipt
from .referee import Breach, Invariant
from .seeded_run import TIME_LIMIT
from .seeded_run import run_seeded as run_seeded

T = TypeVar("T")
Watch = Callable[[Conversation], Conversation]
Scenario = Callable[[Watch], Awaitable[object]]
"""Opens a conversation, hands it to `watch` (which gives it back), and uses it as its host would."""
Inject = Callable[[Conversation], object]
"""Calls verbs at the chosen moment; gives the receipt, or a list of them, for the referee to look at."""
LOADED = 32
"""One run in so many loads its transcript, which takes as long again; the undisturbed one of seed 0 is the first."""


class InvariantBroken(AssertionError):
    """An interruption broke a run; says at which moment of which seed, so that it can be run again."""

    def __init__(self, where: str, breaches: Sequence[Breach]) -> None:
        super().__init__(f"{where}: " + "; ".join(map(str, breaches)))
        self.breaches = tuple(breaches)


@dataclass(slots=True)
class InterruptReport:
    """What `every_interrupt_point` has run."""

    runs: int = 0
    seeds: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """How the words ended: seen, told, missed, or started a round. How a failure did: see `fail`."""
    moments: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Where it was injected: who was about to run, a role by its name, and what the conversation was doing there."""

    @property
    def summary(self) -> str:
        """The runs and the outcomes, in a line."""
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        return f"{self.runs} runs over {self.seeds} seeds: {outcomes or 'nothing injected'}"

    def add(self, other: InterruptReport) -> None:
        """Counts the other's runs too, of the same seeds."""
        self.runs += other.runs
        self.seeds = max(self.seeds, other.seeds)
        self.outcomes += other.outcomes
        self.moments += other.moments

    def table(self, *, roles: str = "") -> str:
        """The moments: a line for who was about to run, a column for what was going on, empty ones left out.

        With `roles` all roles stand in one line of that name.
        """
        counts: Counter[tuple[str, str]] = Counter()
        for (who, step), count in self.moments.items():
            counts[roles if roles and who not in RUNTIME_TASKS else who, step] += count
        columns = [step for step in STEPS if any(found == step for _, found in counts)]
        names = sorted({who for who, _ in counts}, key=lambda who: (who in RUNTIME_TASKS, who))
        rows = [["", *columns, "all"]]
        rows += [_row(name, [counts[name, step] for step in columns]) for name in names]
        rows.append(_row("all", [sum(counts[name, step] for name in names) for step in columns]))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
        return "\n".join(line.rstrip() for line in lines)

    def __str__(self) -> str:
        return f"{self.summary}\n{self.table()}" if self.moments else self.summary


def _row(name: str, counts: Sequence[int]) -> list[str]:
    return [name, *(str(count or "") for count in counts), str(sum(counts))]


def every_interrupt_point(
    scenario: Scenario,
    inject: Inject | None = None,
    *,
    seeds: Iterable[int] = (0,),
    sample: int | None = None,
    limit: float = TIME_LIMIT,
) -> InterruptReport:
    """Runs a scenario once for each of its moments with an interruption there, and checks the invariants in each run.

    `inject` defaults to an intervention of level 1. With `sample` only so many moments of a seed are tried, spread
    evenly from a random first one. A run may take `limit` virtual seconds. Raises InvariantBroken with the seed and
    the moment, the scenario's own exception, if it raised one, as its cause.
    """
    inject = inject or interrupt(1)
    report = InterruptReport()
    for seed in seeds:
        report.seeds += 1
        moments = count_moments(scenario, seed, limit)
        holdings = Holdings.now()
        for moment in _sampled(moments, sample, seed):
            run = Moments(inject, moment)
            _run(scenario, run, seed, limit, holdings)
            report.outcomes.update(_outcomes(run))
            report.moments.update([run.place] if run.place is not None else [])
            report.runs += 1
    return report


def interrupt(level: int, times: int = 1, **options: Any) -> Inject:
    """An injection: so many interventions of that level in a row, in one step."""
    return lambda conversation: [
        conversation.intervene(f"words {number}", broadcast_level=level, **options) for number in range(times)
    ]


def fail(role: str | None = None) -> Inject:
    """An injection: the running attempt of a role, or of the first that waits for nobody, raises `InjectedFailure`.

    It does so at its next wait: the role that asked gets RoleFailed, or the host does, whose scenario may then end with
    that. Counted as `failed`, `handled` if the role went on, `failed while cut`, or `met nobody`.
    """
    return lambda conversation: Failure(conversation, role)


def count_moments(scenario: Scenario, seed: int = 0, limit: float = TIME_LIMIT) -> int:
    """How many moments the undisturbed scenario has, from `watch` on. Raises InvariantBroken if it is broken itself."""
    moments = Moments(None, -1)
    _run(scenario, moments, seed, limit)
    return moments.count


def run_interrupted(scenario: Scenario, inject: Inject, seed: int, moment: int, limit: float = TIME_LIMIT) -> list[str]:
    """One run, with an interruption at one moment; what became of the words. Raises InvariantBroken."""
    moments = Moments(inject, moment)
    _run(scenario, moments, seed, limit, Holdings.now())
    return _outcomes(moments)


def _run(scenario: Scenario, moments: Moments, seed: int, limit: float, before: Holdings | None = None) -> None:
    """`before` is what was open; without it nothing but tasks counts as left: a first run may open what all share."""
    left: list[str] = []

    async def main() -> None:
        there = set(tasks())
        try:
            await scenario(moments.watch)
        finally:
            left.extend(f"task {task.name}" for task in tasks() if task not in there)

    failure: BaseException | None = None
    try:
        run_seeded(main, seed, [moments], limit)
    except Exception as error:
        failure = error
    left += before.left_behind() if before is not None else []
    breaches = moments.judge(sorted(left))
    if (moments.at + 1 + seed) % LOADED == 0:
        breaches += [Breach(Invariant.LOADS, change) for change in moments.find_change()]
    failure = moments.error or failure
    if failure is not None and not any(one.caused(failure) for one in moments.failures):
        breaches.append(Breach(Invariant.HOST_UNHARMED, f"the scenario raised {failure!r}"))
    if breaches:
        where = "undisturbed" if moments.at < 0 else f"moment {moments.at}"
        raise InvariantBroken(f"seed {seed}, {where}", breaches) from failure


def _outcomes(moments: Moments) -> list[str]:
    return [*map(_outcome, moments.receipts), *(failure.outcome for failure in moments.failures)]


def _outcome(receipt: Receipt) -> str:
    words = receipt._words
    return words.settled or words.action if words.action in ("intervened", "missed") else words.action


def _sampled(moments: int, sample: int | None, seed: int) -> Iterable[int]:
    if sample is None or sample >= moments:
        return range(moments)
    first = random.Random(seed).random()
    return [int((number + first) * moments / sample) for number in range(sample)]
