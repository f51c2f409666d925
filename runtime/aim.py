"""Aim: words that are not settled yet, the turns they wait for, and the turns they were aimed at."""

from __future__ import annotations

from collections.abc import Callable

from .errors import PostRefused
from .json_value import frozen
from .post import Marks, Post
from .reach import Reach, find_leaves, find_reach
from .receipt import Words
from .router import Router
from .turn import Turn
from .user_message import UserMessage


class Aim:
    """Made when words are accepted; changed by interventions alone."""

    __slots__ = ("_held", "author", "captured", "homes", "number", "open", "was_cut", "words")

    def __init__(self, words: Words, number: int, author: Turn | None = None) -> None:
        self.words = words
        self.author = author
        """The turn that speaks; None for the user."""
        self.number = number
        """The order of acceptance."""
        self.captured: dict[Turn, None] = {}
        """The turns whose step, or end, is waited for."""
        self._held: dict[Turn, None] = {}
        """Those of them that stop at their next boundary."""
        self.open: dict[Turn, None] = {}
        """Tops asked to end their attempt, of which it is not yet known whether they finished first."""
        self.was_cut = False
        self.homes: dict[Turn, None] = {}
        """Turns that have the words, or will when their attempt has ended."""

    @property
    def after_step(self) -> bool:
        """Whether it waits for steps to end."""
        return self.words.delivery == "after_step"

    def reach(self, router: Router) -> Reach:
        """Whom the words reach now."""
        return find_reach(router, self.words.level, self.words.role, self.author)

    def wait_for_leaves(self, router: Router) -> None:
        """For words after a turn: those of the moment are to end."""
        if not self.after_step:
            self.captured = dict.fromkeys(find_leaves(router, self.words.role))

    def may_go(self, router: Router) -> bool:
        """Whether the waiting is over: all captured turns have ended, or none is inside a step.

        Whom the words would reach is looked up anew: the step of one that came later is waited for, too.
        """
        if not self.after_step:
            return all(turn.latest.over for turn in self.captured)
        self.captured.update((turn, None) for _, turn in self.reach(router).steps if turn is not None)
        # What works for a step that is waited for goes on: that step would never end.
        open_turns = [turn for turn in self.captured if turn.state != "ended"]
        self._hold({turn: None for turn in open_turns if not self._serves_a_step(turn)}, router)
        return not any(turn.in_step for turn in open_turns)

    def let_go(self, router: Router) -> None:
        """Nothing is waited for any more."""
        self.captured = {}
        self._hold({}, router)

    def _hold(self, held: dict[Turn, None], router: Router) -> None:
        """These turns stop at their next boundary, and those that did go on."""
        before, self._held = self._held, held
        for turn in held:
            turn.holds += turn not in before
        let_go = [turn for turn in before if turn not in held]
        for turn in let_go:
            turn.holds -= 1
        if let_go:
            router.gate.look_again()

    def _serves_a_step(self, turn: Turn) -> bool:
        above = turn.asker
        while above is not None and not (above.in_step and above in self.captured):
            above = above.asker
        return above is not None


def write(words: Words, role: str, rewrite: Callable[[Post], Post]) -> Post:
    """The post by which words stand in a role's rounds, as the host rewrites it."""
    message = words.message
    marks = Marks(
        kind=words.kind,
        words=message.id,
        system_message=message.system_message,
        extra=frozen(message.extra),
    )
    said = post = Post.create(message.message, words.author, role, message.attachments, marks=marks)
    try:
        post = rewrite(said)
    except PostRefused as error:  # the words stand as they were said, and the receipt has what was raised
        words.errors.append(error)
    if post is not said:
        extra, system_message = post.marks.extra, post.marks.system_message
        words.rewritten[role] = UserMessage(post.message, post.attachment_list, system_message, words.id, extra)
    return post
