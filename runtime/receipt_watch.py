"""Receipt watch: holds against one conversation that no receipt says a thing before it is so.

It counts for itself which attempts an intervention ended, and in whose rounds the words lie that nobody has had a
chance to read. What does not agree with the receipt is told to `found` in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .boundary_watch import ended_with
from .conversation import Conversation
from .event import AttemptBegan, AttemptCut, Event, PostRecorded, WordsSettled
from .receipt import Words
from .turn import Turn

_WORDS = ("intervention", "nudge")


class ReceiptWatch:
    """Of all words of one conversation that are not settled."""

    def __init__(self, conversation: Conversation, found: Callable[[str], None]) -> None:
        self._router = conversation._router
        self._aims = conversation._interventions._aims
        self._found = found
        self._unwinding: dict[str, dict[Turn, int]] = {}
        """By the id of words: the turns that they cut, with the number of the attempt."""
        self._unread: dict[str, set[str]] = {}
        """By role: words that came into its rounds when no attempt of it could read them."""
        self.looks: Mapping[type[Event], Callable[[Any], None]] = {
            AttemptBegan: self._attempt_began,
            AttemptCut: self._attempt_cut,
            PostRecorded: self._post_recorded,
            WordsSettled: self._settled,
        }
        """What is called for which event."""

    def _attempt_cut(self, event: AttemptCut) -> None:
        if event.words is None:
            return
        cut = self._unwinding.setdefault(event.words, {})
        for top in self._running(event.role):
            if top.post.id == event.post:
                cut.update((turn, turn.attempts) for turn in ended_with(top))

    def _attempt_began(self, event: AttemptBegan) -> None:
        self._look_at_unwinding()
        for words_id in self._unread.pop(event.role, ()):
            words = self._words(words_id)
            if words is not None and event.role in words.seen_by:
                self._found(f"{words.receipt}: seen before {event.role} could read them")

    def _post_recorded(self, event: PostRecorded) -> None:
        marks = event.post.marks
        if marks.kind in _WORDS:
            if len(self._running(event.post.send_to)) <= 1:  # an attempt beside a question goes on, and may read
                self._unread.setdefault(event.post.send_to, set()).add(marks.words or "")
        elif marks.state != "not_started":  # that is recorded while the cut is under way
            self._look_at_unwinding()

    def _settled(self, event: WordsSettled) -> None:
        left = self._still_unwinding(event.words)
        if left:
            self._found(f"{event.words} were settled as {event.outcome} while {left} unwind")

    def _look_at_unwinding(self) -> None:
        for words_id in list(self._unwinding):
            left = self._still_unwinding(words_id)
            words = self._words(words_id)
            if not left:
                del self._unwinding[words_id]
            elif words is not None and not words.leaving:
                self._found(f"{words.receipt} says that all has stopped while {left} unwind")

    def _still_unwinding(self, words_id: str) -> list[Turn]:
        cut = self._unwinding.get(words_id, {}).items()
        return [turn for turn, attempt in cut if turn.state == "running" and turn.attempts == attempt]

    def _running(self, role: str) -> list[Turn]:
        return [turn for turn in self._router.turns if turn.role == role and turn.state == "running"]

    def _words(self, words_id: str) -> Words | None:
        aim = self._aims.get(words_id)
        return None if aim is None else aim.words
