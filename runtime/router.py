"""Router: how a post travels from role to role, and how its sender waits for what comes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial

import trio

from .directory import Entry
from .errors import RoleFailed
from .limits import Budget, Limits
from .post import Post
from .routes import Routes
from .turn import Turn


class Router(Routes):
    """What waits; the sync steps it is made of are those of `Routes`."""

    async def ask(self, post: Post, asker: Turn, limits: Limits | None = None) -> Post:
        """Delivers, waits, returns the reply. While this waits, the one asked may ask back; that is answered in here.

        Cancelled: the request is recalled in the same step, and this waits until the work for it has ended. Raises
        UnknownRole, AskCycle, PostRefused, LimitReached, ConversationClosed, and as what the work ended: NoReply,
        RoleFailed, RequestRecalled.
        """
        asker.budget.check_room()
        budget = asker.budget if limits is None else Budget(limits, self.time.now(), asker.budget)
        turn = Turn(post, asker, copy_context(), foreground=asker.foreground, budget=budget)
        turn.outer = asker.outer
        entry = self.open(turn)
        try:
            try:
                self._put(turn, entry, entry.mailbox.put_nowait)
            except trio.WouldBlock:
                await self._in_time(turn, partial(entry.mailbox.put, turn.post.id, turn))
            while (turn := turn.latest).state != "ended":
                if turn.questions:
                    question, turn.questions = turn.questions[0], turn.questions[1:]
                    await self.answer(question)
                elif turn.state == "queued" and turn.has_own_deadline:
                    await self._in_time(turn, turn.wait)
                else:
                    await turn.wait_through(partial(self._asker_cancelled, asker, turn))
        except BaseException:
            await self._abandon(turn.latest)
            raise
        return await turn.outcome()

    async def ask_back(self, post: Post, asker: Turn, answering: Turn) -> Post:
        """Asks the role that waits for `answering`, in its waiting ask; `asker` is the turn that needs the answer.

        Cancelled: as `ask`. Raises PostRefused, and as what the work ended.
        """
        question = Turn(self.inspect(post), asker, copy_context(), foreground=asker.foreground, budget=asker.budget)
        question.outer = asker.outer
        self.register(question)
        answering.questions = (*answering.questions, question)
        answering.wake()
        try:
            while not question.over:
                await question.wait_through(partial(self._asker_cancelled, asker, question))
        except BaseException:
            await self._abandon(question)
            raise
        return await question.outcome()

    async def tell(self, post: Post, teller: Turn) -> None:
        """Delivers and goes on; a checkpoint only if the mailbox is full. No room in time: a dead letter."""
        turn = Turn(post, None, copy_context(), foreground=False, budget=self.budget)
        turn.outer = teller.outer
        entry = self.open(turn)
        try:
            self._put(turn, entry, entry.mailbox.put_nowait)
        except trio.WouldBlock:
            await self._wait_to_tell(turn, entry)

    async def _in_time(self, turn: Turn, wait: Callable[[], Awaitable[None]]) -> None:
        """Waits; what has not been begun by its deadline is recalled. Work that runs has a scope for that."""
        deadline = turn.budget.deadline
        if not turn.has_own_deadline or self.time.passed(deadline):
            return await wait()
        with self.time.move_on_at(deadline) as scope:
            await wait()
        if scope.cancelled_caught and (turn := turn.latest).state == "queued":
            self.recall(turn, RoleFailed(turn.role, turn.post.id, turn.budget.out_of_time()))

    async def _wait_to_tell(self, turn: Turn, entry: Entry) -> None:
        try:
            with self.time.move_on_at(self.time.now() + self.tell_timeout):
                return await entry.mailbox.put(turn.post.id, turn)
        except BaseException:
            self._bury(turn, f"{turn.post.send_from} was interrupted before there was room")
            raise
        self._bury(turn, f"the mailbox of {turn.role} was full for {self.tell_timeout} s")

    async def _abandon(self, turn: Turn) -> None:
        if turn.state == "ended":
            if isinstance(turn.result, Post) and not turn.recalled:
                self.dead_letters.add(turn.result, "its asker had stopped waiting")
            return
        self.recall(turn)
        with trio.CancelScope(shield=True):
            await turn.wait_ended()

    def _bury(self, turn: Turn, reason: str) -> None:
        if turn.state == "queued":
            self.directory.entry_of(turn.role).mailbox.recall(turn.post.id)
            self.finish(turn, None)
            self.dead_letters.add(turn.post, reason)
