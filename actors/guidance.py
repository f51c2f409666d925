"""Guidance: looks for the lessons and examples of earlier conversations that a role is to be given, and notes them.

The rule to know: nothing is refreshed for a reply, and no reply fails for want of lessons: what a query, a server of
embeddings or a sub folder does not bring is told by an event. Only a folder of the settings that is not there fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from callboard.experience.event import LessonsUsed, NoneGiven
from callboard.experience.examples import Examples
from callboard.experience.experience import Experience
from callboard.experience.lesson import Found
from callboard.prompts.library import Library
from callboard.prompts.material import Example, Material
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import InvalidFile, ModelError
from callboard.runtime.memory import get_shared_memory_entries
from callboard.runtime.post import USER, Post
from callboard.runtime.round import Round
from callboard.runtime.shared_memory import EntryType

from .given import Given, asides_of, examples_of, given_in, place_of, told_of

_LINE = "=" * 19


@dataclass(frozen=True, slots=True)
class Guidance:
    """What a role's settings say that its model is given."""

    experience: Experience | None
    examples: Examples | None
    library: Library
    roles: frozenset[str]
    """Who may take part in an example."""

    @property
    def wanted(self) -> bool:
        """Whether the model is to be given anything."""
        return any(settings is not None and settings.use for settings in (self.experience, self.examples))

    async def look(self, post: Post, context: TurnContext, rounds: Sequence[Round]) -> bool:
        """Whether something new was looked for, and noted: for another query, or from another sub folder.

        Cancelled: nothing is noted. Raises InvalidFile for a folder of the settings that is not there.
        """
        given = given_in(rounds, context.role)
        last = given[-1] if given else None
        sought = await self._sought(post, context, rounds)
        if last is not None and last.same_lessons(sought) and last.examples_of == sought.examples_of:
            return False
        if last is None or last.examples_of != sought.examples_of:
            sought = replace(sought, examples=await self._count(sought, post, context))
        else:
            sought = replace(sought, examples=last.examples)
        found: tuple[Found, ...] = ()
        if last is None or not last.same_lessons(sought):
            found = await self._retrieve(sought, post, context)
        # From here on there is no wait: what was found is noted in the step in which it is known.
        lessons = tuple((one.lesson.id, one.score) for one in found)
        noted = replace(sought, lessons=lessons, text=self._told(found, sought, given))
        context.record(extra=noted.to_extra())
        if lessons:
            context.emit(LessonsUsed(context.role, post.id, noted.query, lessons, noted.lessons_of or ""))
        return True

    async def added(self, material: Material) -> Material:
        """The material with what the notes of its present round tell."""
        given = given_in(material.rounds, material.role)
        first: list[tuple[Round, ...]] = []
        later: list[Example] = []
        for sub_path, one in examples_of(given):
            assert self.examples is not None, "who has no examples notes none"
            place = place_of(one, given)
            for found in (await self.examples.load(sub_path)).of_roles(self.roles):
                if place:
                    later.append(Example(found.rounds, place))
                else:
                    first.append(found.rounds)
        return replace(material, lessons=asides_of(given), examples=tuple(first), later_examples=tuple(later))

    async def _sought(self, post: Post, context: TurnContext, rounds: Sequence[Round]) -> Given:
        """What is to be looked for."""
        examples_of = await _chosen("example_sub_path", self.examples, context)
        if self.experience is None or not self.experience.use:
            return Given(examples_of=examples_of)
        lessons_of = await _chosen("experience_sub_path", self.experience, context)
        return Given(post.id, query_of(post, rounds, context.role), lessons_of, examples_of=examples_of)

    async def _count(self, sought: Given, post: Post, context: TurnContext) -> int:
        """How many examples there are. What is not there, or cannot be read, is told."""
        if self.examples is None or not self.examples.use:
            return 0
        if sought.examples_of is None:
            return _tell(post, context, "examples", _no_entry("example_sub_path"))
        try:
            folder = await self.examples.load(sought.examples_of)
        except InvalidFile as error:
            if not self.examples.dynamic_sub_path:
                raise
            return _tell(post, context, "examples", str(error))
        for fault in folder.faults:
            _tell(post, context, "examples", str(fault))
        return len(folder.of_roles(self.roles))

    async def _retrieve(self, sought: Given, post: Post, context: TurnContext) -> tuple[Found, ...]:
        """The lessons for the query. Why there are none is told, unless none is like it."""
        if self.experience is None or not self.experience.use:
            return ()
        if sought.lessons_of is None:
            _tell(post, context, "lessons", _no_entry("experience_sub_path"))
            return ()
        try:
            return await self.experience.retrieve(sought.query, sought.lessons_of)
        except (InvalidFile, ModelError) as error:
            if isinstance(error, InvalidFile) and not self.experience.dynamic_sub_path:
                raise
            _tell(post, context, "lessons", str(error))
            return ()

    def _told(self, found: Sequence[Found], sought: Given, given: Sequence[Given]) -> str:
        """The new ones of the lessons, each below a line, as TaskWeaver writes them."""
        told = told_of(given, sought.lessons_of)
        texts = [one.lesson.text for one in found if one.lesson.id not in told]
        if not texts:
            return ""
        others = any(one.lessons and one.lessons_of != sought.lessons_of for one in given)
        lessons = f"{_LINE}\n" + f"\n{_LINE}\n".join(texts)
        return self.library.render("fw.other_lessons" if others else "fw.lessons", lessons=lessons)


def query_of(post: Post, rounds: Sequence[Round], role: str) -> str:
    """What lessons are looked for by: the round's user query for a post of the user's, else the post's message.

    What the role has been told in the middle of its work on the post is added.
    """
    asked, words = post.message, list[str]()
    for one in reversed(rounds):
        posts = iter(one.post_list)
        begun = any(at.id == post.id for at in posts)
        later = posts if begun else one.post_list
        words[:0] = [at.message for at in later if at.marks.kind == "intervention" and at.send_to == role]
        if begun:
            asked = one.user_query.strip() or asked if post.send_from == USER else asked
            return "\n".join(filter(None, (asked, *words)))
    return asked


async def _chosen(type: EntryType, settings: Experience | Examples | None, context: TurnContext) -> str | None:
    """The sub folder: none for one's own folder, else what shared memory says last, None if that is nothing."""
    if settings is None or not settings.use:
        return None
    if not settings.dynamic_sub_path:
        return ""
    entries = await get_shared_memory_entries(context, type)
    return entries[-1].content.strip() or None if entries else None


def _no_entry(type: EntryType) -> str:
    return f"no role has put an {type} into shared memory"


def _tell(post: Post, context: TurnContext, what: Literal["lessons", "examples"], reason: str) -> int:
    context.emit(NoneGiven(context.role, post.id, what, reason))
    return 0
