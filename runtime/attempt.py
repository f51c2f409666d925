"""Attempts: runs a turn until it is finished, failed or recalled, each attempt in a cancel scope of its own.

The rule on which everything rests: when an attempt's scope has closed, one sync step records what it left, then the
interventions that cut it, and only then the turn ends or its next attempt begins.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import trio

from .draft import NOTHING, Unfinished
from .errors import NoReply, RequestRecalled, RoleFailed, describe
from .event import AttemptBegan
from .intervention import Interventions
from .json_value import JsonValue
from .post import Marks, Post
from .router import Router
from .turn import Turn

Work = Callable[[Turn], Awaitable[Post | None]]


class Attempts:
    """Runs turns for the actors of one conversation."""

    def __init__(self, router: Router, interventions: Interventions) -> None:
        self._router = router
        self._interventions = interventions

    async def run(self, turn: Turn, work: Work) -> None:
        """Attempts until the turn is over. Cancelled from outside: what it had is recorded, and the turn stays open."""
        while not turn.recalled:
            if await self._attempt(turn, work):
                return
        self._end(turn, turn.end_error or RequestRecalled(turn.role, turn.post.id))

    def fail(self, turn: Turn, error: Exception) -> None:
        """Ends a turn whose actor's lifetime ended under it."""
        failure = turn.end_error or RoleFailed(turn.role, turn.post.id, error)
        self._settle_error(turn, failure)
        self._end(turn, failure)

    async def _attempt(self, turn: Turn, work: Work) -> bool:
        """Whether the turn is over."""
        router = self._router
        scope = turn.begin()
        if router.events.wanted:
            router.events.publish(AttemptBegan(turn.role, turn.post.id, turn.attempts))
        if turn.asker is None and turn.post.marks.words is not None:
            self._interventions.saw(turn.role, (turn.post.marks.words,))
        finished = False
        returned: Post | None = None
        try:
            with scope:
                returned = await work(turn)
                finished = True
        except Exception as error:
            if turn.cut and (scope.cancelled_caught or _while_cancelled(error)):
                self._settle_cut(turn, error)
                return False
            failure = RoleFailed(turn.role, turn.post.id, single_error(error))
            self._settle_error(turn, failure)
            self._end(turn, failure)
            return True
        except BaseException:  # the actor's lifetime, or the whole conversation, ends: its task will end the turn
            self._keep_draft(turn)
            raise
        if finished:
            self._finish(turn, returned)
        else:
            self._settle_cut(turn)
        return finished

    def _finish(self, turn: Turn, returned: Post | None) -> None:
        """The attempt returned: its reply stands, whether or not it was cut in the same step."""
        result: Post | Exception | None
        try:
            result = _checked(turn, returned)
            if result is not None and result.send_to not in (turn.answer_to, turn.role):
                result = self._hand_on(turn, result)
        except Exception as error:
            result = error if isinstance(error, NoReply) else RoleFailed(turn.role, turn.post.id, error)
        if isinstance(result, Exception):
            self._settle_error(turn, result)
        elif turn.successor is None:
            self._settle_reply(turn, result)
        else:
            self._interventions.attempt_ended(turn, True, (turn.successor.post,))
        self._end(turn, result)

    def _hand_on(self, turn: Turn, post: Post) -> Post | None:
        if turn.recalled:  # nothing starts for nobody
            return turn.answer(post.message, post.attachment_list, state="partial")
        self._router.hand_on(turn, post)
        return None

    def _settle_reply(self, turn: Turn, reply: Post | None) -> None:
        kept = [] if reply is None else [reply]
        if reply is not None:
            turn.account = reply
            self._router.record(reply)
        self._interventions.attempt_ended(turn, True, kept)

    def _settle_error(self, turn: Turn, error: Exception) -> None:
        kept = self._keep_draft(turn)
        turn.account = turn.answer(str(error), kind="error")
        self._router.record(turn.account)
        self._interventions.attempt_ended(turn, True, [*kept, turn.account])

    def _settle_cut(self, turn: Turn, error: Exception | None = None) -> None:
        """Partial work, what clean-up raised, then the words: always in this order, in one step."""
        if turn.recalled:
            left = _seal(turn)
            turn.account = turn.answer(left.text, left.attachments, state="partial", extra=_heard(turn))
            kept = [turn.account]
            self._router.record(turn.account)
        else:
            kept = self._keep_draft(turn)
        if error is not None:
            marks = Marks(kind="error", in_reply_to=turn.post.id)
            self._router.record(Post.create(describe(error), turn.role, turn.role, marks=marks))
        self._interventions.attempt_ended(turn, False, kept, error)

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


def _checked(turn: Turn, returned: Post | None) -> Post | None:
    """What was returned, addressed to who waits. Raises what is wrong with it."""
    if returned is None:
        if turn.asked:
            raise NoReply(turn.role, turn.post.id)
        return None
    if not isinstance(returned, Post):
        raise TypeError(f"receive of {turn.role} returned {type(returned).__name__}, not a Post or None")
    if returned.send_from != turn.role:
        raise ValueError(f"{turn.role} returned a post in the name of {returned.send_from!r}")
    if returned.send_to == turn.role and turn.asked:
        raise NoReply(turn.role, turn.post.id)
    marks = returned.marks
    if returned.send_to == turn.answer_to and marks.in_reply_to == turn.post.id:
        return returned
    if returned.send_to in (turn.post.send_from, turn.answer_to):
        marks = replace(marks, in_reply_to=turn.post.id)
        return replace(returned, send_to=turn.answer_to, marks=marks)
    return returned


def _seal(turn: Turn) -> Unfinished:
    draft, turn.draft = turn.draft, None
    return draft.seal() if draft is not None else NOTHING


def _heard(turn: Turn) -> Mapping[str, JsonValue] | None:
    """The words that this turn had received, for the asker that reads its account."""
    if not turn.heard and not turn.pending:
        return None
    words = [*turn.heard, *turn.pending]
    return {"user_words": tuple({"id": one.id, "message": one.message.message} for one in words)}


def single_error(error: Exception) -> Exception:
    """A group of one is that one; what failed together stays together."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _while_cancelled(error: BaseException) -> bool:
    """Raised while a Cancelled was on its way: a by-product of the cut, such as a clean-up that failed."""
    seen: set[int] = set()
    above: BaseException | None = error
    while above is not None and id(above) not in seen:
        if isinstance(above, trio.Cancelled):
            return True
        if isinstance(above, BaseExceptionGroup) and any(map(_while_cancelled, above.exceptions)):
            return True
        seen.add(id(above))
        above = above.__cause__ or above.__context__
    return False
