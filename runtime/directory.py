"""Directory: which actors a conversation has, who is whose superior, and what each is doing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .errors import DuplicateName, UnknownRole
from .mailbox import Mailbox, MailboxStatistics
from .post import USER
from .turn import Turn

RESERVED = frozenset({USER, "memory", "supervisor"})
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@dataclass(slots=True, eq=False)
class Entry:
    """One actor of one conversation: what lives of it."""

    name: str
    superior: str | None
    mailbox: Mailbox[Turn]
    subordinates: dict[str, None] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    """Names of subordinates that it has ended, and that nobody bears again."""
    turn: Turn | None = None
    """The turn it works on."""
    start: Callable[[], None] | None = None
    """Starts a task; set exactly while there is none."""
    state: object = None
    """What the actor's `live` gave."""
    failed: Exception | None = None
    """Why it was ended, if it failed too often; every ask of it raises that."""


@dataclass(frozen=True, slots=True)
class ConversationStatistics:
    """What a conversation is doing at this moment."""

    turns: int
    """Posts that are being worked on or wait in a mailbox."""
    mailboxes: dict[str, MailboxStatistics]
    """By the name of the role."""


class Directory:
    """Entries by name. An entry that was removed stays findable by `entry_of` until its last turn has ended."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._ending: dict[str, Entry] = {}

    def add(self, entry: Entry) -> None:
        """Raises ValueError for a name that is none, DuplicateName for one that is taken, UnknownRole."""
        self.check_free(entry.name, entry.superior)
        superior = self.find(entry.superior) if entry.superior is not None else None
        self._entries[entry.name] = entry
        if superior is not None:
            superior.subordinates[entry.name] = None
            superior.ended.discard(entry.name)

    def check_free(self, name: str, superior: str | None) -> None:
        """Raises what `add` would raise."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"a role's name is a letter, then letters, digits, _ and -, not {name!r}")
        if name in RESERVED:
            raise DuplicateName(name, "the runtime itself", origin(superior))
        other = self._entries.get(name) or self._ending.get(name)
        if other is not None:
            raise DuplicateName(name, origin(other.superior), origin(superior))

    def remove(self, entry: Entry) -> None:
        """The name can no longer be asked; it is free again after `forget`."""
        del self._entries[entry.name]
        self._ending[entry.name] = entry
        if entry.superior is not None and entry.superior in self._entries:
            superior = self._entries[entry.superior]
            superior.subordinates.pop(entry.name, None)
            superior.ended.add(entry.name)

    def forget(self, entry: Entry) -> None:
        """The name is free."""
        self._ending.pop(entry.name, None)

    def find(self, name: str) -> Entry:
        """Raises UnknownRole, naming the roles there are."""
        try:
            return self._entries[name]
        except KeyError:
            known = ", ".join(self._entries) or "none"
            raise UnknownRole(name, f"no role {name!r} in this conversation; there are {known}") from None

    def entry_of(self, name: str) -> Entry:
        """Of a role that has, or had when its turn began, this name."""
        return self._entries.get(name) or self._ending[name]

    def superiors(self, name: str) -> Iterator[str]:
        """The names above a role, the nearest first."""
        while (superior := self.entry_of(name).superior) is not None:
            yield superior
            name = superior

    def ending(self, name: str) -> Entry | None:
        """The removed entry whose last turn has not ended, if there is one."""
        return self._ending.get(name)

    def statistics(self, turns: int) -> ConversationStatistics:
        """What the mailboxes hold now, beside so many turns."""
        return ConversationStatistics(turns, {entry.name: entry.mailbox.statistics() for entry in self})

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())


def origin(superior: str | None) -> str:
    """Where a name comes from, for an error's text."""
    return "the conversation's own list" if superior is None else f"a subordinate of {superior}"
