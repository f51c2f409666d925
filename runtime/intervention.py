"""Interventions: who is reached, who is cut, when the words are recorded.

`submit` is sync: it accepts the words, then cancels. They are recorded for a reached role in the step in which its cut
attempt has fully ended, after all that the attempt left; so a role reads finished work, partial work, intervention, in
this order, whatever happened at the same tick. If no reached turn could be cut because it had just finished, the words
count as arrived after that and are aimed again; with nobody left they are missed.

Words with another delivery than now wait here, in the order of acceptance, until what they wait for has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

from .aim import Aim, write
from .event import WordsAccepted, WordsSettled
from .post import Post
from .reach import Reach
from .receipt import Words
from .router import Router
from .turn import Turn
from .user_message import UserMessage


class Interventions:
    """All words of one conversation that are not settled."""

    def __init__(self, router: Router, accept: Callable[[UserMessage], None]) -> None:
        self._router = router
        self._accept = accept
        """Puts the words into memory's log."""
        self._numbers = count()
        self._aims: dict[str, Aim] = {}
        self._late: list[Aim] = []
        self._waiting: list[Aim] = []
        self._looking = False
        self.on_missed: Callable[[Words], None] = lambda words: None
        self.rewrite: Callable[[Post], Post] = lambda post: post
        """What the host makes of the post by which words stand in a role's rounds."""
        router.on_boundary = self.look

    def submit(self, words: Words, author: Turn | None = None) -> None:
        """Accepts and cuts, in this step, or waits. With nobody to reach nothing is stored and the words are missed.

        `author` is the turn that speaks; None for the user. Raises UnknownRole.
        """
        if words.role is not None:
            self._router.directory.find(words.role)
        aim = Aim(words, next(self._numbers), author)
        if not aim.reach(self._router).steps:
            words.settled = "missed"
            self.on_missed(words)
            return
        self._accepted(words)
        self._aims[words.id] = aim
        if words.delivery == "now":
            while earlier := next((waiting for waiting in self._waiting if waiting.after_step), None):
                self._release(earlier)
            self._deliver(aim)
            return
        words.action = "waiting"
        words.held_back = True
        aim.wait_for_leaves(self._router)
        self._waiting.append(aim)
        self.look()

    def look(self) -> None:
        """Delivers, in the order of acceptance, the words that have waited long enough."""
        if self._looking or not self._waiting:
            return
        self._looking = True
        try:
            while aim := next((aim for aim in self._waiting if aim.may_go(self._router)), None):
                self._release(aim)
        finally:
            self._looking = False

    def drop(self) -> list[Words]:
        """Words that wait meet nobody any more: the round is being ended, or the conversation closed. Gives them."""
        dropped, self._waiting = self._waiting, []
        for aim in dropped:
            self._let_go(aim)
            self._settle(aim)
        return [aim.words for aim in dropped]

    def follow(self, words: Words, turn: Turn) -> None:
        """Words that have become a round: they lie in its first post."""
        words.action = "started"
        words.settled = None
        words.reached[turn.role] = None
        words.placed.add(turn.role)
        aim = self._aims[words.id] = Aim(words, next(self._numbers))
        aim.homes[turn] = None

    def attempt_ended(self, turn: Turn, finished: bool, kept: Iterable[Post], errors: Iterable[Exception] = ()) -> None:
        """Records what was pending for this turn; keeps the words that came too late, to be aimed again."""
        if not turn.pending and not turn.causes:
            return
        for words in turn.causes:
            words.leaving -= 1
            words.kept += kept
            words.errors += errors
            words.changed()
        pending, turn.causes, turn.pending = turn.pending, (), ()
        for aim in self._in_order(pending):
            self._fulfil(aim, turn, finished)

    def turn_ended(self, turn: Turn) -> None:
        """Aims again what came too late; the end of a round settles what is left."""
        if not self._aims:
            return
        late, self._late = self._late, []
        for aim in late:
            self._deliver(aim)
        self.look()
        if not any(other.foreground for other in self._router.turns):
            for aim in list(self._aims.values()):
                if aim not in self._waiting and all(home.state == "ended" for home in aim.homes):
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

    def _release(self, aim: Aim) -> None:
        """First cuts, then lets go: in the other order a step might begin between the two."""
        self._waiting.remove(aim)
        self._deliver(aim)
        self._let_go(aim)

    def _let_go(self, aim: Aim) -> None:
        aim.words.held_back = False
        aim.let_go(self._router)

    def _deliver(self, aim: Aim) -> None:
        """Aims at what runs now; with nobody there the words are missed."""
        words = aim.words
        reach = aim.reach(self._router)
        if reach.steps:
            words.action = "intervened"
            self._apply(aim, reach)
        else:
            self._settle(aim)
            self.on_missed(words)

    def heard(self, turn: Turn) -> list[Words]:
        """The words that a turn has received, and those that will be recorded for it, in that order."""
        return [*turn.heard, *(aim.words for aim in self._in_order(turn.pending))]

    def _in_order(self, pending: Iterable[Words]) -> list[Aim]:
        return sorted((self._aims[words.id] for words in pending), key=lambda aim: aim.number)

    def _fulfil(self, aim: Aim, turn: Turn, finished: bool) -> None:
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

    def _apply(self, aim: Aim, reach: Reach) -> None:
        words = aim.words
        for name, home in reach.homes().items():
            asked_again = name not in words.placed and home is not None and home.state == "queued"
            if name in words.reached and not asked_again:
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

    def _cut(self, aim: Aim, top: Turn) -> None:
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
            if turn.shields:
                words.spared[turn.role] = None
            if turn.state == "running":
                words.leaving += 1
                turn.causes = (*turn.causes, words)
            elif turn.account is not None:
                words.kept.append(turn.account)

    def _place(self, words: Words, role: str) -> None:
        if role in words.placed:
            return
        words.placed.add(role)
        self._router.record(self.post_for(words, role))

    def post_for(self, words: Words, role: str) -> Post:
        """The post by which the words stand in a role's rounds, or will, as the host lets them."""
        if role not in words.posts:
            words.posts[role] = write(words, role, self.rewrite)
        return words.posts[role]

    def _settle(self, aim: Aim) -> None:
        words = aim.words
        del self._aims[words.id]
        words.settled = words.outcome()
        if words.settled == "missed":
            words.action = "missed"
        if self._router.events.wanted:
            self._router.events.publish(WordsSettled(words.id, words.settled))
        words.changed()
