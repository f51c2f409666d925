"""Given: what a role's model has been given of earlier conversations in a round, as the role's notes tell it.

The rule to know: what was found is noted in memory in the step in which it is known, and what a model is sent of it is
read from these notes alone. So the later calls of a round are given the same, at the same place, whatever becomes of
the files meanwhile; what is found later stands behind what was sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from callboard.prompts.material import Aside
from callboard.prompts.reply_format import Reply
from callboard.runtime.json_value import JsonValue
from callboard.runtime.post import Post
from callboard.runtime.round import Round

KEY = "given"
"""Under which the extra of a note's marks holds it. Models write no marks, so none can make such a note."""


@dataclass(frozen=True, slots=True)
class Given:
    """What one note tells."""

    request: str = ""
    """The id of the post that lessons were looked for; empty if none were to be looked for."""
    query: str = ""
    lessons_of: str | None = None
    """The sub folder of the lessons, empty for the folder itself; None if none was chosen."""
    lessons: tuple[tuple[str, float], ...] = ()
    """The id and the score of each that fits, the best first; those that were given before, too."""
    text: str = ""
    """The others, as the model is told them."""
    examples_of: str | None = None
    """The sub folder of the examples, as for lessons."""
    examples: int = 0
    """How many are shown."""
    note: str = ""
    """The id of the note."""

    def same_lessons(self, other: Given) -> bool:
        """Whether the same was looked for, at the same place."""
        return (self.request, self.query, self.lessons_of) == (other.request, other.query, other.lessons_of)

    def to_extra(self) -> dict[str, JsonValue]:
        """What stands in the note's marks."""
        return {
            KEY: {
                "request": self.request,
                "query": self.query,
                "lessons_of": self.lessons_of,
                "lessons": tuple({"id": id, "score": score} for id, score in self.lessons),
                "text": self.text,
                "examples_of": self.examples_of,
                "examples": self.examples,
            }
        }

    @classmethod
    def from_note(cls, post: Post) -> Given:
        """What the note tells that `to_extra` was put into."""
        noted: Any = post.marks.extra[KEY]
        lessons = tuple((one["id"], one["score"]) for one in noted["lessons"])
        return cls(**{**noted, "lessons": lessons, "note": post.id})


def given_in(rounds: Sequence[Round], role: str) -> tuple[Given, ...]:
    """What the role was given in the present round, in order."""
    posts = (post for one in rounds[-1:] for post in one.post_list)
    return tuple(Given.from_note(post) for post in posts if is_note(post) and post.send_from == role)


def is_note(post: Post) -> bool:
    """Whether the post is a note of what a role was given."""
    return post.marks.kind == "note" and post.send_from == post.send_to and KEY in post.marks.extra


def asides_of(given: Sequence[Given]) -> tuple[Aside, ...]:
    """The lessons as the composer takes them."""
    return tuple(Aside(one.text, place_of(one, given)) for one in given if one.text)


def place_of(one: Given, given: Sequence[Given]) -> str:
    """The post behind which it stands: none for the round's first note, which was made before its first call."""
    return "" if one is given[0] else one.note


def examples_of(given: Sequence[Given]) -> Iterator[tuple[str, Given]]:
    """The sub folder of each choice of examples in the round, and the note that made it."""
    chosen: str | None = None
    for one in given:
        if one.examples_of is not None and one.examples and one.examples_of != chosen:
            yield one.examples_of, one
        chosen = one.examples_of


def told_of(given: Sequence[Given], folder: str | None) -> frozenset[str]:
    """The ids of the lessons of that sub folder that the model has been told since it was chosen."""
    told: set[str] = set()
    for one in reversed(given):
        if one.lessons_of != folder:
            break
        told.update(id for id, _ in one.lessons)
    return frozenset(told)


def with_lessons(reply: Reply, given: Sequence[Given]) -> Reply:
    """The reply, whose first attachment says which lessons the model was sent; as it is, if there is none to say so."""
    lessons = scores_in(given)
    if not (lessons and reply.attachments):
        return reply
    first, *others = reply.attachments
    return replace(reply, attachments=(replace(first, extra={"lessons": lessons}), *others))


def scores_in(given: Sequence[Given]) -> tuple[JsonValue, ...]:
    """Each lesson that the model was sent in the round, with its newest score, and its sub folder if it has one."""
    newest = {(one.lessons_of, id): score for one in given for id, score in one.lessons}
    return tuple(
        {"id": id, "score": score, **({"folder": folder} if folder else {})} for (folder, id), score in newest.items()
    )
