"""Lifetime: one actor's task. It opens what `live` opens, serves the mailbox in it, and opens it anew if it breaks.

The task is shielded from cancellations outside, so that what was opened is left in order; it ends when the mailbox is
closed or `scope` is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from .actor import Actor
from .cancellation import single_error
from .context import LiveContext
from .directory import Entry
from .errors import RoleFailed, describe
from .event import ActorEnded, ActorRestarted
from .receive_loop import ReceiveLoop
from .router import Router
from .signal import Signal

RESTARTS = 3
RESTART_PERIOD = 60.0
"""A lifetime is opened anew at most so often in so many seconds."""


class Lifetime:
    """Of one actor in one conversation; its task may end and start again while it is idle."""

    __slots__ = (
        "_conversation",
        "_entered",
        "_loop",
        "_over",
        "_restarts",
        "_router",
        "actor",
        "entry",
        "error",
        "has_task",
        "scope",
    )

    def __init__(self, actor: Actor, entry: Entry, loop: ReceiveLoop, router: Router, conversation: str) -> None:
        self.actor = actor
        self.entry = entry
        self._loop = loop
        self._router = router
        self._conversation = conversation
        self._restarts: list[float] = []
        self._over = Signal()
        self._entered = False
        self.has_task = False
        """Whether a task serves it, or is about to."""
        self.scope: trio.CancelScope | None = None
        """Round the task that serves it."""
        self.error: Exception | None = None
        """What leaving `live` raised."""

    @property
    def lasting(self) -> bool:
        """Whether the actor keeps its task while idle: it has a `live` of its own."""
        return type(self.actor).live is not Actor.live

    async def wait_ended(self) -> None:
        """Until no task serves it; no checkpoint if none does. Cancelled: nothing happens to it."""
        while self.has_task:
            await self._over.wait()

    async def run(self, on_end: Callable[[Lifetime], None]) -> None:
        """Lifetimes one after another, until the mailbox is closed or the actor has failed too often."""
        scope = self.scope = trio.CancelScope(shield=True)
        try:
            with scope:
                while (error := await self._live()) is not None and self._opens_anew(error):
                    pass
        finally:
            if self.scope is scope:  # else the task was let go while idle, and a new one serves already
                self.scope = None
                self.has_task = False
                self._fail_turn(RuntimeError(f"the task of {self.entry.name} was ended"))
                on_end(self)
                self._over.fire()

    def let_go(self, start: Callable[[], None]) -> None:
        """Ends the parked task in this step; the next post calls `start`."""
        assert self.scope is not None, "only a running task is let go"
        self.scope.cancel(reason="idle")
        self.scope = None
        self.has_task = False
        self.entry.start = start

    async def _live(self) -> Exception | None:
        """One lifetime. None if the mailbox was closed; else why it ended before."""
        entry = self.entry
        if entry.mailbox.closed:
            return None
        context = LiveContext(self._conversation, entry.name, entry.superior)
        self._entered = False
        try:
            if not self.lasting:  # a block that opens nothing would be held as long as the task waits
                self._entered = True
                await self._loop.serve(self.actor, entry)
                return None if entry.mailbox.closed else _ended_by_itself(entry)
            async with self.actor.live(context) as entry.state:
                self._entered = True
                await self._loop.serve(self.actor, entry)
        except Exception as error:
            if not entry.mailbox.closed:
                return single_error(error)
            self.error = single_error(error)
        if not entry.mailbox.closed:
            return _ended_by_itself(entry)
        return None

    def _opens_anew(self, error: Exception) -> bool:
        """Fails the turn that the lifetime took down, or the post that brought it up; whether to go on.

        What cannot be entered is tried again with the next post, not for nobody.
        """
        mailbox = self.entry.mailbox
        if not self._entered and len(mailbox):
            self.entry.turn = mailbox.get_nowait()
        self._fail_turn(error)
        now = trio.current_time()
        self._restarts.append(now)
        while self._restarts[0] < now - RESTART_PERIOD:
            self._restarts.pop(0)
        if len(self._restarts) > RESTARTS:
            self._give_up(error)
        elif self._router.events.wanted:
            self._router.events.publish(ActorRestarted(self.entry.name, describe(error)))
        return not mailbox.closed and (self._entered or len(mailbox) > 0)

    def _fail_turn(self, error: Exception) -> None:
        turn, self.entry.turn = self.entry.turn, None
        if turn is not None and turn.state != "ended":
            self._loop.fail(turn, error)

    def _give_up(self, error: Exception) -> None:
        """From now on every ask of this role raises."""
        entry = self.entry
        entry.failed = RoleFailed(entry.name, "", error)
        for turn in self._router.turns_of(entry.name):
            self._router.recall(turn, entry.failed)
        entry.mailbox.close()
        if self._router.events.wanted:
            self._router.events.publish(ActorEnded(entry.name, describe(error)))


def _ended_by_itself(entry: Entry) -> Exception:
    return RuntimeError(f"the lifetime of {entry.name} ended by itself")
