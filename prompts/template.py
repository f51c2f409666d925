"""Template: a text with slots that was read once and is filled in any number of times.

The rule to know: reading finds every fault of the text, with its line; filling in puts each value where its slot
stands, once, and reads none. `docs/prompts.md` says how a template is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias

from callboard.runtime.errors import InvalidFile
from callboard.runtime.json_value import JsonValue, check_text, freeze

from .condition import Path, Values
from .json_body import Shape, build, find_json, read_json
from .tag import If, Include, Tag, TemplateFault, read_tags
from .text_body import Included, Node, arrange, cut, write


@dataclass(frozen=True, slots=True)
class Source:
    """A text, and where it comes from."""

    name: str
    text: str
    path: str | None = None
    key: str | None = None
    """Under which it stands in a file of several."""
    line: int = 0
    """Of the key."""

    def fault(self, message: str, position: int, remedy: str | None = None) -> InvalidFile:
        """The error of a fault at that character."""
        line = self.text.count("\n", 0, position) + 1
        if self.path is None:
            message = f"template {self.name!r}: {message}"
        if self.key is not None:
            message, line = f"line {line} of its text: {message}", self.line
        return InvalidFile(message, path=self.path, line=line, key=self.key, remedy=remedy)


IncludeTemplate: TypeAlias = "Callable[[Include], Template]"
"""Gives the template that is included; raises TemplateFault, at position 0, if there is none."""


def _nothing_to_include(include: Include) -> Template:
    raise TemplateFault("there is nothing to include", 0, "use a template of a library")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Template:
    """Made by `parse`; a value, which any number of conversations may share."""

    source: Source
    slots: frozenset[str]
    """The names that need a value, those of conditions and included templates too."""
    chain: tuple[str, ...]
    """Its own name, then those of the templates that it includes within each other: the longest such chain."""
    _places: Mapping[str, tuple[Source, int]]
    """Where each slot stands first."""
    _body: tuple[Node, ...] | Mapping[str, Shape]

    @classmethod
    def parse(cls, source: Source | str, include: IncludeTemplate = _nothing_to_include) -> Template:
        """Reads a text, or what a source holds; line ends at its very end do not count.

        Raises InvalidFile, with the line, for a fault in it or in what it includes.
        """
        source = source if isinstance(source, Source) else Source("text", source)
        reading = _Reading(source, include)
        try:
            check_text(source.text, f"template {source.name!r}")
            body = reading.body()
        except TemplateFault as fault:
            raise source.fault(fault.message, fault.position, fault.remedy) from None
        return cls(source, frozenset(reading.places), (source.name, *reading.chain), reading.places, body)

    def __repr__(self) -> str:
        return f"<Template {self.name}>"

    @property
    def name(self) -> str:
        """By which a library finds it."""
        return self.source.name

    @property
    def is_json(self) -> bool:
        """Whether it is one JSON object, which `build` gives."""
        return isinstance(self._body, Mapping)

    def render(self, /, **values: JsonValue) -> str:
        """The text with the values in it, without a line end; of a JSON template its JSON, on one line.

        Values without a slot are passed over. Raises ValueError for a slot without a value, for what JSON or UTF-8
        cannot hold, and for a condition that asks for the order of what has none.
        """
        return self.write(self._checked(values))

    def build(self, /, **values: JsonValue) -> dict[str, Any]:
        """The object of a JSON template with the values in it; its own keys whose value is empty are left out.

        Empty are "", [], {} and null. Raises what `render` raises, and TypeError for a template of text.
        """
        if not isinstance(self._body, Mapping):
            raise TypeError(f"the template {self.name!r} is text, and no JSON object")
        return build(self._body, self._checked(values))

    def write(self, values: Values) -> str:
        """As `render`, of frozen values that are all there."""
        if isinstance(self._body, Mapping):
            return json.dumps(build(self._body, values), ensure_ascii=False, allow_nan=False)
        return write(self._body, values).removesuffix("\n")

    def check_slots(self, known: Collection[str]) -> None:
        """Raises InvalidFile, with the line, for a slot that is none of the known ones."""
        for slot in sorted(self.slots.difference(known)):
            source, position = self._places[slot]
            there = f"use {near(slot, known)}" if known else "write it without slots"
            raise source.fault(f"there is no slot {slot!r}", position, there)

    def _checked(self, values: Mapping[str, JsonValue]) -> Values:
        if missing := sorted(self.slots - values.keys()):
            raise ValueError(f"the template {self.name!r} needs a value for {', '.join(missing)}")
        return {slot: freeze(values[slot], slot) for slot in self.slots}


def near(name: str, known: Collection[str]) -> str:
    """What could be meant by a name that is unknown, then all that there are."""
    close = get_close_matches(name, known, n=1)
    there = ", ".join(sorted(known)) or "none"
    return f"{close[0]}, or another of: {there}" if close and len(known) > 1 else f"one of: {there}"


class _Reading:
    """Reads one source, and gathers where its slots stand."""

    def __init__(self, source: Source, include: IncludeTemplate) -> None:
        self._source = source
        self._include = include
        self.places: dict[str, tuple[Source, int]] = {}
        self.chain: tuple[str, ...] = ()

    def body(self) -> tuple[Node, ...] | Mapping[str, Shape]:
        """What the template is made of; raises TemplateFault, InvalidFile."""
        # A template ends with one line end, which is not written: so a block may be the last of its lines.
        text = self._source.text.rstrip("\n") + "\n"
        tags = tuple(read_tags(text))
        self._gather(tags)
        if extent := find_json(text, tags):
            start, end = extent
            return read_json(" " * start + text[start:end], tags, self._find)
        return arrange(cut(text, tags), self._find)

    def _gather(self, tags: tuple[Tag, ...]) -> None:
        for tag in tags:
            match tag.meaning:
                case Path(slot):
                    self.places.setdefault(slot, (self._source, tag.start))
                case If(condition):
                    for slot in condition.slots:
                        self.places.setdefault(slot, (self._source, tag.start))

    def _find(self, include: Include, position: int) -> Included:
        try:
            template = self._include(include)
        except TemplateFault as fault:
            raise TemplateFault(fault.message, position, fault.remedy) from None
        for slot, place in template._places.items():
            self.places.setdefault(slot, place)
        self.chain = max(self.chain, template.chain, key=len)
        return template
