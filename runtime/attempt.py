"""Attempts: runs a turn until it is finished, failed or recalled, each attempt in a cancel scope of its own.

The rule on which everything rests: when an attempt's scope has closed, one sync step records what it left, then the
interventions that cut it, and only then the turn ends or its next attempt begins.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import trio

from .account import account_of
from .answer import checked_answer
from .cancellation import single_error, while_cancelled
from .draft import NOTHING, Unfinished
from .errors import LimitReached, NoReply, PostRefused, RequestRecalled, RoleFailed, describe
from .event import AttemptBegan
from .intervention import Interventions
from .json_value import JsonValue
from .limits import limit_behind
from .post import Marks, Post
from .receipt import Words
from .router import Router
from .turn import Turn


@dataclass(frozen=True, slots=True)
class Work:
    """What is run for a turn."""

    receive: Callable[[Turn], Awaitable[Post | None]]
    on_interrupt: Callable[[Turn], Awaitable[None]] | None = None
    """Called when an attempt was cut and has unwound, before anything is recorded of that."""


class Attempts:
    """Runs turns for the actors of one conversation."""

    def __init__(self, router: Router, interventions: Interventions, interrupt_limit: float = 2.0) -> None:
        self._router = router
        self._interventions = interventions
        self._interrupt_limit = interrupt_limit
        """How many seconds `on_interrupt` may take."""
        self.recorded: Callable[[str, str], Iterable[Post]] = lambda role, post_id: ()
        """What memory holds of a role since that post."""

    async def run(self, turn: Turn, work: Work) -> None:
        """Attempts until the turn is over. Cancelled from outside: what it had is recorded, and the turn stays open."""
        while not turn.recalled:
            if await self._attempt(turn, work):
                return
        self._end(turn, turn.end_error or RequestRecalled(turn.role, turn.post.id))

    async def answer(self, question: Turn, work: Work) -> None:
        """Runs a question in the task of the ask that it interrupts; it is over when this returns or raises."""
        if question.state == "ended":
            return
        try:
            await self.run(question, work)
        finally:
            if not question.over:  # the attempt around the ask is cut
                question.recalled = True
                raised = await self._on_interrupt(question, work) if question.cut else None
                self._settle_cut(question, *_present(raised))
                self._end(question, RequestRecalled(question.role, question.post.id))

    def fail(self, turn: Turn, error: Exception) -> None:
        """Ends a turn whose actor's lifetime ended under it."""
        failure = turn.end_error or RoleFailed(turn.role, turn.post.id, error)
        self._settle_error(turn, failure)
        self._end(turn, failure)

    async def _attempt(self, turn: Turn, work: Work) -> bool:
        """Whether the turn is over."""
        scope = self._begin(turn)
        finished = False
        returned: Post | None = None
        error: Exception | None = None
        try:
            with scope:
                if self._router.gate.stops(turn):
                    await self._router.gate.wait(turn)
                returned = await work.receive(turn)
                finished = True
        except Exception as raised:
            error = raised
        except BaseException:  # the actor's lifetime, or the whole conversation, ends: its task will end the turn
            if turn.post.marks.kind != "question":
                self._keep_draft(turn)
            raise
        finally:
            if turn.has_own_deadline:
                self._router.time.forget(scope)
        if finished:
            self._finish(turn, returned)
            return True
        cancelled = scope.cancelled_caught or (error is not None and while_cancelled(error))
        if turn.cut and cancelled:
            self._settle_cut(turn, *_present(error, await self._on_interrupt(turn, work)))
            return False
        by_products = []
        if scope.cancel_called and cancelled:
            error, by_products = turn.budget.out_of_time(), _present(error)
        assert error is not None, "what was not finished was cut, was late, or raised"
        failure = RoleFailed(turn.role, turn.post.id, single_error(error))
        self._settle_error(turn, failure, *by_products)
        self._end(turn, failure)
        return True

    def _begin(self, turn: Turn) -> trio.CancelScope:
        router = self._router
        scope = turn.begin()
        if turn.has_own_deadline:
            router.time.limit(scope, turn.budget.deadline)
        if router.events.wanted:
            router.events.publish(AttemptBegan(turn.role, turn.post.id, turn.attempts))
        if turn.asker is None and turn.post.marks.words is not None:
            self._interventions.saw(turn.role, (turn.post.marks.words,))
        self._interventions.look()
        return scope

    async def _on_interrupt(self, turn: Turn, work: Work) -> Exception | None:
        """What the role does about its interruption, within limits; what that raised."""
        if work.on_interrupt is None:
            return None
        try:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + self._interrupt_limit):
                await work.on_interrupt(turn)
        except Exception as error:
            return single_error(error)
        return None

    def _finish(self, turn: Turn, returned: Post | None) -> None:
        """The attempt returned: its reply stands, whether or not it was cut in the same step."""
        result: Post | Exception | None
        try:
            result = checked_answer(turn, returned)
            if result is not None and result.send_to == turn.answer_to:
                result = self._router.inspect(result)
            if result is not None and result.send_to not in (turn.answer_to, turn.role):
                result = self._hand_on(turn, result)
        except Exception as error:
            result = error if isinstance(error, NoReply) else RoleFailed(turn.role, turn.post.id, error)
        if isinstance(result, Exception):
            self._settle_error(turn, result)
        elif turn.successor is None:
            result = self._settle_reply(turn, result)
        else:
            self._interventions.attempt_ended(turn, True, (turn.successor.post,))
        self._end(turn, result)

    def _hand_on(self, turn: Turn, post: Post) -> Post | None:
        if turn.recalled:  # nothing starts for nobody
            return self._router.inspect(turn.answer(post.text, post.attachment_list, state="partial"))
        self._router.hand_on(turn, post)
        return None

    def _settle_reply(self, turn: Turn, reply: Post | None) -> Post | LimitReached | RoleFailed | None:
        """What its asker gets: the reply that reaches a limit is kept, and the asker is told of the limit."""
        if reply is None:
            self._interventions.attempt_ended(turn, True, ())
            return None
        turn.account = reply
        self._router.record(reply)
        self._router.ledger.count_reply(self._router.round, turn.role)
        self._interventions.attempt_ended(turn, True, (reply,))
        reached = _count_answer(turn)
        if reached is None or turn.recalled:
            return reply
        # Work that was told has no asker to fail: it fails itself, and with it the round.
        return reached if turn.asked else RoleFailed(turn.role, turn.post.id, reached)

    def _settle_error(self, turn: Turn, error: Exception, *by_products: Exception) -> None:
        kept = self._keep_draft(turn)
        self._record_errors(turn, by_products)
        turn.account = turn.answer(str(error), kind="error", extra=limit_behind(error))
        self._router.record(turn.account)
        _count_answer(turn)  # at the limit the next ask is refused: whoever asks a failing role again comes to an end
        self._interventions.attempt_ended(turn, True, [*kept, turn.account])

    def _settle_cut(self, turn: Turn, *errors: Exception) -> None:
        """Partial work, what clean-up raised, then the words: always in this order, in one step."""
        if turn.recalled:
            turn.account, *refused = self._account(turn)
            kept, errors = [turn.account], (*errors, *refused)
            self._router.record(turn.account)
        else:
            kept = self._keep_draft(turn)
        self._record_errors(turn, errors)
        turn.in_step = 0
        self._interventions.attempt_ended(turn, False, kept, errors)

    def _account(self, turn: Turn) -> tuple[Post, *tuple[PostRefused, ...]]:
        """What a recalled turn had; of one that the host's hook refuses, an empty one and the refusal."""
        left = _seal(turn)
        extra = account_of(turn, self._heard(turn), self.recorded(turn.role, turn.post.id))
        try:
            return (self._router.inspect(turn.answer(left.text, left.attachments, state="partial", extra=extra)),)
        except PostRefused as refusal:
            return turn.answer(state="partial"), refusal

    def _heard(self, turn: Turn) -> tuple[JsonValue, ...]:
        """The words that this turn had received, for the asker that reads its account."""
        words = self._interventions.heard(turn)
        return tuple(_read(one, self._interventions.post_for(one, turn.role)) for one in words)

    def _record_errors(self, turn: Turn, errors: Iterable[Exception]) -> None:
        """What clean-up raised."""
        for error in errors:
            marks = Marks(kind="error", in_reply_to=turn.post.id)
            self._router.record(Post.create(describe(error), turn.role, turn.role, marks=marks))

    def _keep_draft(self, turn: Turn) -> list[Post]:
        left = _seal(turn)
        if not left:
            return []
        marks = Marks(kind="note", state="partial", in_reply_to=turn.post.id)
        partial = Post.create(left.text, turn.role, turn.role, left.attachments, marks=marks)
        self._router.record(partial)
        return [partial]

    def _end(self, turn: Turn, result: Post | Exception | None) -> None:
        _seal(turn)
        self._router.finish(turn, result)


def _seal(turn: Turn) -> Unfinished:
    draft, turn.draft = turn.draft, None
    return draft.seal() if draft is not None else NOTHING


def _count_answer(turn: Turn) -> LimitReached | None:
    """One answer more for the limits. A budget's own answer is that of the turn for which it was made."""
    if turn.post.marks.kind == "question":
        return None
    return turn.budget.count_reply(turn.foreground if turn.asker is None else turn.asker.budget is not turn.budget)


def _present(*errors: Exception | None) -> list[Exception]:
    return [error for error in errors if error is not None]


def _read(words: Words, post: Post) -> JsonValue:
    return words.said if post.message == words.message.message else {"id": words.id, "message": post.message}
