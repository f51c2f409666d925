"""Faults that can be put into the core, each by one function, with the invariants one of which must catch it.

Those up to `receipt_too_early` are the ones that the rules of interruption exist for; the others are variants, or break
what pauses, steps, blocks and the line promise.
"""

from collections.abc import Callable, Iterable

import pytest
import trio

from callboard.runtime import attempt
from callboard.runtime.aim import Aim
from callboard.runtime.call import Call
from callboard.runtime.draft import Unfinished
from callboard.runtime.errors import CallboardError
from callboard.runtime.event import WordsSettled
from callboard.runtime.gate import Gate
from callboard.runtime.intervention import Interventions
from callboard.runtime.limits import Budget, Limits
from callboard.runtime.line import Line
from callboard.runtime.post import Post
from callboard.runtime.receipt import Receipt, Stopped
from callboard.runtime.referee import Invariant
from callboard.runtime.router import Router
from callboard.runtime.turn import Turn
from callboard.runtime.working_time import WorkingTime

Patch = pytest.MonkeyPatch
Fault = Callable[[Patch], None]


def words_written_at_the_cut(patch: Patch) -> None:
    cut = Interventions._cut

    def write_first(self: Interventions, aim: Aim, top: Turn) -> None:
        self._place(aim.words, top.role)
        cut(self, aim, top)

    patch.setattr(Interventions, "_cut", write_first)


def no_recall(patch: Patch) -> None:
    patch.setattr(Router, "_recall_below", lambda self, turn: [])


def no_join(patch: Patch) -> None:
    async def abandon(self: Router, turn: Turn) -> None:
        self.recall(turn)

    async def wait(self: Turn, on_cancelled: Callable[[], None]) -> None:
        await self._over.wait()

    patch.setattr(Router, "_abandon", abandon)
    patch.setattr(Turn, "wait_through", wait)


def scope_reused(patch: Patch) -> None:
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


def partial_after_intervention(patch: Patch) -> None:
    settle = attempt.Attempts._settle_cut

    def settle_late(self: attempt.Attempts, turn: Turn, *errors: Exception) -> None:
        for words in turn.pending:
            self._interventions._place(words, turn.role)
        settle(self, turn, *errors)

    patch.setattr(attempt.Attempts, "_settle_cut", settle_late)


def draft_dropped(patch: Patch) -> None:
    patch.setattr(attempt, "_seal", lambda turn: Unfinished())


def budget_reset(patch: Patch) -> None:
    begin = attempt.Attempts._begin

    def begin_afresh(self: attempt.Attempts, turn: Turn) -> trio.CancelScope:
        if turn.attempts:
            turn.budget = Budget(turn.budget._limits, self._router.time.now(), turn.budget._parent)
        return begin(self, turn)

    patch.setattr(attempt.Attempts, "_begin", begin_afresh)


def mailbox_recall_forgotten(patch: Patch) -> None:
    recall = Router.recall

    def leave_in_mailbox(self: Router, turn: Turn, error: Exception | None = None) -> list[Turn]:
        was_queued = turn.state == "queued" and turn.post.marks.kind != "question"
        variables = turn.variables.copy()
        ended = recall(self, turn, error)
        entry = self.directory.entry_of(turn.role)
        if was_queued and turn.asker is not None and not entry.mailbox.closed:
            left = Turn(turn.post, turn.asker, variables, foreground=turn.foreground, budget=turn.budget)
            self.turns[left] = None
            self.admit(left, entry)
        return ended

    patch.setattr(Router, "recall", leave_in_mailbox)


def double_record(patch: Patch) -> None:
    keep = attempt.Attempts._keep_draft

    def keep_twice(self: attempt.Attempts, turn: Turn) -> list[Post]:
        kept = keep(self, turn)
        for post in kept:
            self._router.record(post)
        return kept

    patch.setattr(attempt.Attempts, "_keep_draft", keep_twice)


