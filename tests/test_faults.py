"""The tester is tested: each of these faults, put into the core alone, is caught by `every_interrupt_point`."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import trio

from callboard.runtime import attempt
from callboard.runtime.aim import Aim
from callboard.runtime.call import Call
from callboard.runtime.draft import Unfinished
from callboard.runtime.intervention import Interventions
from callboard.runtime.referee import Invariant
from callboard.runtime.router import Router
from callboard.runtime.testing import InvariantBroken, every_interrupt_point
from callboard.runtime.turn import Turn
from tests.injections import INJECTIONS
from tests.scenarios import SCENARIOS

Patch = pytest.MonkeyPatch


def words_written_at_the_cut(patch: Patch) -> None:
    cut = Interventions._cut

    def write_first(self: Interventions, aim: Aim, top: Turn) -> None:
        self._place(aim.words, top.role)
        cut(self, aim, top)

    patch.setattr(Interventions, "_cut", write_first)


def no_recall_below(patch: Patch) -> None:
    patch.setattr(Router, "_recall_below", lambda self, turn: [])


def no_join(patch: Patch) -> None:
    async def abandon(self: Router, turn: Turn) -> None:
        self.recall(turn)

    async def wait(self: Turn, on_cancelled: Callable[[], None]) -> None:
        await self._over.wait()

    patch.setattr(Router, "_abandon", abandon)
    patch.setattr(Turn, "wait_through", wait)


def scope_used_again(patch: Patch) -> None:
    begin = Turn.begin

    def begin_again(self: Turn) -> trio.CancelScope:
        old = self.scope
        new = begin(self)
        self.scope = old or new
        return new

    patch.setattr(Turn, "begin", begin_again)


def not_aimed_again(patch: Patch) -> None:
    ended = Interventions.turn_ended

    def forget(self: Interventions, turn: Turn) -> None:
        self._late.clear()
        ended(self, turn)

    patch.setattr(Interventions, "turn_ended", forget)


def draft_dropped(patch: Patch) -> None:
    patch.setattr(attempt, "_seal", lambda turn: Unfinished())


def words_before_the_partial_post(patch: Patch) -> None:
    settle = attempt.Attempts._settle_cut

    def settle_late(self: attempt.Attempts, turn: Turn, *errors: Exception) -> None:
        for words in turn.pending:
            self._interventions._place(words, turn.role)
        settle(self, turn, *errors)

    patch.setattr(attempt.Attempts, "_settle_cut", settle_late)


def words_recorded_twice(patch: Patch) -> None:
    fulfil = Interventions._fulfil

    def fulfil_twice(self: Interventions, aim: Aim, turn: Turn, finished: bool) -> None:
        fulfil(self, aim, turn, finished)
        aim.words.placed.clear()
        self._place(aim.words, turn.role)

    patch.setattr(Interventions, "_fulfil", fulfil_twice)


def by_products_taken_for_failures(patch: Patch) -> None:
    patch.setattr(attempt, "while_cancelled", lambda error: False)


def cancelling_inside_out(patch: Patch) -> None:
    def interrupt(self: Router, turn: Turn, reason: str) -> list[Turn]:
        below = self._recall_below(turn)
        turn.interrupt(reason)
        return [turn, *below]

    patch.setattr(Router, "interrupt", interrupt)


def recalled_turns_start_again(patch: Patch) -> None:
    settle = attempt.Attempts._settle_cut

    def settle_and_forget(self: attempt.Attempts, turn: Turn, *errors: Exception) -> None:
        settle(self, turn, *errors)
        turn.recalled = turn.recalled and turn.attempts > 1

    patch.setattr(attempt.Attempts, "_settle_cut", settle_and_forget)


def cut_before_accepted(patch: Patch) -> None:
    patch.setattr(Interventions, "_accepted", lambda self, words: None)


def outcome_forgotten(patch: Patch) -> None:
    end = Call._end

    def forget(self: Call, detail: Mapping[str, Any]) -> None:
        if self._outcome != "interrupted":
            end(self, detail)

    patch.setattr(Call, "_end", forget)


FAULTS: dict[Callable[[Patch], None], set[Invariant]] = {
    words_written_at_the_cut: {Invariant.ACCEPT_THEN_CUT},
    words_before_the_partial_post: {Invariant.ACCEPT_THEN_CUT},
    cut_before_accepted: {Invariant.ACCEPT_THEN_CUT},
    no_recall_below: {Invariant.RECALLED},
    recalled_turns_start_again: {Invariant.RECALLED},
    no_join: {Invariant.ALONE},
    outcome_forgotten: {Invariant.CALLS},
    scope_used_again: {Invariant.ONE_SCOPE},
    by_products_taken_for_failures: {Invariant.HOST_UNHARMED},
    cancelling_inside_out: {Invariant.ONCE, Invariant.HOST_UNHARMED},
    not_aimed_again: {Invariant.NOTHING_LOST},
    draft_dropped: {Invariant.NOTHING_LOST},
    words_recorded_twice: {Invariant.NOTHING_LOST},
}
LIKELY = ("depth 3", "tools", "a shared worker", "clean-up that raises", "several leaves", "cleans up for five seconds")
MOST_RUNS = 2000


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_in_the_core_is_caught(fault: Callable[[Patch], None], monkeypatch: Patch) -> None:
    fault(monkeypatch)
    runs = 0
    for name in LIKELY:
        for injection in ("level 2", "1, 1", "level 1"):
            try:
                runs += every_interrupt_point(SCENARIOS[name], INJECTIONS[injection], limit=60).runs
            except InvariantBroken as broken:
                assert FAULTS[fault] & {breach.invariant for breach in broken.breaches}, broken
                assert runs < MOST_RUNS
                return
    pytest.fail(f"{runs} runs went well over {fault.__name__}")


def test_the_core_as_it_is_passes_the_same_runs() -> None:
    for name in LIKELY:
        assert every_interrupt_point(SCENARIOS[name], INJECTIONS["level 2"], sample=20).runs == 20
