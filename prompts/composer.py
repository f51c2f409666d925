"""The composer: what a role has been through, as the messages that its model is sent.

The rule to know is the prefix rule, on which the caches of providers rest. Memory only ever adds to a round, and what
is shown of a post depends on the posts before it alone. So of two calls in one round the messages of the later one
begin with all those of the earlier one, byte for byte, whatever interrupted the work in between; nothing is put before
what was sent, or changed, or taken out. Merged for servers that demand alternation, the last message may have grown:
then the text of all messages, with their authors, begins with the text of those sent before, and so do their parts.

From round to round these change, and each stands behind everything that does not:

    system message                 the same for the conversation's life
    rounds before the present one  summaries stand in the place of the ranges they cover, later ranges behind earlier
    examples, lessons, the time    of the present round alone
    the present round              with its temporal text, each piece behind the post it belongs to

What is found for a round in its midst, such as lessons after an intervention, or examples, stands behind the post that
was the newest then. So an aside never moves, and with its round it goes. The layout ``taskweaver`` is the order of the
original, with lessons and time in the system message and the requirements at the very end: the rule is not kept there
when those change, or are given at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from callboard.runtime.chat_model import Message
from callboard.runtime.json_value import JsonValue
from callboard.runtime.post import USER
from callboard.runtime.round import Round

from .alternation import alternating
from .library import Library, packaged
from .material import Aside, Example, Material, Summary
from .role_view import RoleView

Layout: TypeAlias = Literal["cached", "taskweaver"]


def compose(
    material: Material, *, layout: Layout = "cached", alternate: bool = False, templates: Library = packaged
) -> tuple[Message, ...]:
    """The messages for a role's model; they end with a user message unless the role itself spoke last.

    `alternate` merges neighbours of one author, for servers that refuse them. Raises ValueError for a summary that
    covers the present round, and what templates of one's own raise.
    """
    composition = _Composition(material, templates)
    messages = composition.cached() if layout == "cached" else composition.as_taskweaver()
    return alternating(messages) if alternate else tuple(messages)


class _Composition:
    """One composing."""

    def __init__(self, material: Material, templates: Library) -> None:
        self._material = material
        self._templates = templates
        self._view = RoleView(material.role, templates)

    def cached(self) -> Iterator[Message]:
        """What changes least comes first."""
        material = self._material
        yield Message("system", "\n\n".join(filter(None, (material.system, material.requirements))))
        for one in self._past():
            yield from self._round(one) if isinstance(one, Round) else (self._line("fw.msg_summary", summary=one.text),)
        for example in material.examples:
            yield from self._framed(example)
        yield from _asides(material.lessons, "")
        if material.now:
            yield self._line("fw.time", now=material.now)
        yield from self._present(material.lessons, material.later_examples)

    def as_taskweaver(self) -> Iterator[Message]:
        """The system message with time and lessons, examples, summary, rounds; requirements end the last message."""
        material = self._material
        time = self._templates.render("fw.time", now=material.now) if material.now else ""
        lessons = (aside.text for aside in material.lessons if self._is_present(aside))
        yield Message("system", "\n".join(filter(None, (material.system, time, *lessons))))
        later = (one.rounds for one in material.later_examples if self._is_present(one))
        for example in (*material.examples, *later):
            yield from self._opened(self._example(example))
        past = tuple(self._past())
        summaries = [one.text for one in past if isinstance(one, Summary)]
        rounds = [message for one in past if isinstance(one, Round) for message in self._round(one)]
        messages = list(self._opened([*rounds, *self._present()], *summaries))
        yield from _ending_with(material.requirements, messages)

    def _past(self) -> Iterator[Summary | Round]:
        """The rounds before the present one, each to be shown before the next is asked for; summaries in their place.

        What is covered is read all the same: what is shown of later posts may depend on it.
        """
        rest = self._material.rounds[:-1]
        for summary in self._material.summaries:
            if any(one.id == summary.upto for one in self._material.rounds[-1:]):
                raise ValueError("a summary cannot cover the present round")
            covered = next((number for number, one in enumerate(rest, 1) if one.id == summary.upto), 0)
            for post in (post for one in rest[:covered] for post in one.post_list):
                self._view.skip(post)
            rest = rest[covered:]
            yield summary
        yield from rest

    def _present(self, lessons: tuple[Aside, ...] = (), examples: tuple[Example, ...] = ()) -> Iterator[Message]:
        """The present round, with what the user asked for if others gave the role its part, and what is temporal."""
        temporal = self._material.temporal
        for present in self._material.rounds[-1:]:
            if present.user_query.strip() and present.post_list and present.post_list[0].send_from != USER:
                yield self._line("fw.user_query", query=present.user_query)
            yield from _asides(temporal, "")
            for post in present.post_list:
                yield from self._view.messages(post)
                yield from _asides(temporal, post.id)
                for example in (one for one in examples if one.after == post.id):
                    yield from self._framed(example.rounds)
                yield from _asides(lessons, post.id)

    def _round(self, one: Round) -> list[Message]:
        return [message for post in one.post_list for message in self._view.messages(post)]

    def _framed(self, rounds: Iterable[Round]) -> Iterator[Message]:
        yield self._line("fw.example_begins")
        yield from self._example(rounds)
        yield self._line("fw.example_ends")

    def _example(self, rounds: Iterable[Round]) -> Iterator[Message]:
        view = RoleView(self._material.role, self._templates)
        return (message for one in rounds for post in one.post_list for message in view.messages(post))

    def _is_present(self, aside: Aside | Example) -> bool:
        posts = (post.id for one in self._material.rounds[-1:] for post in one.post_list)
        return not aside.after or aside.after in posts

    def _opened(self, messages: Iterable[Message], *summaries: str) -> Iterator[Message]:
        """The messages of a conversation, its first user message with the opening line before it."""
        told = (self._templates.render("fw.msg_summary", summary=summary) for summary in summaries)
        opening = "\n".join([self._templates.render("fw.conversation_begins"), *told])
        for message in messages:
            if opening and message.role == "user":
                message, opening = Message("user", f"{opening}\n{message.content}", message.parts), ""
            yield message

    def _line(self, name: str, **values: JsonValue) -> Message:
        return Message("user", self._templates.render(name, **values))


def _asides(asides: Iterable[Aside], after: str) -> Iterator[Message]:
    return (Message("user", aside.text) for aside in asides if aside.after == after and aside.text)


def _ending_with(requirements: str, messages: list[Message]) -> list[Message]:
    """The messages, the last one of the user with the requirements at its end."""
    last = max((number for number, message in enumerate(messages) if message.role == "user"), default=None)
    if not requirements:
        return messages
    if last is None:
        return [*messages, Message("user", requirements)]
    one = messages[last]
    messages[last] = Message("user", f"{one.content}\n\n{requirements}", one.parts)
    return messages
