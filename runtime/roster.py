"""Roster: which actors a conversation has, with their lifetimes: entered at the beginning or on the way, and ended.

All of it is decided in sync steps, by the supervisor's server; what is async here only waits for a task to end.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from .above import Startable
from .actor import Actor, actor_tree
from .directory import Entry
from .errors import LimitReached, RequestRecalled, RoleFailed, UnknownRole
from .event import ActorEnded, ActorStarted, Event
from .lifetime import Lifetime
from .mailbox import Mailbox
from .memory import Memory
from .options import ConversationOptions
from .receive_loop import ReceiveLoop
from .router import Router

SUPERVISOR = "supervisor"


@dataclass(frozen=True, slots=True)
class StartSubordinate:
    """A question to the supervisor; answered with the name, or with a lifetime that must end first."""

    superior: str
    actor: Actor | str
    name: str
    reset: bool


@dataclass(frozen=True, slots=True)
class EndSubordinate:
    """A question to the supervisor; answered with the lifetimes whose end is to be waited for."""

    superior: str
    name: str


class Roster:
    """`start_task` is given a lifetime whose actor has got its first post."""

    def __init__(
        self,
        router: Router,
        loop: ReceiveLoop,
        memory: Memory,
        options: ConversationOptions,
        start_task: Callable[[Lifetime], None],
    ) -> None:
        self._router = router
        self._loop = loop
        self._memory = memory
        self._options = options
        self._start_task = start_task
        self._lifetimes: dict[Entry, Lifetime] = {}
        self._started: set[Entry] = set()
        """Those that roles have started on the way."""

    def __iter__(self) -> Iterator[Lifetime]:
        return iter(self._lifetimes.values())

    def actor_of(self, entry: Entry) -> Actor:
        """The configuration that serves this entry."""
        return self._lifetimes[entry].actor

    async def start_subordinate(self, superior: str, actor: Startable | str, *, name: str, reset: bool) -> str:
        """Asks the supervisor; waits as long as an earlier holder of the name is ending."""
        if not isinstance(actor, Actor | str):
            raise TypeError(f"a subordinate is an Actor or the name of a profile, not {type(actor).__name__}")
        while True:
            answer = await self._router.servers[SUPERVISOR].ask(StartSubordinate(superior, actor, name, reset))
            if isinstance(answer, str):
                return answer
            await answer.wait_ended()

    async def end_subordinate(self, superior: str, name: str) -> None:
        """Asks the supervisor, then waits until the tasks have ended. RoleFailed: leaving a `live` raised."""
        lifetimes: list[Lifetime] = await self._router.servers[SUPERVISOR].ask(EndSubordinate(superior, name))
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

    def answer(self, question: StartSubordinate | EndSubordinate) -> str | Lifetime | list[Lifetime]:
        """What the supervisor's server answers, in one step."""
        if isinstance(question, StartSubordinate):
            return self._start(question)
        return self._end_under(question.superior, question.name)

    def _start(self, question: StartSubordinate) -> str | Lifetime:
        directory, superior = self._router.directory, question.superior
        directory.find(superior)
        actor = self._made(question)
        if actor.name not in directory or directory.find(actor.name).superior != superior:
            tree = actor_tree(actor, superior)
            ending = [entry for name in tree if (entry := directory.ending(name))]
            if ending:
                return self._lifetimes[ending[0]]
            self._check_room(superior, len(tree), _depth(tree, actor.name))
            self.add(actor, superior)
            self._started.update(directory.find(name) for name in tree)
        if question.reset:
            self._memory.begin_view(actor.name)
        return actor.name

    def _made(self, question: StartSubordinate) -> Actor:
        """The actor that is meant, under the name that is wanted."""
        given = question.actor
        if isinstance(given, str):
            if given not in self._options.profiles:
                known = ", ".join(self._options.profiles) or "none"
                raise UnknownRole(given, f"no profile {given!r} in this conversation; there are {known}")
            made = self._options.profiles[given]()
            if not isinstance(made, Actor):
                raise TypeError(f"the profile {given!r} made {type(made).__name__}, not an Actor")
            given = made
        if question.name and question.name != given.name:
            given = copy.copy(given)
            given.name = question.name
        return given

    def _check_room(self, superior: str, actors: int, levels: int) -> None:
        above = 1 + sum(1 for _ in self._router.directory.superiors(superior))
        if above + levels > self._options.max_depth:
            raise LimitReached("depth", self._options.max_depth)
        if len(self._started) + actors > self._options.fan_out:
            raise LimitReached("actors", self._options.fan_out)

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
            self.ended(lifetime)
        return [*(one for ended in below for one in ended), lifetime]

    def ended(self, lifetime: Lifetime) -> None:
        """A task has ended, or there was none to end: a removed role's name is free now."""
        entry = lifetime.entry
        if self._router.directory.ending(entry.name) is entry:
            self._router.directory.forget(entry)
            del self._lifetimes[entry]
            self._started.discard(entry)
            if entry.failed is None:
                self._publish(ActorEnded(entry.name, repr(lifetime.error) if lifetime.error else ""))
        elif not entry.mailbox.closed:
            entry.start = partial(self._start_task, lifetime)

    def _publish(self, event: Event) -> None:
        if self._router.events.wanted:
            self._router.events.publish(event)


def _depth(tree: dict[str, tuple[Actor, str | None]], root: str) -> int:
    """How many levels a tree of actors has."""
    deepest = 1
    for name in tree:
        levels, at = 1, name
        while at != root and (above := tree[at][1]) is not None:
            levels, at = levels + 1, above
        deepest = max(deepest, levels)
    return deepest
