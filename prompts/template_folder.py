"""A folder of templates: what its files hold, by the names of the templates.

    intervention.md   the template ``intervention``
    planner.yaml      a template for each key: ``planner.instructions`` for the key ``instructions``

The rule to know: a folder is read once, as a whole; what is changed on disk afterwards is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from callboard.runtime.errors import InvalidFile
from callboard.runtime.transcript_file import line_of, parse

from .template import Source

_SUFFIXED = re.compile(r"[^.].*\.(md|yaml|yml)", re.DOTALL)
_VERSION = "version"
"""The key that holds no template, but the version of the file."""


def read_folder(folder: Path) -> dict[str, Source]:
    """The templates of the files right in a folder, hidden ones left out.

    Raises InvalidFile for a folder or a file that cannot be read, for a link that leads out of the folder, for a key
    without a text, and for two templates of one name.
    """
    try:
        found = [entry for entry in folder.iterdir() if _SUFFIXED.fullmatch(entry.name)]
    except OSError as error:
        remedy = "give a folder that can be read"
        raise InvalidFile(error.strerror or str(error), path=folder, remedy=remedy) from error
    for file in found:
        if not file.resolve().is_relative_to(folder.resolve()):
            raise InvalidFile("a link that leads out of the folder", path=file, remedy="put the file itself there")
    return _read(found)


def read_package(name: str) -> dict[str, Source]:
    """The templates that come with a package, which may be a zip file, or links that its installer made."""
    return _read(entry for entry in files(name).iterdir() if _SUFFIXED.fullmatch(entry.name))


def _read(entries: Iterable[Traversable]) -> dict[str, Source]:
    sources: dict[str, Source] = {}
    for source in (source for entry in sorted(entries, key=lambda one: one.name) for source in _sources(entry)):
        if other := sources.get(source.name):
            places = f"{other.path} and {source.path}"
            raise InvalidFile(f"two templates are called {source.name!r}: {places}", remedy="rename one of them")
        sources[source.name] = source
    return sources


def _sources(entry: Traversable) -> Iterable[Source]:
    stem, _, suffix = entry.name.rpartition(".")
    text = _text(entry)
    return [Source(stem, text, str(entry))] if suffix == "md" else _of_keys(stem, text, str(entry))


def _text(entry: Traversable) -> str:
    try:
        data = entry.read_bytes()
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidFile("this is no UTF-8", path=str(entry), line=line, remedy="save the file as UTF-8") from error
    except OSError as error:
        message = error.strerror or str(error)
        raise InvalidFile(message, path=str(entry), remedy="check the path and its permissions") from error


def _of_keys(stem: str, text: str, path: str) -> Iterator[Source]:
    """A template for each key of a YAML file."""
    try:
        read = parse(text)
    except InvalidFile as error:
        raise InvalidFile(error.message, path=path, line=error.line, remedy=error.remedy) from error
    if not isinstance(read, dict):
        raise InvalidFile("this is no mapping of keys to texts", path=path, line=1, remedy="write key: text")
    for key, value in read.items():
        line = line_of(text, (key,)) or 1
        if key == _VERSION:
            continue
        if not isinstance(key, str) or not isinstance(value, str):
            what = type(value).__name__ if isinstance(key, str) else f"the key {key!r}"
            remedy = "write a text, behind | if it has several lines, and quote what else is read as a value"
            raise InvalidFile(f"{what} is no text", path=path, line=line, key=str(key), remedy=remedy)
        yield Source(f"{stem}.{key}", value, path, key, line)
