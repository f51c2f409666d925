"""Listing: which files of lessons a folder holds, without opening any of them.

The rule to know: a time of change that is so young that the next change might bear the same one counts as unknown.
"""

from __future__ import annotations

import os
from array import array
from dataclasses import dataclass
from pathlib import Path
from time import time_ns

import numpy as np
from numpy.typing import NDArray

from callboard.runtime.errors import InvalidFile

from .lesson import Kind, is_misnamed, read_name

UNKNOWN = -1
"""In place of a time of change that proves nothing."""

_SECOND = 1_000_000_000
_TICK = _SECOND // 20
"""Longer than the clocks of file systems stand still; those that count whole seconds stand still for two."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of one folder, at one moment."""

    folder: Path
    ids: tuple[str, ...]
    """Of all `exp_*.yaml`, in order."""
    sizes: NDArray[np.int64]
    changed: NDArray[np.int64]
    """When each was changed, in nanoseconds, or UNKNOWN."""
    sources: dict[str, Kind]
    """By id, which file a lesson is made of; what a person wrote goes before a conversation."""
    faults: tuple[InvalidFile, ...]


def read_listing(folder: Path) -> Listing:
    """What is there. Raises InvalidFile for a folder that cannot be read."""
    ids: list[str] = []
    sizes, changed = array("q"), array("q")
    sources: dict[str, Kind] = {}
    faults: list[InvalidFile] = []
    now = time_ns()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                named = read_name(entry.name)
                fault = _fault(entry, named is not None, folder)
                if fault is not None:
                    faults.append(fault)
                elif named is not None and named[0] == "exp":
                    status = entry.stat()
                    ids.append(named[1])
                    sizes.append(status.st_size)
                    changed.append(_settled(status.st_mtime_ns, now))
                elif named is not None:
                    faults.extend(_add_source(sources, *named, folder))
    except OSError as error:
        remedy = "make the folder, or name another one"
        raise InvalidFile(error.strerror or str(error), path=folder, remedy=remedy) from error
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), np.intp)
    return Listing(
        folder,
        tuple(ids[number] for number in order),
        np.array(sizes, np.int64)[order],
        np.array(changed, np.int64)[order],
        dict(sorted(sources.items())),
        tuple(sorted(faults, key=lambda fault: fault.path or "")),
    )


def _settled(changed: int, now: int) -> int:
    tick = _TICK if changed % _SECOND else 2 * _SECOND
    return changed if changed < now - tick else UNKNOWN


def _fault(entry: os.DirEntry[str], is_named: bool, folder: Path) -> InvalidFile | None:
    if is_named and entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(folder.resolve()):
        return InvalidFile("a link that leads out of the folder", path=entry.path, remedy="put the file itself there")
    if not is_named and is_misnamed(entry.name):
        remedy = "name it exp_ID.yaml, raw_exp_ID.yaml or handcrafted_exp_ID.yaml, the ID of letters, digits, - and _"
        return InvalidFile("the name of the file holds no id of a lesson", path=entry.path, remedy=remedy)
    return None


def _add_source(sources: dict[str, Kind], kind: Kind, id: str, folder: Path) -> list[InvalidFile]:
    other = sources.get(id)
    if other is None or kind == "handcrafted_exp":
        sources[id] = kind
    if other is None:
        return []
    message = "passed over: a person wrote the lesson of this id, handcrafted"
    return [InvalidFile(message, path=folder / f"raw_exp_{id}.yaml", remedy="rename one of the two")]
