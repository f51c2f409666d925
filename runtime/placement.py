"""Placement: where the user's words went, kept beside the runtime's own account of them, and how the two compare."""

from __future__ import annotations

from collections.abc import Iterator

import trio

from .post import Post
from .receipt import Words


class Placement:
    """Filled by the referee, event by event."""

    def __init__(self) -> None:
        self.rounds_ended: dict[str, tuple[float, str]] = {}
        """When rounds ended, and how."""
        self._placed: dict[str, dict[str, str]] = {}
        """By the id of words: the roles whose rounds hold them, and into which round they were recorded."""
        self._offered: set[tuple[str, str]] = set()
        """Words, and the roles in whose rounds they lay when an attempt of theirs began."""
        self._aimed_at: dict[str, float] = {}
        """When words first took hold: at the call, or when their delivery was due."""

    def aimed(self, words_id: str) -> None:
        """The words have cut an attempt."""
        self._aimed_at.setdefault(words_id, trio.current_time())

    def recorded(self, post: Post, round_id: str) -> bool:
        """Words were recorded for a role; False if it had them already."""
        words_id = post.marks.words or ""
        self.aimed(words_id)
        roles = self._placed.setdefault(words_id, {})
        new = post.send_to not in roles
        roles[post.send_to] = round_id
        return new

    def attempt_began(self, role: str) -> None:
        """From here on the role can read what lies in its rounds."""
        self._offered.update((words, role) for words, roles in self._placed.items() if role in roles)

    def find_lost(self, words: Words, injected_at: float) -> Iterator[str]:
        """What is wrong with the end of these words, if anything is."""
        if words.action in ("started", "waiting"):
            return
        placed = self._placed.get(words.id, {})
        if words.settled is None or (words.settled == "missed") == bool(placed):
            yield f"{words.receipt}, recorded for {list(placed)}"
        at = self._aimed_at.get(words.id, injected_at)
        without = f"work went on without {words.receipt}"
        if words.settled == "missed" and words.reached:
            if not any(time == at for time, _ in self.rounds_ended.values()):
                yield without
        elif words.settled == "told" and words.role is None:
            offered = any((words.id, role) in self._offered for role in placed)
            ends = [self.rounds_ended.get(round_id, (at, "")) for round_id in placed.values()]
            if not offered and any(state == "finished" and time > at for time, state in ends):
                yield without
