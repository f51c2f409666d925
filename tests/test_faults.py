"""The tester is tested: each planted fault, alone in the core, is caught by the invariant that was made for it.

`python -m tests.plant_faults` finds them without being told where; here they are looked for where it has found them.
"""

import re
from collections.abc import Callable
from functools import partial
from itertools import islice, product
from pathlib import Path

import pytest

from callboard.runtime.testing import InvariantBroken, every_interrupt_point, run_interrupted
from tests import plant_faults
from tests.injections import INJECTIONS
from tests.plant_faults import LIMIT, UNDISTURBED, Finding, find, walk
from tests.planted_faults import FAULTS, Fault
from tests.scenarios import SCENARIOS

FOUND = {finding.fault: finding for finding in plant_faults.read()}
THE_TWELVE = [
    "words_written_at_the_cut",
    "no_recall",
    "no_join",
    "scope_reused",
    "not_aimed_again",
    "partial_after_intervention",
    "draft_dropped",
    "budget_reset",
    "mailbox_recall_forgotten",
    "double_record",
    "background_child_left",
    "receipt_too_early",
]
MOST_RUNS = 2000


def runs_of(finding: Finding) -> list[Callable[[], object]]:
    """The run that showed it; and, for a core whose moments have moved since, all others of its seed."""
    scenario, inject = SCENARIOS[finding.scenario], INJECTIONS[finding.injection]
    one = partial(run_interrupted, scenario, inject, finding.seed, finding.moment, LIMIT)
    return [one, partial(every_interrupt_point, scenario, inject, seeds=[finding.seed], limit=LIMIT)]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_in_the_core_is_caught(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    for run in runs_of(FOUND[fault.__name__]):
        try:
            run()
        except InvariantBroken as broken:
            assert FAULTS[fault] & {breach.invariant for breach in broken.breaches}, broken
            return
    pytest.fail(f"{fault.__name__} is not caught where it was; python -m tests.plant_faults --write looks anew")


def test_the_core_as_it_is_passes_the_same_runs() -> None:
    for finding in FOUND.values():
        runs_of(finding)[0]()


def test_the_page_has_every_fault_with_an_invariant_that_is_to_catch_it() -> None:
    assert [*FOUND] == [fault.__name__ for fault in FAULTS]
    for fault, invariants in FAULTS.items():
        assert FOUND[fault.__name__].invariant in {invariant.name for invariant in invariants}
    assert [*FOUND][:12] == THE_TWELVE


def test_each_was_found_within_two_thousand_runs() -> None:
    assert max(finding.runs for finding in FOUND.values()) <= MOST_RUNS
    assert all(finding.moment >= UNDISTURBED for finding in FOUND.values())


def test_what_is_no_fault_is_not_found() -> None:
    assert find(lambda patch: None, runs=5) is None


def test_a_fault_is_found_on_the_walk() -> None:
    first = next(iter(FAULTS))
    finding = find(first, MOST_RUNS)
    assert finding is not None
    assert finding.invariant in {invariant.name for invariant in FAULTS[first]}


def test_a_round_of_the_walk_goes_everywhere_and_ties_no_injection_to_a_moment() -> None:
    steps = list(islice(walk(), len(SCENARIOS) * len(INJECTIONS)))
    assert {(scenario, injection) for _, scenario, injection, _ in steps} == set(product(SCENARIOS, INJECTIONS))
    for injection in INJECTIONS:
        assert {int(10 * part) for _, _, other, part in steps if other == injection} == set(range(10))


def test_written_is_what_was_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = plant_faults.PAGE.read_text("utf-8")
    findings = plant_faults.read()
    monkeypatch.setattr(plant_faults, "PAGE", tmp_path / "page.md")
    plant_faults.PAGE.write_text(re.sub(r"(?m)^\| no_join .*\n", "", page), "utf-8")
    plant_faults.write(findings)
    assert plant_faults.PAGE.read_text("utf-8") == page
