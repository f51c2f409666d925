"""Loader: keeps the index of a folder in step with its files; of these it opens only those that changed.

The rule to know: it is sync and runs in threads, one at a time; what it has loaded is replaced as a whole, so readers
never wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import time_ns

from callboard.runtime.errors import InvalidFile
from callboard.runtime.transcript_file import FilePath

from .index import Index
from .index_file import Space, open_index
from .lesson import Kind, Lesson
from .listing import read_listing
from .reading import Check, Reading

_TURN = 0.05
"""Seconds after which a thread that waits for another one asks whether it is still wanted."""
_YOUNG = 50_000_000
"""Nanoseconds in which a folder may change twice without its time of change saying so."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a folder held when it was loaded."""

    index: Index
    waiting: dict[str, Lesson] = field(default_factory=dict)
    """By id, the lessons that have a text, and no vector of the present embedder yet."""
    sources: dict[str, Kind] = field(default_factory=dict)
    faults: tuple[InvalidFile, ...] = ()


class Loader:
    """What one folder holds for one embedder."""

    def __init__(self, folder: FilePath, space: Space) -> None:
        self.folder = Path(folder)
        self.loaded: Loaded | None = None
        """None until it was loaded for the first time."""
        self._space = space
        self._lock = Lock()
        self._seen: int | None = None
        """When the folder had changed last as it was loaded; None if that proves nothing."""

    def is_current(self) -> bool:
        """Whether no file came, went or was replaced since; one that was changed in place is not seen."""
        return self.loaded is not None and self._seen is not None and self._seen == self._changed()

    def load(self, check: Check, *, verify: bool = False) -> Loaded:
        """What the folder holds now; all files are opened and compared by digest to `verify` what is known of them.

        Raises InvalidFile for a folder that cannot be read, and what `check` raises.
        """
        with _turn(self._lock, check):
            return self._load(check, verify)

    def catch_up(self, check: Check) -> Loaded:
        """As `load`, unless the folder is as it was, or another thread has loaded it meanwhile."""
        with _turn(self._lock, check):
            return self.loaded if self.loaded is not None and self.is_current() else self._load(check, False)

    def _load(self, check: Check, verify: bool) -> Loaded:
        changed = self._changed()
        seen = changed if changed is not None and changed < time_ns() - _YOUNG else None
        listing = read_listing(self.folder)
        base = self.loaded.index if self.loaded is not None else open_index(self.folder, self._space)
        reading = Reading(listing, base, self._space, verify=verify)
        index = reading.run(check)
        self.loaded = Loaded(index, reading.waiting, listing.sources, (*listing.faults, *reading.faults))
        self._seen = seen
        return self.loaded

    def _changed(self) -> int | None:
        try:
            return self.folder.stat().st_mtime_ns
        except OSError:
            return None


@contextmanager
def _turn(lock: Lock, check: Check) -> Iterator[None]:
    while not lock.acquire(timeout=_TURN):
        check()
    try:
        yield
    finally:
        lock.release()
