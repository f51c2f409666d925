"""Waits: who waits for whom, and whether one wait more would never end. Pure decisions over the tree of turns."""

from __future__ import annotations

from collections.abc import Container

from .directory import Directory, Entry
from .errors import AskCycle, InsideTurn
from .turn import Turn, current_turn


def refuse_cycle(directory: Directory, turn: Turn, entry: Entry) -> None:
    """Raises AskCycle if the actor that is asked waits, directly or through others, for the one who asks.

    A queued turn waits for its actor's running one: a circle through the turn that asks would never end.
    """
    if turn.asker is None or entry.turn is None:
        return
    above: dict[Turn, Turn | None] = {entry.turn: None}
    look = [entry.turn]
    while look:
        at = look.pop()
        if at is turn.asker:
            raise AskCycle((turn.asker.role, *_path(at, above)[:-1]))
        for below in _waited_for(directory, at):
            if below not in above:
                above[below] = at
                look.append(below)


def answering(turn: Turn) -> Turn:
    """The turn that works on this question in its waiting ask; itself, if it is none."""
    if turn.post.marks.kind != "question" or turn.asker is None:
        return turn
    waiting = answering(turn.asker).asker
    assert waiting is not None, "a question goes to whoever waits"
    return waiting


def refuse_inside(turns: Container[Turn], verb: str) -> None:
    """Raises InsideTurn if this code runs in one of the turns, or in a conversation opened inside one of them."""
    turn = current_turn.get()
    while turn is not None:
        if turn in turns:
            raise InsideTurn(verb, turn.role)
        turn = turn.outer


def _waited_for(directory: Directory, turn: Turn) -> list[Turn]:
    """A question is queued for the ask that waits for its asker, not for its actor's mailbox."""
    running = directory.entry_of(turn.role).turn
    if turn.state == "queued" and running is not None and turn.post.marks.kind != "question":
        return [running]
    return list(turn.waits)


def _path(turn: Turn, above: dict[Turn, Turn | None]) -> tuple[str, ...]:
    """The roles from the one that was asked down to `turn`; a queued turn and the one before it are one role."""
    roles = [turn.role]
    at = above[turn]
    while at is not None:
        if at.role != roles[-1]:
            roles.append(at.role)
        at = above[at]
    return tuple(reversed(roles))
