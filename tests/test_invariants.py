"""The invariants of interruption, each a test of its name, at a moment of every scenario with every fourth injection.

`python -m tests.prove` runs every moment of as many schedules as one likes.
"""

from collections import Counter
from dataclasses import dataclass, field

import pytest

from callboard.runtime.referee import Invariant
from callboard.runtime.testing import InvariantBroken, every_interrupt_point
from tests.injections import INJECTIONS
from tests.scenarios import SCENARIOS

pytestmark = pytest.mark.timeout(600)  # the first test waits for all runs, which a busy machine makes long

PAIRS = [
    (name, injection, column)
    for row, name in enumerate(SCENARIOS)
    for column, injection in enumerate(INJECTIONS)
    if (row + column) % 4 == 0
]


@dataclass
class Verdicts:
    """What all runs showed."""

    runs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    breaches: dict[Invariant, list[str]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def verdicts() -> Verdicts:
    """Every scenario with every fourth injection; the runs are shared by the tests below."""
    verdicts = Verdicts()
    for name, injection, seed in PAIRS:
        try:
            report = every_interrupt_point(SCENARIOS[name], INJECTIONS[injection], seeds=(seed,), sample=1, limit=60)
        except InvariantBroken as broken:
            for breach in broken.breaches:
                verdicts.breaches.setdefault(breach.invariant, []).append(f"{name}, {injection}: {broken}")
        else:
            verdicts.runs += report.runs
            verdicts.outcomes += report.outcomes
    return verdicts


def test_accept_then_cut_record_then_begin(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.ACCEPT_THEN_CUT)


def test_an_abandoned_ask_is_a_recalled_request(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.RECALLED)


def test_no_attempt_beside_an_old_one(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.ALONE)


def test_one_scope_an_attempt(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.ONE_SCOPE)


def test_the_highest_interrupted_turn_of_a_chain_starts_again_once(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.ONCE)


def test_one_answer(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.ONE_ANSWER)


def test_clean_up_that_raises_does_not_fail_the_turn(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.CLEAN_UP)


def test_an_interruption_never_makes_the_hosts_program_fail(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.HOST_UNHARMED)


def test_no_call_stays_without_an_outcome(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.CALLS)


def test_no_message_is_lost(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.NOTHING_LOST)


def test_nothing_is_left_behind(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.NOTHING_LEFT)


def test_order_is_kept(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.ORDER_KEPT)


def test_a_transcript_that_is_written_loads_again(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.LOADS)


def test_a_budget_never_grows(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.BUDGETS)


def test_an_end_ends_all(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.ENDS)


def test_a_receipt_is_not_early(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.RECEIPTS)


def test_what_waits_takes_hold_at_a_boundary(verdicts: Verdicts) -> None:
    assert not verdicts.breaches.get(Invariant.BOUNDARIES)


def test_the_runs_reach_every_outcome(verdicts: Verdicts) -> None:
    assert verdicts.runs == len(PAIRS)
    assert set(verdicts.outcomes) >= {"seen", "told", "missed", "started"}
