"""Moments: counts the moments of one run, calls the injection at the chosen one, and says what was going on there."""

from __future__ import annotations

from collections.abc import Callable

import trio
from trio.lowlevel import Task

from .conversation import Conversation
from .errors import CallboardError
from .failure import Failure
from .receipt import Receipt
from .record import find_change
from .referee import Breach, Invariant, Referee
from .turn import current_turn

STEPS = (
    "between rounds",
    "queued",
    "attempt begins",
    "working",
    "streaming",
    "tool",
    "asking",
    "cleaning up",
    "closing",
)
"""What a conversation can be doing at a moment, by the innermost work that goes on.

Nothing; a post lies in a mailbox; an attempt has not come back from its first wait; one works and has written nothing;
a draft holds text; a call of a tool is open; a role waits for a subordinate that does none of these; an attempt was cut
and has not ended; all is ending.
"""

BETWEEN_BATCHES = "between batches"
"""Stands for the task about to run where none is, before the clock may move."""
HOST = "host"
RUNTIME_TASKS = ("memory", "supervisor", "summary", "watch", "trio", HOST, BETWEEN_BATCHES)
"""Who may be about to run besides roles, which go by their names."""
_NAMED = "callboard:"


class Moments(trio.abc.Instrument):
    """Counts from the opening of the watched conversation on; calls `inject` at the moment of number `at`."""

    def __init__(self, inject: Callable[[Conversation], object] | None, at: int) -> None:
        self.at = at
        self.count = 0
        self.receipts: list[Receipt] = []
        self.failures: list[Failure] = []
        self.injected_at = 0.0
        self.place: tuple[str, str] | None = None
        """Who was about to run at the chosen moment, and what kind of step the conversation was in."""
        self.referee: Referee | None = None
        self.error: BaseException | None = None
        self._inject = inject
        self._conversation: Conversation | None = None

    def watch(self, conversation: Conversation) -> Conversation:
        """From here on there are moments."""
        self._conversation = conversation
        self.referee = Referee(conversation)
        conversation._router.events.subscribe(self.referee)
        return conversation

    def before_task_step(self, task: Task) -> None:
        """A moment."""
        if self.referee is not None:
            self._moment(task)
            self.referee.beginning.discard(task)

    def before_io_wait(self, timeout: float) -> None:
        """A moment."""
        if self.referee is not None:
            self._moment(None)

    def judge(self, left: list[str]) -> list[Breach]:
        """The verdict on the run; `left` names what is alive after it."""
        if self.referee is None:
            return []
        breaches = self.referee.judge(self.receipts, self.injected_at)
        for failure in self.failures:
            breaches += [Breach(Invariant.FAILURE, what) for what in failure.find_faults(self.referee.own_tasks)]
        if left:
            breaches.append(Breach(Invariant.NOTHING_LEFT, f"alive after the scenario: {', '.join(left)}"))
        return breaches

    def find_change(self) -> list[str]:
        """What becomes of the transcript that is written and loaded, if it is not the same."""
        return [] if self._conversation is None else find_change(self._conversation.transcript())

    def _moment(self, task: Task | None) -> None:
        if self.count == self.at and self._inject is not None and self._conversation is not None:
            self.injected_at = trio.current_time()
            self.place = (self._who(task), self._step())
            try:
                given = self._inject(self._conversation)
            except CallboardError:
                pass  # refused, as to a host that speaks when the conversation has closed: nothing was injected
            except BaseException as error:  # trio would only log it and drop the instrument
                self.error = error
            else:
                found = given if isinstance(given, list) else [given]
                self.receipts = [one for one in found if isinstance(one, Receipt)]
                self.failures = [one for one in found if isinstance(one, Failure)]
        if self.failures:
            self._deliver()
        self.count += 1

    def _deliver(self) -> None:
        assert self.referee is not None, "failures are injected into what is watched"
        for failure in self.failures:
            if failure.pending and failure.turn is not None:
                failure.deliver(self.referee.own_tasks[failure.turn])

    def _who(self, task: Task | None) -> str:
        assert self.referee is not None, "only what is watched has moments"
        if task is None:
            return BETWEEN_BATCHES
        turn = task.context.get(current_turn)
        if turn in self.referee.own_tasks:
            return turn.role
        if task.name.startswith(_NAMED):
            return task.name.removeprefix(_NAMED)
        return "trio" if task.name.startswith("<") else HOST

    def _step(self) -> str:
        """The kind of step, by the innermost work that goes on."""
        assert self._conversation is not None and self.referee is not None, "only what is watched has moments"
        router, referee = self._conversation._router, self.referee
        turns = list(router.turns)
        running = [turn for turn in turns if turn.state == "running"]
        if router.closed:
            return "closing"
        if any(turn.cut for turn in running):
            return "cleaning up"
        if referee.calls:
            return "tool"
        if any(turn.draft is not None and turn.draft.text for turn in running):
            return "streaming"
        if any(referee.own_tasks.get(turn) in referee.beginning for turn in running):
            return "attempt begins"
        if len(running) < len(turns):
            return "queued"
        if any(turn.waits for turn in running):
            return "asking"
        return "working" if running else "between rounds"
