"""The file of a transcript: YAML to plain data and back, and bytes that replace the old ones all at once.

The rule to know: libyaml and the YAML of pure Python write the same bytes here and read the same data, so a
file does not depend on where it was made. Strings that are more than a line of ASCII stand in double
quotes, escaped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeAlias, cast

import yaml
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.reader import Reader, ReaderError
from yaml.representer import SafeRepresenter

from .errors import InvalidFile

FilePath: TypeAlias = str | PathLike[str]

_NO_FOLDING = 1 << 30
_LONGEST_SIMPLE_KEY = 128
_BREAKS = frozenset("\r\n\x85\u2028\u2029")
_MERGE = "tag:yaml.org,2002:merge"


class _Writing(SafeRepresenter):
    """What both writers do: no anchors, and no string in a style that depends on the writer."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def write_text(self, text: str) -> yaml.ScalarNode:
        style = None if text.isascii() and text.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Writing.add_representer(str, _Writing.write_text)


class PureDumper(_Writing, yaml.SafeDumper):
    """The writer in pure Python."""

    def check_simple_key(self) -> bool:
        # PyYAML and libyaml disagree on which keys need a question mark; this is libyaml's answer.
        text = cast(yaml.ScalarEvent, self.event).value  # every key is a string here
        return len(text.encode()) <= _LONGEST_SIMPLE_KEY and _BREAKS.isdisjoint(text)


class _Reading(SafeConstructor):
    """What both readers do: safe tags only, and a key that stands twice is an error."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._flattened: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        # A mapping that others merge in is flattened for them too, and its own keys must hide what it merged before
        # that: PyYAML would merge both, and take the hidden one.
        if id(node) in self._flattened:
            return
        self._flattened.add(id(node))
        seen = set()
        for key, _ in node.value:
            name = (key.tag, str(key.value))
            if name in seen and key.tag != _MERGE:
                raise ConstructorError(None, None, f"the key {key.value!r} stands twice", key.start_mark)
            seen.add(name)
        super().flatten_mapping(node)
        node.value = [*{(key.tag, str(key.value)): (key, value) for key, value in node.value}.values()]


class PureLoader(_Reading, yaml.SafeLoader):
    """The reader in pure Python."""


Dumper: type[_Writing] = PureDumper
Loader: type[_Reading] = PureLoader

if yaml.__with_libyaml__:

    class FastDumper(_Writing, yaml.CSafeDumper):
        """The writer of libyaml."""

    class FastLoader(_Reading, yaml.CSafeLoader):
        """The reader of libyaml."""

    Dumper, Loader = FastDumper, FastLoader


def dump(data: object, dumper: Any = Dumper) -> bytes:
    """The YAML of plain data, ASCII alone, keys in their order; raises YAMLError for what is not plain."""
    text: str = yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=False, width=_NO_FOLDING)
    return text.encode("ascii")


def parse(text: str, loader: Any = Loader) -> Any:
    """The plain data of a YAML text; raises InvalidFile, with the line, for what is no YAML of plain data."""
    try:
        data = yaml.load(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(part for part in (error.context, error.problem) if part)
        line = None if mark is None else mark.line + 1
        raise InvalidFile(message, line=line, remedy="correct the YAML") from error
    except ReaderError as error:
        raise InvalidFile(
            "a character that YAML does not allow",
            line=_line_of_bad(text),
            remedy='write it as "\\x.." in quotes',
        ) from error
    except (ValueError, OverflowError) as error:
        raise InvalidFile(f"a value cannot be read: {error}", remedy="put it in quotes") from error
    except RecursionError as error:
        raise InvalidFile("the data is nested too deep", remedy="flatten it") from error
    _refuse_growth(data, len(text))
    return data


def _line_of_bad(text: str) -> int | None:
    found = Reader.NON_PRINTABLE.search(text)
    return None if found is None else text.count("\n", 0, found.start()) + 1


def _refuse_growth(data: object, limit: int) -> None:
    """Raise InvalidFile if aliases make more of a text than stands in it, without end perhaps."""
    waiting, count = [data], 0
    while waiting:
        value = waiting.pop()
        if not isinstance(value, list | dict):
            continue
        count += 1
        if count > limit:
            raise InvalidFile("the aliases (*name) multiply without bound", remedy="write the values out")
        waiting.extend(value if isinstance(value, list) else value.values())


def line_of(text: str, place: tuple[str | int, ...]) -> int | None:
    """The line, from 1, on which the value at that place begins, or the nearest around it that is there."""
    node = yaml.compose(text, Loader=Loader)  # type: ignore[arg-type]  # the stubs list the loaders of yaml alone
    line = None if node is None else node.start_mark.line + 1
    for part in place:
        match node, part:
            case yaml.SequenceNode(), int():
                node = node.value[part]
                line = node.start_mark.line + 1
            case yaml.MappingNode(), _:
                found = [pair for pair in node.value if pair[0].value == str(part)]
                if not found:
                    break
                line, node = found[-1][0].start_mark.line + 1, found[-1][1]
    return line


def read_text(path: FilePath) -> str:
    """The text of a file, without a byte order mark; raises InvalidFile if it cannot be read as UTF-8."""
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidFile("this is no UTF-8", path=path, line=line, remedy="save the file as UTF-8") from error
    except OSError as error:
        message = error.strerror or str(error)
        raise InvalidFile(message, path=path, remedy="check the path and its permissions") from error


def replace_file(path: FilePath, data: bytes) -> None:
    """Make the file hold the data, safely on disk; at every moment it is the old file or the new one.

    Raises OSError, and leaves no temporary file behind.
    """
    target = Path(os.path.realpath(path))
    with _temporary_beside(target) as temporary:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    _sync_folder(target.parent)


@contextmanager
def _temporary_beside(target: Path) -> Iterator[Path]:
    temporary = target.parent / f".{token_hex(8)}.tmp"
    try:
        yield temporary
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):  # Windows keeps the entry of a replaced file by itself
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
