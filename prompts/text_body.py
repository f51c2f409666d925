"""The body of a text template: static text, slots, blocks and included templates, put in order once.

The rule to know: values are written where their slots stand and never read, so no value can become part of a template.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from callboard.runtime.json_value import JsonValue, thaw

from .condition import Condition, Path, Values
from .tag import EndIf, If, Include, Literal, Tag, TemplateFault

MOST_NESTED = 20
"""How deep blocks may stand in blocks."""


class Included(Protocol):
    """What an include stands for."""

    def write(self, values: Values) -> str:
        """Its text."""
        ...


@dataclass(frozen=True, slots=True)
class Block:
    """What stands there only if the condition holds."""

    condition: Condition
    nodes: tuple[Node, ...]


Node: TypeAlias = "str | Path | Block | Included"
Find: TypeAlias = Callable[[Include, int], Included]
"""Gives what an include at a position stands for."""


def arrange(pieces: Iterable[str | Tag], find: Find) -> tuple[Node, ...]:
    """Text and tags, with each block as one node.

    Raises TemplateFault for a block that does not close, or was not opened, and what `find` raises.
    """
    nodes: list[Node] = []
    open_blocks: list[tuple[Tag, Condition, list[Node]]] = []
    for piece in pieces:
        if isinstance(piece, str):
            nodes.append(piece)
            continue
        match piece.meaning:
            case If(condition):
                if len(open_blocks) == MOST_NESTED:
                    raise TemplateFault(f"blocks stand in blocks, deeper than {MOST_NESTED}", piece.start)
                open_blocks.append((piece, condition, nodes))
                nodes = []
            case EndIf():
                if not open_blocks:
                    raise TemplateFault("{{endif}} closes nothing", piece.start)
                _, condition, around = open_blocks.pop()
                around.append(Block(condition, tuple(nodes)))
                nodes = around
            case meaning:
                nodes.append(_plain(meaning, piece.start, find))
    if open_blocks:
        raise TemplateFault("this {{if …}} does not end with {{endif}}", open_blocks[-1][0].start)
    return tuple(nodes)


def _plain(meaning: Path | Include | Literal, position: int, find: Find) -> Node:
    match meaning:
        case Include():
            return find(meaning, position)
        case Literal(text):
            return text
    return meaning


def cut(text: str, tags: Iterable[Tag]) -> Iterator[str | Tag]:
    """The text between the tags, and the tags; a line that holds one if or endif alone is no part of the text."""
    position = 0
    for tag in tags:
        start, end = _whole_line(text, tag) if isinstance(tag.meaning, If | EndIf) else (tag.start, tag.end)
        yield text[position:start]
        yield tag
        position = end
    yield text[position:]


def write(nodes: Iterable[Node], values: Values) -> str:
    """The text with the values in it; raises ValueError for a condition that has no answer."""
    return "".join(_written(node, values) for node in nodes)


def as_text(value: JsonValue) -> str:
    """How a value stands in text: null is empty, a list has an item a line, all else that is no text is JSON."""
    match value:
        case str():
            return value
        case None:
            return ""
        case tuple() | list():
            return "\n".join(item if isinstance(item, str) else _json(item) for item in value)
    return _json(value)


def _json(value: JsonValue) -> str:
    return json.dumps(thaw(value), ensure_ascii=False, allow_nan=False)


def _written(node: Node, values: Values) -> str:
    match node:
        case str():
            return node
        case Path():
            return as_text(node.value(values))
        case Block(condition, nodes):
            return write(nodes, values) if condition.holds(values) else ""
    return node.write(values)


def _whole_line(text: str, tag: Tag) -> tuple[int, int]:
    start = text.rfind("\n", 0, tag.start) + 1
    line_end = text.find("\n", tag.end)
    end = len(text) if line_end < 0 else line_end + 1
    alone = not text[start : tag.start].strip() and not text[tag.end : end].strip()
    return (start, end) if alone else (tag.start, tag.end)
