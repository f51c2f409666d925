"""Failure: one error on its way into one running attempt, and who may get it.

It is raised where the attempt waits, as trio raises KeyboardInterrupt: through the abort function of that wait. So it
leaves the wait as a cancellation would, at a place where the role could have failed by itself, and no code of the
runtime takes part. An attempt whose task is about to run, or whose wait cannot be left, fails at its next wait that
can. The runtime's own wait for recalled work is none: nothing fails there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NoReturn

from trio.lowlevel import Task

from .conversation import Conversation
from .router import Router
from .turn import Turn, current_turn

FailureOutcome = Literal["failed", "handled", "failed while cut", "met nobody"]


class InjectedFailure(Exception):
    """What `fail` lets an attempt raise; nobody's fault."""


class Failure:
    """Chosen at one moment; `raised` once the attempt has got it."""

    def __init__(self, conversation: Conversation, role: str | None) -> None:
        self._router = conversation._router
        self.error = InjectedFailure("injected")
        self.turn = _chosen(self._router, role)
        """The turn whose running attempt fails; None with nothing running."""
        self.raised = False
        self._attempt = self.turn.attempts if self.turn is not None else 0
        self._cut = False

    @property
    def pending(self) -> bool:
        """Whether the attempt runs and has not got it."""
        turn = self.turn
        running = turn is not None and turn.state == "running" and turn.attempts == self._attempt
        return running and not self.raised

    def deliver(self, task: Task) -> None:
        """Raises it in the attempt's task, if that is in a wait which can be left. Called between two task steps."""
        assert self.turn is not None, "only what is pending is delivered"
        at_home = task.context.get(current_turn) is self.turn  # else it answers a question inside its ask
        if at_home and task._abort_func is not None and not _joins(task):
            self._cut = self.turn.cut
            task._attempt_abort(self._raise)

    @property
    def outcome(self) -> FailureOutcome:
        """What became of it: the turn failed, the role went on, its attempt was cut anyway, or nothing ran."""
        if self.turn is None or not self.raised:
            return "met nobody"
        if self.caused(self.turn.result):
            return "failed"
        return "failed while cut" if self._cut or self.turn.cut or self.turn.recalled else "handled"

    def caused(self, error: object) -> bool:
        """Whether an error was raised from this one, or while it was on its way."""
        waiting, seen = [error], set()
        while waiting:
            above = waiting.pop()
            if above is self.error:
                return True
            if isinstance(above, BaseException) and id(above) not in seen:
                seen.add(id(above))
                waiting += [above.__cause__, above.__context__]
                waiting += above.exceptions if isinstance(above, BaseExceptionGroup) else ()
        return False

    def find_faults(self, turns: Iterable[Turn]) -> Iterator[str]:
        """What is wrong with the end of it, if anything is. `turns` are all that were begun."""
        turn = self.turn
        if turn is None or not self.raised:
            return
        if self.outcome == "failed" and turn.asked:
            account = turn.account
            told = account is not None and account.marks.kind == "error" and account.send_to == turn.answer_to
            if not told:
                yield f"{turn} failed, and who asked got {account}"
        above = _askers(turn)
        beside = [one for one in turns if one not in above and not one.recalled and self.caused(one.result)]
        if beside:
            yield f"{turn} was to fail, and {beside} did"
        directory = self._router.directory
        if turn.role in directory and directory.find(turn.role).failed is not None:
            yield f"{turn.role} answers nobody any more"

    def _raise(self) -> NoReturn:
        self.raised = True
        raise self.error


def _chosen(router: Router, role: str | None) -> Turn | None:
    running = [turn for turn in router.turns if turn.state == "running"]
    if role is None:
        return next((turn for turn in running if not turn.waits), None)
    return next((turn for turn in running if turn.role == role), None)


def _joins(task: Task) -> bool:
    """Whether it waits, inside an `ask` that was left, for the end of the recalled work."""
    return any(frame.f_code is Router._abandon.__code__ for frame, _ in task.iter_await_frames())


def _askers(turn: Turn) -> set[Turn]:
    """The turn and all that wait for it."""
    found: set[Turn] = set()
    at: Turn | None = turn
    while at is not None:
        found.add(at)
        at = at.asker
    return found
