"""Events of experience: what a host can watch of the lessons and examples that roles are given. As those of runtime."""

from __future__ import annotations

from typing import Literal

from callboard.runtime.event import Event
from callboard.runtime.value import value


@value
class LessonsUsed(Event):
    """Lessons of earlier conversations were found for a role's work, and its model is sent them from now on."""

    role: str
    post: str
    """The id of the post that the role works on."""
    query: str
    lessons: tuple[tuple[str, float], ...]
    """The id and the score of each, the best first."""
    folder: str = ""
    """The sub folder that they are of, if one was chosen."""


@value
class NoneGiven(Event):
    """A role was to be given lessons or examples, and is given none, or not all, for this reason."""

    role: str
    post: str
    what: Literal["lessons", "examples"]
    reason: str