def background_child_left(patch: Patch) -> None:
    def break_off(self: Line, error: Exception) -> None:
        self._breaking = self._current is not None
        for turn in list(self._router.turns):
            if turn.asker is None and turn.report_to is None:
                self._router.recall(turn, error)

    patch.setattr(Line, "break_off", break_off)


def receipt_too_early(patch: Patch) -> None:
    cut = Interventions._cut

    def cut_and_be_done(self: Interventions, aim: Aim, top: Turn) -> None:
        cut(self, aim, top)
        aim.words.leaving = 0
        for turn in self._router.turns:
            turn.causes = tuple(words for words in turn.causes if words is not aim.words)

    patch.setattr(Interventions, "_cut", cut_and_be_done)


def stopped_at_once(patch: Patch) -> None:
    async def stopped(self: Receipt) -> Stopped:
        await trio.lowlevel.checkpoint()
        return Stopped(tuple(self._words.kept), tuple(self._words.abandoned), tuple(self._words.errors))

    patch.setattr(Receipt, "stopped", stopped)


def settled_with_the_first_turn(patch: Patch) -> None:
    ended = Interventions.turn_ended

    def settle(self: Interventions, turn: Turn) -> None:
        for aim in self._aims.values():
            if aim.words.action == "intervened":
                aim.words.settled = aim.words.outcome()
                self._router.events.publish(WordsSettled(aim.words.id, aim.words.settled))
        ended(self, turn)

    patch.setattr(Interventions, "turn_ended", settle)


def seen_before_it_is_read(patch: Patch) -> None:
    fulfil = Interventions._fulfil

    def fulfil_and_say_so(self: Interventions, aim: Aim, turn: Turn, finished: bool) -> None:
        fulfil(self, aim, turn, finished)
        self.saw(turn.role, [aim.words.id])

    patch.setattr(Interventions, "_fulfil", fulfil_and_say_so)


def background_not_waited_for(patch: Patch) -> None:
    def idle(self: Line) -> bool:
        awaited = [turn for turn in self._router.turns if turn.report_to is None]
        return self._current is None and not awaited and (self._held or not self._waiting)

    patch.setattr(Line, "idle", property(idle))


def round_ended_over_background_work(patch: Patch) -> None:
    def turn_ended(self: Line, turn: Turn) -> None:
        if turn is self._turn:
            self._turn = turn.successor
            if self._turn is None:
                self._root_ended(turn)
        if self._result is not None:
            self._end(self._result)
            self._begin_next()
        self._look_if_idle()

    patch.setattr(Line, "turn_ended", turn_ended)


def child_budget_apart(patch: Patch) -> None:
    make = Budget.__init__

    def make_apart(self: Budget, limits: Limits, now: float = 0.0, parent: Budget | None = None) -> None:
        make(self, limits, now)

    patch.setattr(Budget, "__init__", make_apart)


def deadline_begins_anew(patch: Patch) -> None:
    limit = WorkingTime.limit
    seconds: dict[float, float] = {}

    def limit_from_now_on(self: WorkingTime, scope: trio.CancelScope, deadline: float) -> None:
        limit(self, scope, self.now() + seconds.setdefault(deadline, deadline - self.now()))

    patch.setattr(WorkingTime, "limit", limit_from_now_on)


def deadline_runs_on_in_a_pause(patch: Patch) -> None:
    patch.setattr(WorkingTime, "stand_still", lambda self: None)
    patch.setattr(WorkingTime, "go_on", lambda self: None)


def words_recorded_twice(patch: Patch) -> None:
    fulfil = Interventions._fulfil

    def fulfil_twice(self: Interventions, aim: Aim, turn: Turn, finished: bool) -> None:
        fulfil(self, aim, turn, finished)
        aim.words.placed.clear()
        self._place(aim.words, turn.role)

    patch.setattr(Interventions, "_fulfil", fulfil_twice)


