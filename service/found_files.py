"""Found files: the lessons and examples that lie in the folders of roles, and the files there that are none."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from callboard.experience.examples import Examples
from callboard.experience.experience import Experience
from callboard.runtime.errors import InvalidFile

from .role_tree import Placed


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """What one role finds, in words; empty for what it is not given."""

    lessons: str = ""
    examples: str = ""
    faults: tuple[InvalidFile, ...] = ()
    """The files that it will pass over."""


_Counted: TypeAlias = tuple[str, tuple[InvalidFile, ...]]
_Count: TypeAlias = Callable[[str], Coroutine[Any, Any, _Counted]]


_NOTHING: _Counted = ("", ())


async def find_files(roles: Sequence[Placed]) -> list[FoundFiles]:
    """What lies in the folders of each role. Nothing is made, embedded or asked of a model.

    Cancelled: what a thread has begun to read it reads to its end. Raises InvalidFile for a folder that cannot be read.
    """
    return [await _find_of(role.experience, role.examples) for role in roles]


async def _find_of(experience: Experience | None, examples: Examples | None) -> FoundFiles:
    lessons = _NOTHING if experience is None else await _find(experience, _lessons_of(experience))
    shown = _NOTHING if examples is None else await _find(examples, _examples_of(examples))
    return FoundFiles(lessons[0], shown[0], (*lessons[1], *shown[1]))


async def _find(given: Experience | Examples, count: _Count) -> _Counted:
    """What is in the folder, or in each of the sub folders that shared memory may choose."""
    folder = Path(given.folder)
    if not given.dynamic_sub_path:
        told, faults = await count("")
        return f"{told} in {folder}", faults
    counted = {name: await count(name) for name in _sub_folders(folder)}
    told = "; ".join(f"{name}: {there}" for name, (there, _) in counted.items()) or "none"
    faults = tuple(fault for _, of_folder in counted.values() for fault in of_folder)
    return f"in the sub folder of {folder} that shared memory chooses ({told})", faults


def _lessons_of(given: Experience) -> _Count:
    async def count(sub_path: str) -> _Counted:
        pool = given.pool(sub_path)
        await pool.load()
        waiting = len(pool.waiting)
        found = len({lesson.id for lesson in pool.lessons} - set(pool.waiting))
        return f"{found}" + (f", and {waiting} that wait for a refresh," if waiting else ""), pool.faults

    return count


def _examples_of(given: Examples) -> _Count:
    async def count(sub_path: str) -> _Counted:
        folder = await given.load(sub_path)
        return f"{len(folder.transcripts)}", folder.faults

    return count


def _sub_folders(folder: Path) -> Iterator[str]:
    names: Iterable[Path] = sorted(folder.iterdir())
    yield from (path.name for path in names if path.is_dir() and not path.name.startswith("."))
