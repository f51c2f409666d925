"""The loop, written once: takes posts and runs a turn for each, in the asker's context variables."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import Context

import trio
from trio.lowlevel import cancel_shielded_checkpoint, current_task

from .above import Above
from .actor import Actor
from .attempt import Attempts, Work
from .context import TurnContext
from .directory import Entry
from .post import Post
from .router import Router
from .turn import Turn


class ReceiveLoop:
    """What the loops of a conversation's actors have in common."""

    def __init__(
        self, router: Router, attempts: Attempts, above: Above, end_round: Callable[[Exception], None]
    ) -> None:
        self._router = router
        self._attempts = attempts
        self._above = above
        self._end_round = end_round
        """Called when a turn fails for which nobody waits."""

    async def serve(self, actor: Actor, entry: Entry) -> None:
        """Returns when the mailbox is closed. Cancelled: the turn it was in stands in `entry.turn`, to be ended."""

        work = self._work(actor, entry, actor.receive)
        task = current_task()
        variables = task.context
        try:
            while True:
                try:
                    turn = await entry.mailbox.get()
                except trio.EndOfChannel:
                    return
                if task.context is not turn.variables:
                    await _enter(turn.variables)
                if turn.state != "ended":
                    entry.turn = turn
                    await self._attempts.run(turn, work)
                    entry.turn = None
                    self._report(turn)
                del turn
                task.context = variables  # while it waits it holds nothing of the turn that is over
        finally:
            if task.context is not variables:
                await _enter(variables)

    async def answer(self, actor: Actor, entry: Entry, question: Turn) -> None:
        """Works on a question in the task of the ask that waits; it is over when this returns or raises."""
        await self._attempts.answer(question, self._work(actor, entry, actor.on_question))

    def _work(self, actor: Actor, entry: Entry, method: Callable[[Post, TurnContext], Awaitable[Post | None]]) -> Work:
        async def receive(turn: Turn) -> Post | None:
            return await method(turn.post, TurnContext(turn, entry, self._router, self._above))

        async def on_interrupt(turn: Turn) -> None:
            await actor.on_interrupt(turn.post, TurnContext(turn, entry, self._router, self._above))

        overridden = type(actor).on_interrupt is not Actor.on_interrupt
        return Work(receive, on_interrupt if overridden else None)

    def fail(self, turn: Turn, error: Exception) -> None:
        """Ends a turn that its actor's lifetime took down with it."""
        self._attempts.fail(turn, error)
        self._report(turn)

    def _report(self, turn: Turn) -> None:
        if isinstance(turn.result, Exception) and not turn.asked and not turn.recalled:
            self._end_round(turn.result)


async def _enter(variables: Context) -> None:
    """From here on the task runs in these context variables."""
    current_task().context = variables
    await cancel_shielded_checkpoint()
