"""Aim: words that are not settled yet, the turns they wait for, and the turns they were aimed at."""

from __future__ import annotations

from collections.abc import Iterable

from .receipt import Words
from .turn import Turn


class Aim:
    """Made when words are accepted; changed by interventions alone."""

    __slots__ = ("captured", "homes", "number", "open", "was_cut", "words")

    def __init__(self, words: Words, number: int) -> None:
        self.words = words
        self.number = number
        """The order of acceptance."""
        self.captured: tuple[Turn, ...] = ()
        """The turns whose step, or end, is waited for."""
        self.open: dict[Turn, None] = {}
        """Tops asked to end their attempt, of which it is not yet known whether they finished first."""
        self.was_cut = False
        self.homes: dict[Turn, None] = {}
        """Turns that have the words, or will when their attempt has ended."""

    def capture(self, turns: Iterable[Turn]) -> None:
        """Waits for these turns; those whose step is waited for are held at their next boundary."""
        self.captured = tuple(turns)
        if self.words.delivery == "after_step":
            for turn in self.captured:
                turn.holds += 1

    @property
    def ready(self) -> bool:
        """Whether the waiting is over: no captured turn is inside a step, or all have ended."""
        if self.words.delivery == "after_step":
            return not any(turn.in_step for turn in self.captured if turn.state != "ended")
        return all(turn.state == "ended" for turn in self.captured)

    def let_go(self) -> None:
        """Nothing is waited for any more."""
        if self.words.delivery == "after_step":
            for turn in self.captured:
                turn.holds -= 1
        self.captured = ()
