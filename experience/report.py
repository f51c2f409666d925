"""Report: what a refresh has done, and what it tells while it does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from callboard.runtime.errors import InvalidFile
from callboard.runtime.value import value

Step: TypeAlias = Literal["embedding", "summarizing"]


@value
class Progress:
    """How far a refresh has come."""

    step: Step
    id: str
    """The lesson that is worked on; the first one, of those that are embedded together."""
    done: int
    """Lessons of this refresh that are finished."""
    total: int
    """Lessons that there is work for."""


OnProgress: TypeAlias = Callable[[Progress], object]
"""Called before each step, in trio's thread."""


@value
class Failure:
    """A conversation that the model made no lesson of; the next refresh tries again."""

    id: str
    reason: str


@value
class RefreshReport:
    """What a refresh has done. Lessons are named by their ids, in order."""

    summarized: tuple[str, ...] = ()
    """New lessons of conversations."""
    embedded: tuple[str, ...] = ()
    """Lessons with a new vector, those of conversations too."""
    unchanged: int = 0
    """Lessons for which there was nothing to do."""
    waiting: tuple[str, ...] = ()
    """Conversations without a lesson: no model was given, it failed, or it was not asked any more."""
    failures: tuple[Failure, ...] = ()
    orphans: tuple[str, ...] = ()
    """Lessons whose source has gone. They are found as before; `remove` removes them."""
    faults: tuple[InvalidFile, ...] = ()
    """Files that were passed over."""
