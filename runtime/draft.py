"""Draft: what an attempt has so far and has not yet recorded.

It belongs to one attempt. Interrupted, its text becomes the partial post; taken, it is the author's to record.
"""

from __future__ import annotations

from collections.abc import Callable

from .errors import AttemptEnded


class Draft:
    """Text written piece by piece. Sync throughout: between writing and taking no cancellation can fall."""

    __slots__ = ("_attempt", "_grew", "_pieces", "_role", "_sealed")

    def __init__(self, role: str, attempt: int, grew: Callable[[str], None]) -> None:
        self._role = role
        self._attempt = attempt
        self._grew = grew
        self._pieces: list[str] = []
        self._sealed = False

    @property
    def text(self) -> str:
        """All that was written and not taken."""
        return "".join(self._pieces)

    def write(self, text: str) -> None:
        """Adds a piece, such as a delta of a model's reply. Raises AttemptEnded once the attempt is over."""
        self._refuse_if_sealed()
        if text:
            self._pieces.append(text)
            self._grew(text)

    def take(self) -> str:
        """All that was written, and the draft is empty again. Record it in the same step, without an `await`."""
        self._refuse_if_sealed()
        text = self.text
        self._pieces.clear()
        return text

    def seal(self) -> str:
        """Ends the draft with its attempt; gives what was left in it."""
        self._sealed = True
        self._grew = _nothing
        text = self.text
        self._pieces.clear()
        return text

    def _refuse_if_sealed(self) -> None:
        if self._sealed:
            raise AttemptEnded(self._role, self._attempt)


def _nothing(text: str) -> None:
    """What a sealed draft tells of its growth; it holds nothing of its attempt."""
