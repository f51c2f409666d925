"""Turn: the work for one post. Queued, then running attempt by attempt, then ended: and the handle its asker waits on.

Turns that wait for one another form the tree that interventions walk: `asker` points up, `waits` down.
"""

from __future__ import annotations

import contextvars
import math
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Literal

import trio

from .attachment import Attachment
from .draft import Draft
from .errors import RequestRecalled
from .json_value import JsonValue
from .limits import UNLIMITED, Budget
from .post import Kind, Post, State
from .receipt import Words
from .shield import Shield, current_shield
from .signal import Signal
from .text import Text

TurnState = Literal["queued", "running", "ended"]
current_turn: ContextVar[Turn | None] = ContextVar("callboard_turn", default=None)
"""The turn in which code runs, inherited by a role's own tasks and threads."""
_ENDED = contextvars.Context()
"""Stands for the variables of every turn that is over."""


class Turn:
    """Made by who asks or tells; changed by the router, the attempt and interventions, in sync steps."""

    __slots__ = (
        "_over",
        "account",
        "answer_to",
        "asked_ids",
        "asker",
        "attempts",
        "budget",
        "causes",
        "cut",
        "draft",
        "end_error",
        "foreground",
        "heard",
        "holds",
        "in_step",
        "outer",
        "pending",
        "post",
        "questions",
        "recalled",
        "report_to",
        "result",
        "role",
        "scope",
        "sheltered_by",
        "shields",
        "state",
        "successor",
        "variables",
        "waits",
    )

    def __init__(
        self,
        post: Post,
        asker: Turn | None,
        variables: contextvars.Context,
        *,
        foreground: bool,
        budget: Budget = UNLIMITED,
    ) -> None:
        self.post = post
        self.role = post.send_to
        """The name of the actor that works on it."""
        self.asker = asker
        self.answer_to = asker.post.send_to if asker is not None else post.send_from
        """The name to which the reply goes; a forwarded request's first asker."""
        self.foreground = foreground
        """Whether the round's answer waits for it; what was told, and all below, runs beside."""
        self.report_to: str | None = None
        """The role that started it in the background, and gets its report."""
        self.budget = budget
        """What it and all below it may still use, whatever the number of attempts."""
        self.variables = variables
        """The context variables in which it runs: the asker's."""
        self.sheltered_by = variables.get(current_shield)
        """The block in which it was asked."""
        self._begin_empty()
        variables.run(current_turn.set, self)

    def _begin_empty(self) -> None:
        """What it holds before anything has happened to it."""
        self.outer: Turn | None = None
        """The turn of another conversation from which this one's round was sent."""
        self.waits: dict[Turn, None] = {}
        self.asked_ids: tuple[str, ...] = ()
        """The posts with which it has asked, of those that are over; for its account."""
        self.questions: tuple[Turn, ...] = ()
        """What its asker is being asked back, and has not begun to answer."""
        self.holds = 0
        """How many words wait for it to come to a boundary, and stop it there."""
        self.in_step = 0
        """How many steps its attempt is in."""
        self.shields: tuple[Shield, ...] = ()
        """The blocks that its attempt is in and that an interruption lets finish."""
        self.state: TurnState = "queued"
        self.attempts = 0
        self.cut = False
        """Whether the running attempt was cancelled."""
        self.recalled = False
        """Whether nobody waits any more: it must end, and start nothing."""
        self.end_error: Exception | None = None
        """What its asker gets if it is recalled while the asker waits."""
        self.scope: trio.CancelScope | None = None
        self.draft: Draft | None = None
        self.pending: tuple[Words, ...] = ()
        """Words to be recorded when the attempt has ended, in order of acceptance."""
        self.heard: tuple[Words, ...] = ()
        """Words that were recorded for this turn."""
        self.causes: tuple[Words, ...] = ()
        """Words for which the running attempt was cut or recalled."""
        self.account: Post | None = None
        """The post that was recorded as this request's outcome."""
        self.result: Post | Exception | None = None
        self.successor: Turn | None = None
        """The turn that took this one's place when the request was handed on."""
        self._over = Signal()

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state == "ended"

    @property
    def asked(self) -> bool:
        """Whether anybody is owed an answer: an asker, the user, or who started it in the background."""
        return self.asker is not None or self.foreground or self.report_to is not None

    def answer(
        self,
        message: str | Text = "",
        attachments: Iterable[Attachment] = (),
        *,
        kind: Kind = "reply",
        state: State = "whole",
        extra: Mapping[str, JsonValue] | None = None,
    ) -> Post:
        """A reply to who waits: for a request that was handed on, not the role that handed it on."""
        post = self.post.reply(message, attachments, kind=kind, state=state, extra=extra)
        return post if post.send_to == self.answer_to else replace(post, send_to=self.answer_to)

    @property
    def has_own_deadline(self) -> bool:
        """Whether its budget was made for it; else the deadline is that of a turn above, which recalls it."""
        return self.budget.deadline != math.inf and (self.asker is None or self.asker.budget is not self.budget)

    def begin(self) -> trio.CancelScope:
        """The next attempt, in a scope of its own that is never used again."""
        self.state = "running"
        self.attempts += 1
        self.cut = False
        self.draft = None
        self.in_step = 0
        self.scope = scope = trio.CancelScope()
        return scope

    def interrupt(self, reason: str) -> None:
        """The running attempt ends at its next checkpoint, or when its blocks that are let finish have."""
        if self.scope is not None:
            self.cut = True
            self.scope.cancel(reason=reason)
            for shield in self.shields:
                shield.begin_grace()

    @property
    def sheltered(self) -> bool:
        """Whether it was asked in a block of its asker's that is let finish: a cut of that one does not recall it."""
        return self.asker is not None and self.sheltered_by in self.asker.shields

    def end(self, result: Post | Exception | None) -> None:
        """In one step: the turn is over, its asker no longer waits for it, and is woken."""
        self.state = "ended"
        self.result = result
        if self.asker is not None:
            self.asker.waits.pop(self, None)
            self.asker.asked_ids += (self.post.id,)
        # The variables hold the turn, for `current_turn`: without this only the collector could free either.
        self.variables = _ENDED
        self._over.fire()

    @property
    def latest(self) -> Turn:
        """The turn that has this one's place now: itself, unless its request was handed on."""
        turn = self
        while turn.successor is not None:
            turn = turn.successor
        return turn

    def hand_on(self, successor: Turn) -> None:
        """The successor takes over who waits, and nobody is woken.

        A task that is awake cannot be cancelled in this step; it would get the error of a request that is recalled
        together with it.
        """
        self.successor = successor
        self._over.hand_over(successor._over)

    def wake(self) -> None:
        """Lets whoever waits for it look again."""
        self._over.fire()

    async def wait(self) -> None:
        """Until it is over, or `wake` is called. Always a checkpoint. Cancelled: nothing happens to it."""
        await self._over.wait()

    async def wait_through(self, on_cancelled: Callable[[], None]) -> None:
        """Until it is over, or `wake` is called. Cancelled: calls this at once, waits on, and raises only then."""
        await self._over.wait_through(on_cancelled)

    async def wait_ended(self) -> None:
        """Until it, and what it was handed on to, is over; no checkpoint if so. Cancelled: nothing happens to it."""
        while (turn := self.latest).state != "ended":
            await turn._over.wait()

    async def outcome(self) -> Post:
        """The reply of a turn that is over; raises the error with which it ended. A checkpoint only if cancelled."""
        if isinstance(self.result, RequestRecalled):
            # Recalled because this task is cancelled, while it was awake: the cancellation has not reached it yet.
            await trio.lowlevel.checkpoint_if_cancelled()
        if isinstance(self.result, Post):
            return self.result
        assert self.result is not None, "a request ends with a post or an error"
        raise self.result

    def __repr__(self) -> str:
        return f"<Turn {self.role} {self.post.id} {self.state} attempt {self.attempts}>"
