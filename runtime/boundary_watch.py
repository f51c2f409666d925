"""Boundary watch: holds against one conversation that what waits for a boundary takes hold there, in order.

A pause, and words that wait for a step to end, let no turn ask or call a tool; those words end no step; and words that
end one attempt are recorded in the order in which they were accepted. What does not hold is told to `found` in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .conversation import Conversation
from .event import AttemptBegan, AttemptCut, Event, PostRecorded, ToolBegan, WordsAccepted
from .turn import Turn

_ASKED = ("message", "question")
_WORDS = ("intervention", "nudge")


class BoundaryWatch:
    """Looks at each ask and call, at each cut, and at each record of words."""

    def __init__(self, conversation: Conversation, found: Callable[[str], None]) -> None:
        self._router = conversation._router
        self._aims = conversation._interventions._aims
        self._found = found
        self._accepted: dict[str, int] = {}
        """The number of words, by their id, in the order of acceptance."""
        self._there: dict[str, frozenset[Turn]] = {}
        """By the id of words: the turns that there were when they were accepted."""
        self._ended_by: dict[str, list[str]] = {}
        """By role: the words that cut its attempt."""
        self._last: dict[str, int] = {}
        """By role: the number of the newest words that were recorded of those that cut the same attempt."""
        self.looks: Mapping[type[Event], Callable[[Any], None]] = {
            AttemptBegan: self._attempt_began,
            AttemptCut: self._attempt_cut,
            PostRecorded: self._post_recorded,
            ToolBegan: self._tool_began,
            WordsAccepted: self._words_accepted,
        }
        """What is called for which event."""

    def _words_accepted(self, event: WordsAccepted) -> None:
        self._accepted[event.words.id] = len(self._accepted)
        self._there[event.words.id] = frozenset(self._router.turns)

    def _attempt_began(self, event: AttemptBegan) -> None:
        self._ended_by.pop(event.role, None)
        self._last.pop(event.role, None)

    def _attempt_cut(self, event: AttemptCut) -> None:
        if event.words is None:
            return
        self._ended_by.setdefault(event.role, []).append(event.words)
        aim = self._aims.get(event.words)
        # Words that cut at once let those that wait go first, in the same step, whatever step that ends.
        forced = self._accepted.get(event.words, 0) + 1 < len(self._accepted)
        if aim is None or aim.words.delivery != "after_step" or forced:
            return
        for top in self._router.turns:
            if top.post.id == event.post:
                in_step = [turn for turn in ended_with(top) if turn.in_step and turn in self._there[event.words]]
                if in_step:
                    self._found(f"words that were to wait for the end of a step have ended that of {in_step}")

    def _post_recorded(self, event: PostRecorded) -> None:
        post = event.post
        if post.marks.kind in _WORDS:
            self._words_recorded(post.marks.words or "", post.send_to)
        elif post.marks.kind in _ASKED:
            turn = next(reversed(self._router.turns), None)
            if turn is not None and turn.post is post and turn.asker is not None and turn.asker.role == post.send_from:
                self._look_at_gate(turn.asker, f"asked {post.send_to}")

    def _words_recorded(self, words_id: str, role: str) -> None:
        if words_id not in self._ended_by.get(role, ()):
            return
        if sum(turn.role == role and turn.state == "running" for turn in self._router.turns) > 1:
            return  # beside a question: order is kept for each turn, and the first of them to end records the words
        number = self._accepted.get(words_id, 0)
        if number < self._last.get(role, -1):
            self._found(f"{role} has {words_id} behind words that were accepted later and ended the same attempt")
        self._last[role] = max(number, self._last.get(role, -1))

    def _tool_began(self, event: ToolBegan) -> None:
        for turn in self._router.turns:
            if turn.post.id == event.post and turn.role == event.role:
                self._look_at_gate(turn, f"called {event.tool}")

    def _look_at_gate(self, turn: Turn, did: str) -> None:
        if (self._router.gate.paused or turn.holds) and not turn.shields:
            self._found(f"{turn} {did} though it was to stop at its boundary")


def ended_with(turn: Turn) -> Iterator[Turn]:
    """A running turn that is cut, and those below that are recalled with it."""
    if turn.state == "running":
        yield turn
        if not turn.shields:
            for below in turn.waits:
                yield from ended_with(below)
