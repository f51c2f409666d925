"""Interventions: who is reached, who is cut, when the words are recorded.

`submit` is sync: it accepts the words, then cancels. They are recorded for a reached role in the step in which its cut
attempt has fully ended, after all that the attempt left; so a role reads finished work, partial work, intervention, in
this order, whatever happened at the same tick. If no reached turn could be cut because it had just finished, the words
count as arrived after that and are aimed again; with nobody left they are missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

from .directory import USER
from .event import WordsAccepted, WordsSettled
from .json_value import frozen
from .post import Marks, Post
from .reach import Reach, find_reach
from .receipt import Words
from .router import Router
from .turn import Turn
from .user_message import UserMessage


class _Aim:
    """Words that are not settled yet, and the turns they were aimed at."""

    def __init__(self, words: Words, number: int) -> None:
        self.words = words
        self.number = number
        self.open: dict[Turn, None] = {}
        """Tops asked to end their attempt, of which it is not yet known whether they finished first."""
        self.was_cut = False
        self.homes: dict[Turn, None] = {}
        """Turns that have the words, or will when their attempt has ended."""


class Interventions:
    """All words of one conversation that are not settled."""

    def __init__(self, router: Router, accept: Callable[[UserMessage], None]) -> None:
        self._router = router
        self._accept = accept
        """Puts the words into memory's log."""
        self._numbers = count()
        self._aims: dict[str, _Aim] = {}
        self._late: list[_Aim] = []
        self.on_missed: Callable[[Words], None] = lambda words: None

    def submit(self, words: Words) -> None:
        """Accepts and cuts, in this step. With nobody to reach nothing is stored and the words are missed.

        Raises UnknownRole.
        """
        reach = find_reach(self._router, words.level, words.role)
        if not reach.steps:
            words.settled = "missed"
            self.on_missed(words)
            return
        self._accepted(words)
        words.action = "intervened"
        aim = self._aims[words.id] = _Aim(words, next(self._numbers))
        self._apply(aim, reach)

    def follow(self, words: Words, turn: Turn) -> None:
        """Words that have become a round: they lie in its first post."""
        words.action = "started"
        words.settled = None
        words.reached[turn.role] = None
        words.placed.add(turn.role)
        aim = self._aims[words.id] = _Aim(words, next(self._numbers))
        aim.homes[turn] = None

    def attempt_ended(self, turn: Turn, finished: bool, kept: Iterable[Post], error: Exception | None = None) -> None:
        """Records what was pending for this turn; keeps the words that came too late, to be aimed again."""
        if not turn.pending and not turn.causes:
            return
        for words in turn.causes:
            words.leaving -= 1
            words.kept += kept
            words.errors += [error] if error is not None else []
            words.changed()
        pending, turn.causes, turn.pending = turn.pending, (), ()
        for aim in sorted((self._aims[words.id] for words in pending), key=lambda aim: aim.number):
            self._fulfil(aim, turn, finished)

    def turn_ended(self, turn: Turn) -> None:
        """Aims again what came too late; the end of a round settles what is left."""
        if not self._aims:
            return
        late, self._late = self._late, []
        for aim in late:
            reach = find_reach(self._router, aim.words.level, aim.words.role)
            if reach.steps:
                self._apply(aim, reach)
            else:
                self._settle(aim)
                self.on_missed(aim.words)
        if not any(other.foreground for other in self._router.turns):
            for aim in list(self._aims.values()):
                if all(home.state == "ended" for home in aim.homes):
                    self._settle(aim)

    def saw(self, role: str, words_ids: Iterable[str]) -> None:
        """A role has read words, from memory or `user_words`."""
        for words_id in words_ids:
            aim = self._aims.get(words_id)
            if aim is not None and role in aim.words.reached:
                aim.words.seen_by.add(role)
                aim.words.changed()

    def _accepted(self, words: Words) -> None:
        self._accept(words.message)
        if self._router.events.wanted:
            self._router.events.publish(WordsAccepted(words.message))

    def _fulfil(self, aim: _Aim, turn: Turn, finished: bool) -> None:
        words = aim.words
        asked = turn in aim.open
        aim.open.pop(turn, None)
        aim.was_cut = aim.was_cut or (asked and not finished)
        if asked and finished:
            words.interrupted.pop(turn.role, None)
        too_late = asked and finished and not aim.open and not aim.was_cut and words.role is None
        if too_late:
            self._late.append(aim)
        if too_late and turn.asker is None and turn.successor is None:
            return  # the round is over: these words may still become the next one
        if asked and finished:
            words.told[turn.role] = None
        self._place(words, turn.role)
        turn.heard = (*turn.heard, words)

    def _apply(self, aim: _Aim, reach: Reach) -> None:
        words = aim.words
        for name, home in reach.homes().items():
            if name in words.reached:
                continue
            words.reached[name] = None
            if home is not None and home.state == "running":
                aim.homes[home] = None
                home.pending = (*home.pending, words)
                continue
            words.told[name] = None
            self._place(words, name)
        for _, turn in reach.steps:
            if turn is not None and turn.state == "queued" and words not in turn.heard:
                aim.homes[turn] = None
                turn.heard = (*turn.heard, words)
        for top in reach.tops:
            if top.state == "running":
                self._cut(aim, top)
        for turn in self._router.turns:
            if words.role is None and not turn.foreground and turn.asker is None:
                words.spared[turn.role] = None
        words.changed()

    def _cut(self, aim: _Aim, top: Turn) -> None:
        words = aim.words
        aim.open[top] = None
        aim.homes[top] = None
        words.interrupted[top.role] = None
        if words not in top.pending:
            top.pending = (*top.pending, words)
        cut = self._router.interrupt(top, words.id)
        for turn in reversed(cut):
            if turn is not top:
                words.recalled[turn.role] = None
            if turn.state == "running":
                words.leaving += 1
                turn.causes = (*turn.causes, words)
            elif turn.account is not None:
                words.kept.append(turn.account)

    def _place(self, words: Words, role: str) -> None:
        if role in words.placed:
            return
        words.placed.add(role)
        message = words.message
        marks = Marks(
            kind="intervention",
            words=message.id,
            system_message=message.system_message,
            extra=frozen(message.extra),
        )
        self._router.record(Post.create(message.message, USER, role, message.attachments, marks=marks))

    def _settle(self, aim: _Aim) -> None:
        words = aim.words
        del self._aims[words.id]
        words.settled = words.outcome()
        if words.settled == "missed":
            words.action = "missed"
        if self._router.events.wanted:
            self._router.events.publish(WordsSettled(words.id, words.settled))
        words.changed()
