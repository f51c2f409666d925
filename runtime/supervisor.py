"""Supervisor: starts actors, at the beginning and on the way, and ends them.

It alone keeps the conversation's nursery: actors are sibling tasks, so that a role outlives the turn that started it.
Their tasks are shielded and ended from here, in order; the watch, which is not shielded, sees a cancellation from
outside at once and has the conversation closed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial

import trio

from .attempt import Attempts
from .facilities import Facilities
from .ids import current_ids
from .lifetime import Lifetime
from .memory import Memory
from .receive_loop import ReceiveLoop
from .roster import SUPERVISOR, Roster
from .router import Router
from .server import Server
from .turn import Turn


class Supervisor:
    """Starts and ends are decided in sync steps; what is async here only waits for a task to end."""

    def __init__(
        self,
        nursery: trio.Nursery,
        router: Router,
        facilities: Facilities,
        memory: Memory,
    ) -> None:
        self.on_told_failure: Callable[[Exception], None] = lambda error: None
        self.on_cancelled: Callable[[], None] = lambda: None
        """Called when a cancellation from outside arrives: closes the conversation, in a sync step."""
        self._nursery = nursery
        self._router = router
        self._options = options = facilities.options
        self._variables = copy_context()
        """The host's context variables at the conversation's opening, in which lifetimes run."""
        self._variables.run(current_ids.set, options.ids or current_ids.get())
        facilities.summaries.start = self._start_summary
        attempts = Attempts(router, facilities.interventions, options.ladder)
        attempts.recorded = memory.since
        loop = ReceiveLoop(router, attempts, facilities, lambda error: self.on_told_failure(error))
        self.roster = facilities.roster = Roster(router, loop, memory, options, self._start_task)
        router.answer = partial(_answer, router, self.roster, loop)
        self._servers = (memory.server, Server(SUPERVISOR, self.roster.answer))
        for server in self._servers:
            router.servers[server.name] = server
            server.start = partial(self._start_server, server)
        self._watching = False
        self._idle_since = 0.0
        """In working time: a pause does not let an idle task grow old."""

    def watch(self) -> None:
        """Called when a round begins: from now on, until nothing has worked for a while, a cancellation is seen."""
        if not self._watching:
            self._watching = True
            self._variables.run(partial(self._nursery.start_soon, self._watch, name="callboard:watch"))

    def idle(self) -> None:
        """Called when the last turn has ended."""
        self._idle_since = self._router.time.now()

    async def close(self) -> list[Exception]:
        """Waits for all turns, then leaves the lifetimes in reverse order; gives what leaving them raised.

        Not to be cancelled: its caller shields it. Lifetimes that are not left within `closing` seconds are cancelled.
        """
        while self._router.turns:
            await next(iter(self._router.turns)).wait_ended()
        lifetimes = list(self.roster)
        with trio.move_on_after(self._options.closing):
            for lifetime in reversed(lifetimes):
                lifetime.entry.mailbox.close()
                await lifetime.wait_ended()
        for lifetime in lifetimes:
            lifetime.entry.mailbox.close()
            if lifetime.scope is not None:
                lifetime.scope.cancel(reason="the conversation is closed and its time for closing is over")
        for lifetime in lifetimes:
            await lifetime.wait_ended()
        for server in self._servers:
            server.close()
        self._nursery.cancel_scope.cancel(reason="the conversation is closed")
        return [lifetime.error for lifetime in lifetimes if lifetime.error is not None]

    async def _watch(self) -> None:
        try:
            pause = self._until_let_go()
            while pause > 0:
                await trio.sleep(pause)
                pause = self._until_let_go()
        except trio.Cancelled:
            self.on_cancelled()
            raise
        self._watching = False
        self._let_go()

    def _until_let_go(self) -> float:
        if self._router.turns or self._router.gate.paused:
            return max(self._options.idle_after, 1.0)
        return self._idle_since + self._options.idle_after - self._router.time.now()

    def _let_go(self) -> None:
        """Ends the tasks of all who wait for posts and have no lifetime of their own."""
        for lifetime in self.roster:
            parked = lifetime.entry.mailbox.receiver is not None and lifetime.scope is not None
            if parked and not lifetime.lasting:
                lifetime.let_go(partial(self._start_task, lifetime))
        for server in self._servers:
            if server.idle and server.scope is not None:
                server.scope.cancel(reason="idle")
                server.start = partial(self._start_server, server)

    def _start_task(self, lifetime: Lifetime) -> None:
        lifetime.entry.start = None
        lifetime.has_task = True
        name = f"callboard:{lifetime.entry.name}"
        self._variables.run(partial(self._nursery.start_soon, lifetime.run, self.roster.ended, name=name))

    def _start_summary(self, run: Callable[[], Awaitable[None]]) -> None:
        self._variables.run(partial(self._nursery.start_soon, run, name="callboard:summary"))

    def _start_server(self, server: Server) -> None:
        server.start = None
        self._variables.run(partial(self._nursery.start_soon, server.serve, name=f"callboard:{server.name}"))


async def _answer(router: Router, roster: Roster, loop: ReceiveLoop, question: Turn) -> None:
    """Lets the role that is asked back answer, in the task of its waiting ask."""
    entry = router.directory.entry_of(question.role)
    await loop.answer(roster.actor_of(entry), entry, question)
