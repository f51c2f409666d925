"""Artifacts: the files that code has made, by names that are safe to show, to serve and to write into a prompt.

The rule to know: only plain files count. A link would be followed by whoever opens it, out of the folder too.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MOST_FILES = 1_000
"""So many files are looked at; what code makes beyond is there, but is no artifact."""

_NO_ARTIFACT = re.compile(r"code-\d+\.py|\..*|__pycache__")
_SAFE = re.compile(r"[\w. ()+=@,-]{1,120}")

State = dict[str, tuple[int, int]]
"""When each file was written, and its size, by its path below the folder."""


def safe_name(name: str) -> str:
    """The name, with `_` for signs that are unsafe. Raises ValueError if nothing is left."""
    safe = re.sub(r"[^\w.-]+", "_", name).lstrip("._-")[-120:]
    if not safe:
        raise ValueError(f"{name!r} is no name of a file")
    return safe


def files_in(folder: Path) -> State:
    """All plain files below, without the code that was run, and what is hidden."""
    found: State = {}
    for path in _plain_files(folder):
        with suppress(OSError):  # it has gone
            found[path.relative_to(folder).as_posix()] = _state(path)
        if len(found) >= MOST_FILES:
            break
    return found


def artifacts_since(before: State, folder: Path) -> list[str]:
    """What is new or was changed. A file with an unsafe name is put beside it under a safe one, and that is named."""
    changed = [name for name, state in files_in(folder).items() if before.get(name) != state]
    return sorted(filter(None, (_named(folder, name) for name in changed)))


def _plain_files(folder: Path) -> Iterator[Path]:
    for above, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _NO_ARTIFACT.fullmatch(name)]
        for name in names:
            path = Path(above) / name
            with suppress(OSError):  # it has gone
                if not _NO_ARTIFACT.fullmatch(name) and stat.S_ISREG(os.lstat(path).st_mode):
                    yield path


def _state(path: Path) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_mtime_ns, found.st_size


def _named(folder: Path, name: str) -> str:
    """The name, or the safe one under which the file is now there too; empty if it cannot be."""
    if all(_SAFE.fullmatch(part) and not part.startswith("-") for part in name.split("/")):
        return name
    with suppress(OSError, ValueError):
        safe = safe_name(os.fsencode(name).decode(errors="replace"))
        while os.path.lexists(folder / safe):
            if os.path.samestat(os.lstat(folder / safe), os.lstat(folder / name)):
                return safe
            safe += "_"
        os.link(folder / name, folder / safe, follow_symlinks=False)
        return safe
    return ""
