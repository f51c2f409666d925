"""Dead letters: posts that nobody will take, kept where a host can look at them."""

from __future__ import annotations

from collections.abc import Iterator

from .event import DeadLetter, Event
from .post import Post
from .subscription import Publisher

DEAD_LETTERS_KEPT = 1000


class DeadLetters:
    """The last of them, oldest first."""

    __slots__ = ("_events", "_letters")

    def __init__(self, events: Publisher[Event]) -> None:
        self._events = events
        self._letters: list[DeadLetter] = []

    def add(self, post: Post, reason: str) -> None:
        """Keeps a post, and says so to whoever watches."""
        letter = DeadLetter(post, reason)
        self._letters.append(letter)
        del self._letters[:-DEAD_LETTERS_KEPT]
        if self._events.wanted:
            self._events.publish(letter)

    def __iter__(self) -> Iterator[DeadLetter]:
        return iter(self._letters)
