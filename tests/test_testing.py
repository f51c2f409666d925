"""Testing: seeded runs are repeatable, and `every_interrupt_point` says what it found and where."""

import json
import os
import subprocess
import sys

import pytest
import trio
import trio._core._run as trio_run

from callboard.runtime.conversation import Conversation
from callboard.runtime.opening import open_conversation
from callboard.runtime.testing import (
    InterruptReport,
    InvariantBroken,
    Watch,
    count_moments,
    every_interrupt_point,
    interrupt,
    run_interrupted,
    run_seeded,
)
from tests.scenarios import SCENARIOS, Planner, Worker, the_bell

PRINT_A_TRANSCRIPT = """
import json
from callboard.runtime.testing import run_seeded
from tests.test_testing import interrupted_transcript
print(json.dumps(run_seeded(interrupted_transcript, 7)))
"""


async def interrupted_transcript() -> object:
    """What memory holds of a round with three workers that is interrupted."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(the_bell.ring, [])
        async with open_conversation(Planner("boss", Worker("a"), Worker("b"), Worker("c"))) as conversation:
            started = conversation.communicate("q")
            await trio.sleep(0.25)
            conversation.intervene("x", broadcast_level=2)
            await started.reply()
        nursery.cancel_scope.cancel()
    return conversation.transcript().to_dict()


async def fail(watch: Watch) -> None:
    """A scenario that fails by itself."""
    async with open_conversation(Worker()) as conversation:
        watch(conversation)
        raise ValueError("no such thing")


def test_one_seed_gives_one_transcript() -> None:
    first = run_seeded(interrupted_transcript, 3)
    assert run_seeded(interrupted_transcript, 3) == first


def test_seeds_give_different_schedules() -> None:
    assert len({json.dumps(run_seeded(interrupted_transcript, seed)) for seed in range(10)}) > 1


def test_a_transcript_does_not_depend_on_the_process() -> None:
    printed = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", PRINT_A_TRANSCRIPT]
        printed.add(subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60).stdout)
    assert len(printed) == 1 and b"intervention" in printed.pop()


def test_the_scheduler_is_as_it_was_after_a_seeded_run() -> None:
    allowed, state = trio_run._ALLOW_DETERMINISTIC_SCHEDULING, trio_run._r.getstate()
    run_seeded(interrupted_transcript, 3)
    assert (trio_run._ALLOW_DETERMINISTIC_SCHEDULING, trio_run._r.getstate()) == (allowed, state)


def test_a_run_that_hangs_ends_at_its_limit() -> None:
    with pytest.raises(trio.TooSlowError):
        run_seeded(trio.sleep_forever, limit=10)


def test_a_trio_that_cannot_be_seeded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(trio_run, "_r")
    with pytest.raises(RuntimeError, match=r"trio .* cannot be seeded"):
        run_seeded(interrupted_transcript)


def test_every_moment_is_tried_unless_a_sample_is_asked_for() -> None:
    moments = count_moments(SCENARIOS["depth 1"])
    assert every_interrupt_point(SCENARIOS["depth 1"]).runs == moments > 30
    assert every_interrupt_point(SCENARIOS["depth 1"], seeds=range(3), sample=4).runs == 12


def test_a_report_reads_as_a_sentence() -> None:
    report = every_interrupt_point(SCENARIOS["depth 1"], sample=6)
    assert str(report).startswith("6 runs over 1 seeds: ")
    assert str(InterruptReport()) == "0 runs over 0 seeds: nothing injected"


def test_a_scenario_that_fails_by_itself_is_broken_before_anything_is_injected() -> None:
    with pytest.raises(InvariantBroken, match=r"seed 0, undisturbed: .*no such thing") as broken:
        every_interrupt_point(fail)
    assert isinstance(broken.value.__cause__, ValueError)


def test_an_injection_that_fails_is_reported() -> None:
    def inject(conversation: Conversation) -> None:
        raise KeyError("typo")

    with pytest.raises(InvariantBroken, match="typo"):
        run_interrupted(SCENARIOS["depth 1"], inject, seed=0, moment=5)


def test_a_verb_that_is_refused_injects_nothing() -> None:
    last = count_moments(SCENARIOS["depth 1"]) - 1
    assert run_interrupted(SCENARIOS["depth 1"], lambda conversation: conversation.communicate("x"), 0, last) == []


def test_the_outcome_of_every_receipt_is_given() -> None:
    assert run_interrupted(SCENARIOS["depth 2"], interrupt(1, times=2), 0, 40) == ["seen", "seen"]
