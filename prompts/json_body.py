"""The body of a JSON template: an object whose slots stand where values stand, or inside strings.

The rule to know: the text is read as JSON once, with the tags as placeholders of the same length; values go into the
object that came of it, which is written last. So no value can change its shape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from callboard.runtime.json_value import freeze, thaw

from .condition import Path, Values
from .tag import Literal, Tag, TemplateFault
from .text_body import Find, Node, arrange, write

Shape: TypeAlias = "dict[str, Shape] | list[Shape] | tuple[Node, ...] | Path | str | float | None"
"""JSON, with a tuple of nodes for a string that is written, and a path for a value that is put in."""

_EMPTY: tuple[object, ...] = ("", [], {}, None)
_FENCED = re.compile(r"\s*^(?P<mark>`{3,}|~{3,})(?P<kind>json|)[ \t]*\n(?P<body>.*)^(?P=mark)\s*\Z", re.DOTALL | re.M)
_REMEDY = """correct the JSON; if it is text, write {{"{"}} for its first brace"""
_PRIVATE = range(0xE000, 0xF8FF)


def find_json(text: str, tags: Sequence[Tag]) -> tuple[int, int] | None:
    """Where the object of a JSON template begins and ends in its text; None for a text template.

    It is one if all of the text, or of the one fence that is all of the text, stands in braces; or if that fence says
    so.
    """
    start, end, kind = 0, len(text), ""
    if (fenced := _FENCED.fullmatch(text)) and f"\n{fenced['mark'][:3]}" not in f"\n{fenced['body']}":
        start, end, kind = fenced.start("body"), fenced.end("body"), fenced["kind"]
    start += len(text[start:end]) - len(text[start:end].lstrip())
    end = start + len(text[start:end].rstrip())
    in_braces = text.startswith("{", start, end) and text.endswith("}", start, end)
    in_tags = any(tag.start == start or tag.end == end for tag in tags)
    return (start, end) if kind or (in_braces and not in_tags) else None


def read_json(text: str, tags: Sequence[Tag], find: Find) -> dict[str, Shape]:
    """The object that the text is, spaces aside.

    Raises TemplateFault for what is none, and for a tag where it could change the object; and what `find` raises.
    """
    marks = (chr(code) for code in _PRIVATE if chr(code) not in text and f"{code:04x}" not in text.lower())
    inside, alone = next(marks), next(marks)
    skeleton = _Skeleton(text, tags, (inside, alone))
    try:
        read = json.loads(
            skeleton.text, object_pairs_hook=skeleton.members, parse_constant=_refuse, parse_float=_finite
        )
        freeze(read, "the template")
    except json.JSONDecodeError as error:
        raise TemplateFault(f"no valid JSON: {error.msg}", error.pos, _REMEDY) from None
    except RecursionError:
        raise TemplateFault("the JSON is nested too deep", 0) from None
    except TemplateFault:
        raise
    except ValueError as error:
        raise TemplateFault(str(error), 0) from None
    if not isinstance(read, dict):
        raise TemplateFault("the JSON of a template must be one object", 0)
    return _Shaper(tags, (inside, alone), find).object(read)


def build(shape: Mapping[str, Shape], values: Values) -> dict[str, Any]:
    """The object with the values in it, without the keys whose value is empty; raises what `write` raises."""
    members = {key: _built(value, values) for key, value in shape.items()}
    return {key: value for key, value in members.items() if value not in _EMPTY}


def _built(shape: Shape, values: Values) -> Any:
    match shape:
        case dict():
            return {key: _built(item, values) for key, item in shape.items()}
        case list():
            return [_built(item, values) for item in shape]
        case tuple():
            return write(shape, values)
        case Path():
            return thaw(shape.value(values))
    return shape


class _Skeleton:
    """The text as JSON: each tag is as many marks as it has characters, in quotes of its own unless in a string."""

    def __init__(self, text: str, tags: Sequence[Tag], marks: tuple[str, str]) -> None:
        self._inside, self._alone = marks
        masked = list(text)
        for tag in tags:
            masked[tag.start : tag.end] = self._inside * (tag.end - tag.start)
        pieces = list(text)
        in_strings = [found.span() for found in re.finditer(r'"(?:\\.|[^"\\])*+"', "".join(masked))]
        for tag in tags:
            if any(start < tag.start < end for start, end in in_strings):
                pieces[tag.start : tag.end] = self._inside * (tag.end - tag.start)
            else:
                pieces[tag.start : tag.end] = f'"{self._alone * (tag.end - tag.start - 2)}"'
        self.text = "".join(pieces)

    def members(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """An object; a key is fixed and stands once."""
        read = dict(pairs)
        if tagged := next((key for key in read if self._inside in key or self._alone in key), ""):
            raise TemplateFault("a key cannot have a tag", max(0, self.text.find(tagged)), "put tags into values")
        if len(read) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise TemplateFault(f"the key {twice!r} stands twice", max(0, self.text.rfind(json.dumps(twice))))
        return read


class _Shaper:
    """Puts the tags in the place of their marks. The order of JSON is that of the text, so each tag is the next one."""

    def __init__(self, tags: Sequence[Tag], marks: tuple[str, str], find: Find) -> None:
        self._tags = iter(tags)
        self._inside, self._alone = marks
        self._find = find

    def object(self, read: Mapping[str, Any]) -> dict[str, Shape]:
        """An object with the tags in it."""
        return {key: self._shape(value) for key, value in read.items()}

    def _shape(self, read: Any) -> Shape:
        match read:
            case dict():
                return self.object(read)
            case list():
                return [self._shape(item) for item in read]
            case str() if self._alone in read:
                return self._value(next(self._tags))
            case str() if self._inside in read:
                return arrange(self._pieces(read), self._find)
        return read

    def _value(self, tag: Tag) -> Path | str:
        match tag.meaning:
            case Path() as path:
                return path
            case Literal(text):
                return text
        remedy = "put the tag into a string; a key whose value is empty is left out"
        raise TemplateFault("only a slot can stand for a value of JSON", tag.start, remedy)

    def _pieces(self, text: str) -> Iterator[str | Tag]:
        position = 0
        while (start := text.find(self._inside, position)) >= 0:
            tag = next(self._tags)
            yield text[position:start]
            yield tag
            position = start + tag.end - tag.start
        yield text[position:]


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        _refuse(digits)
    return number
