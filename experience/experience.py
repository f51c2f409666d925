"""Experience: which lessons of earlier conversations a role is given. Settings, and the pools that they stand for."""

from __future__ import annotations

from dataclasses import dataclass, field

from callboard.runtime.transcript_file import FilePath

from .chosen_folder import chosen_folder
from .lesson import Found
from .pool import ExperiencePool
from .pools import Pools


@dataclass(frozen=True, slots=True)
class Experience:
    """`Role(model, experience=Experience("lessons"))`; raises ValueError for a limit or a threshold that is none."""

    folder: FilePath
    use: bool = True
    dynamic_sub_path: bool = False
    """Whether the newest `experience_sub_path` in shared memory chooses the sub folder; without one none are given."""
    limit: int | None = None
    """How many lessons one query may bring, the best; None for all that are alike enough."""
    threshold: float | None = None
    """From which score on a lesson is alike enough; None for what the embedder says."""
    pools: Pools = field(default_factory=Pools, repr=False, compare=False)
    """Where the lessons are kept in memory. Give the same to several, and they share them."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit is a whole number from 1 on, or None, not {self.limit!r}")
        if self.threshold is not None and not -1 <= self.threshold <= 1:
            raise ValueError(f"threshold is a number from -1 to 1, or None, not {self.threshold!r}")

    def pool(self, sub_path: str = "") -> ExperiencePool:
        """The pool of the folder, or of a sub folder; `pool().refresh` is what brings it up to date.

        Raises InvalidFile for a folder that is not there, and for a sub path that leads out of the folder.
        """
        return self.pools.find(chosen_folder(self.folder, sub_path))

    async def retrieve(self, query: str, sub_path: str = "") -> tuple[Found, ...]:
        """The lessons that are alike enough to the query, the best first. Nothing is refreshed for it.

        Cancelled: nothing happened. Raises what `pool` raises, and ModelError of the embedder's.
        """
        return await self.pool(sub_path).retrieve(query, threshold=self.threshold, limit=self.limit)
