"""The loop, written once: takes posts and runs a turn for each, in the asker's context variables."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context

import trio
from trio.lowlevel import cancel_shielded_checkpoint, current_task

from .actor import Actor
from .attempt import Attempts
from .context import Above, TurnContext
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

        async def work(turn: Turn) -> Post | None:
            return await actor.receive(turn.post, TurnContext(turn, entry, self._router, self._above))

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
        finally:
            if task.context is not variables:
                await _enter(variables)

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
