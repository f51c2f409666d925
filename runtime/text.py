"""Temporal text: a string, and beside it the spans of it that are shown in their own round and no later.

The rule to know: the string holds no markers, and nothing that is written into it makes a span. Only `temporal` does,
called by a role's own code: what a model, a tool or a user says stays text, whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias, get_args

from .json_value import check_text
from .value import value

Lifetime: TypeAlias = Literal["round"]
"""How long a span is shown: ``round`` is as long as its round is the current one."""

_LIFETIMES: tuple[str, ...] = get_args(Lifetime)


@value
class Span:
    """A part of a text; raises TypeError and ValueError for what cannot be the bounds of one."""

    start: int
    """Its first character, counted from 0."""
    end: int
    """The character behind its last one."""
    lifetime: Lifetime = "round"

    def __post_init__(self) -> None:
        if type(self.start) is not int or type(self.end) is not int:
            raise TypeError(f"a span is from one whole number to another, not from {self.start!r} to {self.end!r}")
        if not 0 <= self.start < self.end:
            raise ValueError(f"a span holds a character at least, and none is from {self.start} to {self.end}")
        if self.lifetime not in _LIFETIMES:
            raise ValueError(f"{self.lifetime!r} is no lifetime of a span; there are {', '.join(_LIFETIMES)}")


Spans: TypeAlias = tuple[Span, ...]
"""Spans of one text, sorted and disjoint; they may touch."""


@value
class Text:
    """A string with its spans, for wherever words are taken; raises TypeError and ValueError for what cannot be one.

    `+` and `join` keep the spans. In an f-string it is its string alone.
    """

    string: str
    spans: Spans = ()

    def __post_init__(self) -> None:
        check_text(self.string, "text")
        if self.spans != ():
            check_spans(self.spans, self.string, "spans")

    def join(self, parts: Iterable[str | Text]) -> Text:
        """The parts with this between them; of spans that touch and have one lifetime one is made."""
        return _in_one(_with_between(self, parts))

    def __add__(self, other: str | Text) -> Text:
        return _in_one((self, other)) if isinstance(other, str | Text) else NotImplemented

    def __radd__(self, other: str) -> Text:
        return _in_one((other, self)) if isinstance(other, str) else NotImplemented

    def __len__(self) -> int:
        return len(self.string)

    def __str__(self) -> str:
        return self.string


NO_TEXT = Text("")
"""Joins what needs nothing between."""


def temporal(text: str | Text, lifetime: Lifetime = "round") -> Text:
    """The text as one span: earlier rounds are shown without it. Spans that it has are part of the one."""
    string = str(text)
    return Text(string, (Span(0, len(string), lifetime),) if string else ())


def parted(text: str | Text | None) -> tuple[str, Spans]:
    """The string and the spans of words that may have none; None is no words."""
    return (text.string, text.spans) if isinstance(text, Text) else (text or "", ())


def check_spans(spans: object, string: str, where: str) -> None:
    """Nothing, if the spans may stand beside the string; `where` names them in errors.

    Raises TypeError for what is no tuple of Span, ValueError for spans that overlap, or reach beyond the string.
    """
    if not isinstance(spans, tuple) or not all(isinstance(span, Span) for span in spans):
        raise TypeError(f"{where} is a tuple of Span, not {spans!r}")
    end = 0
    for span in spans:
        if span.start < end:
            raise ValueError(f"{where} are sorted and disjoint, but one begins at {span.start}, before {end}")
        end = span.end
    if end > len(string):
        raise ValueError(f"{where} reach to {end}, beyond the {len(string)} characters of their text")


def cut(string: str, spans: Spans) -> str:
    """The string without these parts of it."""
    ends = (0, *(span.end for span in spans))
    starts = (*(span.start for span in spans), len(string))
    return "".join(string[end:start] for end, start in zip(ends, starts, strict=True))


def _with_between(between: Text, parts: Iterable[str | Text]) -> Iterator[str | Text]:
    for number, part in enumerate(parts):
        if number:
            yield between
        yield part


def _in_one(parts: Iterable[str | Text]) -> Text:
    strings: list[str] = []
    spans: list[Span] = []
    length = 0
    for part in parts:
        string, inside = parted(part)
        for span in inside:
            start = span.start + length
            if spans and spans[-1].end == start and spans[-1].lifetime == span.lifetime:
                start = spans.pop().start
            spans.append(Span(start, span.end + length, span.lifetime))
        strings.append(string)
        length += len(string)
    return Text("".join(strings), tuple(spans))
