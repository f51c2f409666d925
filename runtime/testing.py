"""Testing: deterministic runs of conversations, and interruptions at every moment of one.

A moment lies between two task steps, a step being what trio runs of one task between two of its checkpoints, or at the
end of a batch, before the clock may move: everywhere another task could have called a verb. An instrument calls it
there. It adds no task and draws no random number, so the run up to there is the one that was counted.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import trio
import trio._core._run as trio_run
from trio.testing import MockClock

from .conversation import Conversation
from .errors import CallboardError
from .ids import Ids, current_ids
from .receipt import Receipt
from .referee import Breach, Invariant, Referee

T = TypeVar("T")
Watch = Callable[[Conversation], Conversation]
Scenario = Callable[[Watch], Awaitable[object]]
"""Opens a conversation, hands it to `watch` (which gives it back), and uses it as its host would."""
Inject = Callable[[Conversation], object]
"""Calls verbs at the chosen moment; gives the receipt, or a list of them, for the referee to look at."""

EPOCH = 1_700_000_000_000_000
"""What the virtual clock's zero is called in ids and times, in microseconds."""
TIME_LIMIT = 600.0
"""Virtual seconds after which a run counts as hung."""


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
    """How the words ended: seen, told, missed, or started a round."""

    def __str__(self) -> str:
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        return f"{self.runs} runs over {self.seeds} seeds: {outcomes or 'nothing injected'}"


def run_seeded(
    main: Callable[[], Awaitable[T]],
    seed: int = 0,
    instruments: Sequence[trio.abc.Instrument] = (),
    limit: float = TIME_LIMIT,
) -> T:
    """Runs an async function on a virtual clock; the order of tasks, the ids and the times depend on the seed alone.

    Waiting costs no time: when every task waits, the clock jumps. Raises what the function raises, trio.TooSlowError
    after `limit` virtual seconds, RuntimeError for a trio whose scheduler can no longer be seeded.
    """

    async def limited() -> T:
        with trio.fail_after(limit):
            return await main()

    if not hasattr(trio_run, "_ALLOW_DETERMINISTIC_SCHEDULING") or not hasattr(trio_run, "_r"):
        raise RuntimeError(f"the scheduler of trio {trio.__version__} cannot be seeded the way this module knows")
    seeded, state = trio_run._ALLOW_DETERMINISTIC_SCHEDULING, trio_run._r.getstate()
    trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]  # a constant of trio's, for tests to set
    trio_run._r.seed(seed)
    clock = MockClock(autojump_threshold=0)
    variables = copy_context()
    variables.run(current_ids.set, Ids(lambda: EPOCH + round(clock.current_time() * 1_000_000)))
    try:
        return variables.run(partial(trio.run, limited, clock=clock, instruments=instruments))
    finally:
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING = seeded  # type: ignore[misc]  # as above
        trio_run._r.setstate(state)


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
        for moment in _sampled(moments, sample, seed):
            for outcome in run_interrupted(scenario, inject, seed, moment, limit):
                report.outcomes[outcome] += 1
            report.runs += 1
    return report


def interrupt(level: int, times: int = 1, **options: Any) -> Inject:
    """An injection: so many interventions of that level in a row, in one step."""
    return lambda conversation: [
        conversation.intervene(f"words {number}", broadcast_level=level, **options) for number in range(times)
    ]


def count_moments(scenario: Scenario, seed: int = 0, limit: float = TIME_LIMIT) -> int:
    """How many moments the undisturbed scenario has, from `watch` on. Raises InvariantBroken if it is broken itself."""
    moments = _Moments(None, -1)
    _run(scenario, moments, seed, limit)
    return moments.count


def run_interrupted(scenario: Scenario, inject: Inject, seed: int, moment: int, limit: float = TIME_LIMIT) -> list[str]:
    """One run, with an interruption at one moment; what became of the words. Raises InvariantBroken."""
    moments = _Moments(inject, moment)
    _run(scenario, moments, seed, limit)
    return [_outcome(receipt) for receipt in moments.receipts]


class _Moments(trio.abc.Instrument):
    """Counts moments from the opening of the watched conversation on; calls `inject` at the chosen one."""

    def __init__(self, inject: Inject | None, at: int) -> None:
        self.count = 0
        self.receipts: list[Receipt] = []
        self.injected_at = 0.0
        self.referee: Referee | None = None
        self.error: BaseException | None = None
        self._inject = inject
        self.at = at
        self._conversation: Conversation | None = None

    def watch(self, conversation: Conversation) -> Conversation:
        self._conversation = conversation
        self.referee = Referee(conversation)
        conversation._router.events.subscribe(self.referee)
        return conversation

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._moment()

    def before_io_wait(self, timeout: float) -> None:
        self._moment()

    def _moment(self) -> None:
        if self._conversation is None:
            return
        if self.count == self.at and self._inject is not None:
            self.injected_at = trio.current_time()
            try:
                receipts = self._inject(self._conversation)
            except CallboardError:
                pass  # refused, as to a host that speaks when the conversation has closed: nothing was injected
            except BaseException as error:  # trio would only log it and drop the instrument
                self.error = error
            else:
                found = receipts if isinstance(receipts, list) else [receipts]
                self.receipts = [receipt for receipt in found if isinstance(receipt, Receipt)]
        self.count += 1


def _run(scenario: Scenario, moments: _Moments, seed: int, limit: float) -> None:
    async def main() -> None:
        await scenario(moments.watch)

    failure: BaseException | None = None
    try:
        run_seeded(main, seed, [moments], limit)
    except Exception as error:
        failure = error
    referee = moments.referee
    breaches = referee.judge(moments.receipts, moments.injected_at) if referee is not None else []
    failure = moments.error or failure
    if failure is not None:
        breaches.append(Breach(Invariant.HOST_UNHARMED, f"the scenario raised {failure!r}"))
    if breaches:
        where = "undisturbed" if moments.at < 0 else f"moment {moments.at}"
        raise InvariantBroken(f"seed {seed}, {where}", breaches) from failure


def _outcome(receipt: Receipt) -> str:
    words = receipt._words
    return words.settled or words.action if words.action in ("intervened", "missed") else words.action


def _sampled(moments: int, sample: int | None, seed: int) -> Iterable[int]:
    if sample is None or sample >= moments:
        return range(moments)
    first = random.Random(seed).random()
    return [int((number + first) * moments / sample) for number in range(sample)]
