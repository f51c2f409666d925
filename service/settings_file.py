"""Settings file: what a YAML or JSON file of settings holds, as plain data, and on which line each value stands.

The rule to know: anchors and merges are resolved here, and a value knows the line on which it is really written. No
error shows a value, since it may be a secret that stands in the wrong place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

import yaml

from callboard.runtime.errors import InvalidFile
from callboard.runtime.transcript_file import Loader, parse, read_text

Place: TypeAlias = tuple[str | int, ...]
"""The keys and indices that lead to a value."""

MOST_VALUES = 10_000
"""How many values a file may hold, those that aliases repeat counted each time."""
DEEPEST = 50

_MERGE, _MAP, _SEQUENCE = (f"tag:yaml.org,2002:{kind}" for kind in ("merge", "map", "seq"))


class Source(NamedTuple):
    """Where in the file a value comes from."""

    key: str
    """As a person finds it: ``roles.subordinates[0].model``, or the dotted key of the original."""
    line: int


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The values of one file."""

    path: Path
    data: dict[str, Any] = field(repr=False)
    """Mappings, lists and scalars; all keys are text."""
    sources: Mapping[Place, Source] = field(repr=False)

    @property
    def folder(self) -> Path:
        """What paths in the file are relative to."""
        return self.path.parent

    def source(self, place: Place) -> Source:
        """Where the value comes from, or what is nearest around it."""
        for end in range(len(place), 0, -1):
            if found := self.sources.get(place[:end]):
                rest = key_path(place[end:])
                joint = "" if not rest or rest.startswith("[") else "."
                return Source(found.key + joint + rest, found.line)
        return Source(key_path(place), 1)

    def fault(self, place: Place, message: str, remedy: str) -> InvalidFile:
        """An error that points at the value."""
        key, line = self.source(place)
        return InvalidFile(message, path=self.path, line=line, key=key or None, remedy=remedy)


def key_path(place: Place) -> str:
    """A place as ``roles.subordinates[0].model``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")


def read_settings_file(path: Path) -> SettingsFile:
    """The values of a file; one that ends in .json is JSON. Raises InvalidFile, with file and line."""
    text = read_text(path)
    try:
        if path.suffix == ".json":
            _check_json(text)
            text = text.replace("\t", " ")  # which JSON has between its values alone, and YAML does not take there
        reader = _Reader(text)
        return SettingsFile(path, reader.data, reader.sources)
    except InvalidFile as error:
        # Without its cause, which shows the line, and with it a secret perhaps.
        raise InvalidFile(error.message, path=path, line=error.line, key=error.key, remedy=error.remedy) from None


def _check_json(text: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidFile(error.msg, line=error.lineno, remedy="correct the JSON") from error
    except RecursionError as error:
        raise InvalidFile("the values are nested too deep", line=1, remedy="flatten them") from error


class _Reader:
    """Reads the tree of one text into data."""

    def __init__(self, text: str) -> None:
        loader: Any = Loader
        self.sources: dict[Place, Source] = {}
        self._count = 0
        self._loader = loader(text)
        try:
            top = self._loader.get_single_node()
            data = {} if top is None else self._value(top, ())
        except (yaml.YAMLError, ValueError, RecursionError):
            parse(text)  # finds the same fault, and has the words for it
            raise
        finally:
            self._loader.dispose()
        if not isinstance(data, dict):
            raise InvalidFile("these are no settings: no mapping", line=1, remedy="write key: value, a line for each")
        self.data: dict[str, Any] = data

    def _value(self, node: yaml.Node, place: Place) -> Any:
        self._count_one(node, len(place))
        line = node.start_mark.line + 1
        match node:
            case yaml.MappingNode(tag=tag) if tag == _MAP:
                return self._mapping(node, place)
            case yaml.SequenceNode(tag=tag) if tag == _SEQUENCE:
                return self._sequence(node, place)
            case yaml.ScalarNode():
                return self._scalar(node, line)
        raise InvalidFile(f"{node.tag} is no kind of value for settings", line=line, remedy="write it without the tag")

    def _count_one(self, node: yaml.Node, depth: int) -> None:
        self._count += 1
        if self._count > MOST_VALUES or depth > DEEPEST:
            what = "too many values, or aliases (*name) or merges (<<) without end"
            raise InvalidFile(what, line=node.start_mark.line + 1, remedy="write out what is meant")

    def _scalar(self, node: yaml.ScalarNode, line: int) -> Any:
        try:
            return self._loader.construct_object(node, deep=True)
        except ValueError:  # what it says shows the value
            raise InvalidFile("a value is not what it looks like", line=line, remedy="put it in quotes") from None

    def _sequence(self, node: yaml.SequenceNode, place: Place) -> list[Any]:
        for index, one in enumerate(node.value):
            self.sources[(*place, index)] = Source(key_path((*place, index)), one.start_mark.line + 1)
        return [self._value(one, (*place, index)) for index, one in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        entries = self._entries(node, place)
        for key, (line, _) in entries.items():
            self.sources[(*place, key)] = Source(key_path((*place, key)), line)
        return {key: self._value(value, (*place, key)) for key, (_, value) in entries.items()}

    def _entries(self, node: yaml.MappingNode, place: Place, merges: int = 0) -> dict[str, tuple[int, yaml.Node]]:
        """What stands in a mapping, and behind it what is merged into it: the earlier counts."""
        self._count_one(node, merges)
        own: dict[str, tuple[int, yaml.Node]] = {}
        merged: list[yaml.Node] = []
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag == _MERGE:
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
            elif not isinstance(key, yaml.ScalarNode):
                raise InvalidFile("a key is no text", line=line, key=key_path(place) or None, remedy="write key: value")
            elif key.value in own:
                self._twice(key, own[key.value][0], place)
            else:
                own[key.value] = line, value
        for other in merged:
            if not isinstance(other, yaml.MappingNode):
                line = other.start_mark.line + 1
                raise InvalidFile("only mappings can be merged (<<)", line=line, remedy="name an anchor of a mapping")
            own = {**self._entries(other, place, merges + 1), **own}
        return own

    def _twice(self, key: yaml.ScalarNode, first: int, place: Place) -> NoReturn:
        path = key_path((*place, key.value))
        line = key.start_mark.line + 1
        raise InvalidFile(f"the key stands twice, on line {first} too", line=line, key=path, remedy="keep one of them")