def words_in_the_order_of_their_aims(patch: Patch) -> None:
    ended = Interventions.attempt_ended

    def renumbered(
        self: Interventions, turn: Turn, finished: bool, kept: Iterable[Post], errors: Iterable[Exception] = ()
    ) -> None:
        for number, words in enumerate(turn.pending):
            self._aims[words.id].number = number
        ended(self, turn, finished, kept, errors)

    patch.setattr(Interventions, "attempt_ended", renumbered)


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

    def forget(self: Call) -> None:
        if self._outcome != "interrupted":
            end(self)

    patch.setattr(Call, "_end", forget)


def pause_inside_a_block(patch: Patch) -> None:
    patch.setattr(Gate, "stops", lambda self, turn: self.paused or turn.holds > 0)


def pause_not_heeded(patch: Patch) -> None:
    patch.setattr(Gate, "stops", lambda self, turn: turn.holds > 0 and not turn.shields)


def questions_left_open(patch: Patch) -> None:
    def recall_below(self: Router, turn: Turn) -> list[Turn]:
        return [cut for below in list(() if turn.shields else turn.waits) for cut in self.recall(below)]

    patch.setattr(Router, "_recall_below", recall_below)


def step_ended_by_words_that_wait_for_it(patch: Patch) -> None:
    patch.setattr(Aim, "may_go", lambda self, router: True)


def holds_not_lifted(patch: Patch) -> None:
    patch.setattr(Aim, "let_go", lambda self, router: self.captured.clear())


def queued_round_lost_at_stop(patch: Patch) -> None:
    end_all = Line.end_all

    def end_all_in_line(self: Line, error: CallboardError) -> None:
        for request in self._waiting:
            request.outlasts_stop = False
        end_all(self, error)

    patch.setattr(Line, "end_all", end_all_in_line)


FAULTS: dict[Fault, set[Invariant]] = {
    words_written_at_the_cut: {Invariant.ACCEPT_THEN_CUT},
    no_recall: {Invariant.RECALLED},
    no_join: {Invariant.ALONE, Invariant.RECALLED},
    scope_reused: {Invariant.ONE_SCOPE},
    not_aimed_again: {Invariant.NOTHING_LOST},
    partial_after_intervention: {Invariant.ACCEPT_THEN_CUT},
    draft_dropped: {Invariant.NOTHING_LOST},
    budget_reset: {Invariant.BUDGETS},
    mailbox_recall_forgotten: {Invariant.RECALLED, Invariant.ONE_ANSWER},
    double_record: {Invariant.NOTHING_LOST},
    background_child_left: {Invariant.ENDS},
    receipt_too_early: {Invariant.RECEIPTS},
    stopped_at_once: {Invariant.HOST_UNHARMED},
    settled_with_the_first_turn: {Invariant.RECEIPTS},
    seen_before_it_is_read: {Invariant.RECEIPTS},
    background_not_waited_for: {Invariant.ENDS},
    round_ended_over_background_work: {Invariant.ENDS},
    child_budget_apart: {Invariant.BUDGETS},
    deadline_begins_anew: {Invariant.BUDGETS},
    deadline_runs_on_in_a_pause: {Invariant.BUDGETS},
    words_recorded_twice: {Invariant.NOTHING_LOST},
    words_in_the_order_of_their_aims: {Invariant.BOUNDARIES},
    by_products_taken_for_failures: {Invariant.HOST_UNHARMED},
    cancelling_inside_out: {Invariant.ONCE, Invariant.HOST_UNHARMED},
    recalled_turns_start_again: {Invariant.RECALLED},
    cut_before_accepted: {Invariant.ACCEPT_THEN_CUT},
    outcome_forgotten: {Invariant.CALLS},
    pause_inside_a_block: {Invariant.HOST_UNHARMED},
    pause_not_heeded: {Invariant.BOUNDARIES},
    questions_left_open: {Invariant.ENDS},
    step_ended_by_words_that_wait_for_it: {Invariant.BOUNDARIES},
    holds_not_lifted: {Invariant.HOST_UNHARMED},
    queued_round_lost_at_stop: {Invariant.ENDS},
}
