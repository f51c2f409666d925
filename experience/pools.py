"""Pools: one pool of lessons for each folder, made when it is first asked for.

The rule to know: whoever is given the same `Pools` shares them, roles and conversations alike; nothing is shared behind
anybody's back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from callboard.runtime.transcript_file import FilePath

from .pool import ExperiencePool


class Pools:
    """The pools of one process; `make` makes that of a folder: `Pools(partial(ExperiencePool, embedder=…))`."""

    def __init__(self, make: Callable[[Path], ExperiencePool] = ExperiencePool) -> None:
        self._make = make
        self._pools: dict[Path, ExperiencePool] = {}

    def find(self, folder: FilePath) -> ExperiencePool:
        """The pool of that folder, always the same one."""
        path = Path(folder).resolve()
        found = self._pools.get(path)
        # A thread that makes one at the same time is given this one, or gives its own to both.
        return found if found is not None else self._pools.setdefault(path, self._make(path))

    def __len__(self) -> int:
        return len(self._pools)

    def __repr__(self) -> str:
        return f"<Pools of {len(self._pools)} folders>"
