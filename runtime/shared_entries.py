"""SharedEntries: the entries of shared memory that hold now.

The rule to know: those of the current round stand apart until the next one begins. What was for the conversation joins
the others then; what was for the round is gone, as is all of a round that failed or was stopped.
"""

from __future__ import annotations

from .post import Post
from .round import RoundState
from .shared_memory import EntryScope, EntryType, SharedMemoryEntry

_Writer = tuple[str, EntryScope]
"""A role writes for the conversation and for the round beside each other."""


class SharedEntries:
    """By type and role, the newest last. Changed by memory alone."""

    __slots__ = ("_answers", "_counts", "_current", "_kept")

    def __init__(self) -> None:
        self._kept: dict[EntryType, dict[_Writer, SharedMemoryEntry]] = {}
        """What earlier rounds left for the conversation."""
        self._current: dict[EntryType, dict[_Writer, SharedMemoryEntry]] = {}
        self._counts = True
        """Whether what the current round shares holds."""
        self._answers: dict[EntryType, tuple[SharedMemoryEntry, ...]] = {}

    def add(self, post: Post) -> None:
        """Files what a post of the current round shares."""
        for attachment in post.attachment_list:
            entry = attachment.extra
            if self._counts and isinstance(entry, SharedMemoryEntry):
                _put_last(self._current.setdefault(entry.type, {}), (post.send_from, entry.scope), entry)
                self._answers.pop(entry.type, None)

    def end_round(self, state: RoundState) -> None:
        """The current round is over; if it came to nothing, so did what it shared and will share."""
        if state in ("failed", "stopped"):
            self._take_current()
            self._counts = False

    def begin_round(self) -> None:
        """The round that was current is an earlier one."""
        for entry_type, entries in self._take_current().items():
            kept = self._kept.setdefault(entry_type, {})
            for writer, entry in entries.items():
                if entry.scope == "conversation":
                    _put_last(kept, writer, entry)
        self._counts = True

    def of(self, entry_type: EntryType) -> tuple[SharedMemoryEntry, ...]:
        """The entries of a type that hold now, at most one a role: the same tuple while nothing is new."""
        answer = self._answers.get(entry_type)
        if answer is None:
            answer = self._answers[entry_type] = self._built(entry_type)
        return answer

    def _built(self, entry_type: EntryType) -> tuple[SharedMemoryEntry, ...]:
        newest = dict(self._kept.get(entry_type, {}))
        for writer, entry in self._current.get(entry_type, {}).items():
            _put_last(newest, writer, entry)
        return tuple(
            entry for (role, scope), entry in newest.items() if scope == "round" or (role, "round") not in newest
        )

    def _take_current(self) -> dict[EntryType, dict[_Writer, SharedMemoryEntry]]:
        taken, self._current = self._current, {}
        for entry_type in taken:
            self._answers.pop(entry_type, None)
        return taken


def _put_last(entries: dict[_Writer, SharedMemoryEntry], writer: _Writer, entry: SharedMemoryEntry) -> None:
    """Replaces the writer's entry; it is the newest now."""
    entries.pop(writer, None)
    entries[writer] = entry
