"""Reach: whom the user's words reach. Pure decisions over the tree of turns as it stands; nothing is changed here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .directory import Directory
from .router import Router
from .turn import Turn

Step = tuple[str, Turn | None]
"""A reached role, with the turn in which it is reached; None for one that has nothing to do."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The answer to `find_reach`."""

    tops: tuple[Turn, ...]
    """The reached turns without a reached turn above them: they start again."""
    steps: tuple[Step, ...]
    """All that are reached, innermost first."""

    def homes(self) -> dict[str, Turn | None]:
        """For each reached role the turn that takes the words: the running one, else a queued one, else none."""
        homes: dict[str, Turn | None] = {}
        for name, turn in self.steps:
            if homes.get(name) is None or (turn is not None and turn.state == "running"):
                homes[name] = turn
        return homes


def find_reach(router: Router, level: int, role: str | None, author: Turn | None = None) -> Reach:
    """From each leaf of the round, or from one role's turn, `level` actors up the superior chain.

    A role that is not there any more is nobody. The turn that speaks, and those that wait for it, are left out.
    """
    steps: dict[Step, None] = {}
    leaves = find_leaves(router, role)
    if role is not None and role in router.directory and not leaves and router.turns:
        steps[role, None] = None
    for leaf in leaves:
        steps.update(dict.fromkeys(superior_chain(router.directory, leaf, level)))
    for turn in above(author):
        steps.pop((turn.role, turn), None)
    turns = dict.fromkeys(turn for _, turn in steps if turn is not None)
    tops = tuple(turn for turn in turns if turns.keys().isdisjoint(above(turn.asker)))
    return Reach(tops, tuple(sorted(steps, key=lambda step: -_depth(step[1]))))


def find_leaves(router: Router, role: str | None) -> list[Turn]:
    """The turns of the round that wait for nobody; or, with a role, its turn wherever it stands."""
    if role is None:
        return [turn for turn in router.turns if turn.foreground and not turn.waits]
    return router.turns_of(role)[:1]


def superior_chain(directory: Directory, turn: Turn, level: int) -> Iterator[Step]:
    """Upwards from a turn: whoever waits for it; above a turn that nobody waits for, its role's superior.

    At most `level` actors; a negative level walks to the top.
    """
    name = turn.role
    at: Turn | None = turn
    while level != 0:
        yield name, at
        if at is not None and at.asker is not None:
            at = at.asker
            name = at.role
        else:
            superior = directory.entry_of(name).superior
            if superior is None:
                return
            name, at = superior, directory.entry_of(superior).turn
        level -= 1


def above(turn: Turn | None) -> Iterator[Turn]:
    """A turn and all that wait for it, upwards."""
    while turn is not None:
        yield turn
        turn = turn.asker


def _depth(turn: Turn | None) -> int:
    return sum(1 for _ in above(turn)) - 1
