"""Supervisor: starts actors, at the beginning and on the way, and ends them.

It alone keeps the conversation's nursery: actors are sibling tasks, so that a role outlives the turn that started it.
Their tasks are shielded and ended from here, in order; the watch, which is not shielded, sees a cancellation from
outside at once and has the conversation closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial

import trio

from .actor import Actor, actor_tree
from .attempt import Attempts
from .context import Startable
from .directory import Entry
from .errors import RequestRecalled, RoleFailed, UnknownRole
from .event import ActorEnded, ActorStarted, Event
from .ids import current_ids
from .intervention import Interventions
from .lifetime import Lifetime
from .mailbox import Mailbox
from .memory import Memory
from .options import ConversationOptions
from .receive_loop import ReceiveLoop
from .router import Router
from .server import Server

SUPERVISOR = "supervisor"


@dataclass(frozen=True, slots=True)
class _StartSubordinate:
    superior: str
    actor: Actor
    reset: bool


@dataclass(frozen=True, slots=True)
class _EndSubordinate:
    superior: str
    name: str


class Supervisor:
    """Starts and ends are decided in sync steps; what is async here only waits for a task to end."""

    def __init__(
        self,
        nursery: trio.Nursery,
        router: Router,
        interventions: Interventions,
        memory: Memory,
        options: ConversationOptions,
    ) -> None:
        self.on_told_failure: Callable[[Exception], None] = lambda error: None
        self.on_cancelled: Callable[[], None] = lambda: None
        """Called when a cancellation from outside arrives: closes the conversation, in a sync step."""
        self._nursery = nursery
        self._router = router
        self._interventions = interventions
        self._memory = memory
        self._options = options
        attempts = Attempts(router, interventions)
        self._loop = ReceiveLoop(router, attempts, self, lambda error: self.on_told_failure(error))
        self._variables = copy_context()
        """The host's context variables at the conversation's opening, in which lifetimes run."""
        self._variables.run(current_ids.set, options.ids or current_ids.get())
        self._lifetimes: dict[Entry, Lifetime] = {}
        self._servers = (memory.server, Server(SUPERVISOR, self._answer))
        for server in self._servers:
            router.servers[server.name] = server
            server.start = partial(self._start_server, server)
        self._watching = False
        self._idle_since = 0.0

    @property
    def round(self) -> str:
        """The id of the round that is running, or ran last."""
        return self._memory.round

    def saw(self, role: str, words_ids: Iterable[str]) -> None:
        """The role has read these words."""
        self._interventions.saw(role, words_ids)

    async def start_subordinate(self, superior: str, actor: Startable, *, reset: bool) -> str:
        """Asks the supervisor; waits as long as an earlier holder of the name is ending."""
        if not isinstance(actor, Actor):
            raise TypeError(f"a subordinate is an Actor, not {type(actor).__name__}")
        while True:
            answer = await self._router.servers[SUPERVISOR].ask(_StartSubordinate(superior, actor, reset))
            if isinstance(answer, str):
                return answer
            await answer.wait_ended()

    async def end_subordinate(self, superior: str, name: str) -> None:
        """Asks the supervisor, then waits until the tasks have ended. RoleFailed: leaving a `live` raised."""
        lifetimes: list[Lifetime] = await self._router.servers[SUPERVISOR].ask(_EndSubordinate(superior, name))
        for lifetime in lifetimes:
            await lifetime.wait_ended()
        for lifetime in lifetimes:
            if lifetime.error is not None:
                raise RoleFailed(lifetime.entry.name, "", lifetime.error)

    def add(self, actor: Actor, superior: str | None = None) -> None:
        """Enters an actor and all under it, all or none; a task starts with the first post.

        Raises DuplicateName, and ValueError for a name that is none.
        """
        tree = actor_tree(actor, superior)
        for name, (_, above) in tree.items():
            self._router.directory.check_free(name, above)
        for one, above in tree.values():
            entry = Entry(one.name, above, Mailbox(self._options.mailbox))
            self._router.directory.add(entry)
            lifetime = Lifetime(one, entry, self._loop, self._router, self._memory.id)
            self._lifetimes[entry] = lifetime
            entry.start = partial(self._start_task, lifetime)
            self._publish(ActorStarted(one.name, above))

    def watch(self) -> None:
        """Called when a round begins: from now on, until nothing has worked for a while, a cancellation is seen."""
        if not self._watching:
            self._watching = True
            self._variables.run(partial(self._nursery.start_soon, self._watch, name="callboard:watch"))

    def idle(self) -> None:
        """Called when the last turn has ended."""
        self._idle_since = trio.current_time()

    async def close(self) -> list[Exception]:
        """Waits for all turns, then leaves the lifetimes in reverse order; gives what leaving them raised.

        Not to be cancelled: its caller shields it. Lifetimes that are not left within `closing` seconds are cancelled.
        """
        while self._router.turns:
            await next(iter(self._router.turns)).wait_ended()
        lifetimes = list(self._lifetimes.values())
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
        if self._router.turns:
            return max(self._options.idle_after, 1.0)
        return self._idle_since + self._options.idle_after - trio.current_time()

    def _let_go(self) -> None:
        """Ends the tasks of all who wait for posts and have no lifetime of their own."""
        for lifetime in self._lifetimes.values():
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
        self._variables.run(partial(self._nursery.start_soon, lifetime.run, self._ended, name=name))

    def _start_server(self, server: Server) -> None:
        server.start = None
        self._variables.run(partial(self._nursery.start_soon, server.serve, name=f"callboard:{server.name}"))

    def _answer(self, question: _StartSubordinate | _EndSubordinate) -> str | Lifetime | list[Lifetime]:
        if isinstance(question, _StartSubordinate):
            return self._start(question.superior, question.actor, question.reset)
        return self._end_under(question.superior, question.name)

    def _start(self, superior: str, actor: Actor, reset: bool) -> str | Lifetime:
        directory = self._router.directory
        directory.find(superior)
        if actor.name not in directory or directory.find(actor.name).superior != superior:
            ending = [entry for name in actor_tree(actor, superior) if (entry := directory.ending(name))]
            if ending:
                return self._lifetimes[ending[0]]
            self.add(actor, superior)
        if reset:
            self._memory.begin_view(actor.name)
        return actor.name

    def _end_under(self, superior: str, name: str) -> list[Lifetime]:
        directory = self._router.directory
        ending = directory.ending(name)
        if ending is not None and ending.superior == superior:
            return [self._lifetimes[ending]]
        if name in directory.find(superior).ended:
            return []
        entry = directory.find(name)
        if entry.superior != superior:
            raise UnknownRole(name, f"{name!r} is not a subordinate of {superior}")
        return self._end(entry)

    def _end(self, entry: Entry) -> list[Lifetime]:
        """Takes a role and all under it out of the directory and recalls their turns, in one step."""
        lifetime = self._lifetimes[entry]
        self._router.directory.remove(entry)
        below = [self._end(self._router.directory.find(name)) for name in list(entry.subordinates)]
        for turn in self._router.turns_of(entry.name):
            self._router.recall(turn, RequestRecalled(entry.name, turn.post.id))
        entry.mailbox.close()
        if not lifetime.has_task:
            self._ended(lifetime)
        return [*(one for ended in below for one in ended), lifetime]

    def _ended(self, lifetime: Lifetime) -> None:
        """A task has ended, or there was none to end: a removed role's name is free now."""
        entry = lifetime.entry
        if self._router.directory.ending(entry.name) is entry:
            self._router.directory.forget(entry)
            del self._lifetimes[entry]
            if entry.failed is None:
                self._publish(ActorEnded(entry.name, repr(lifetime.error) if lifetime.error else ""))
        elif not entry.mailbox.closed:
            entry.start = partial(self._start_task, lifetime)

    def _publish(self, event: Event) -> None:
        if self._router.events.wanted:
            self._router.events.publish(event)
