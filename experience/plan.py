"""Plan: what a refresh has to do for each lesson of a folder, decided by the digests of the files.

The rule to know: a text is made anew only if its source is new or changed, a vector only if its text or the embedder
is. A lesson whose file notes no source, such as one of TaskWeaver, is taken as made of the conversation that is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from callboard.runtime.errors import InvalidFile

from .index_file import Space
from .lesson import Kind, file_name
from .lesson_file import NO_VECTOR, Record, digest, read_record, read_text_of
from .loader import Loaded
from .reading import Check, fault_of


@dataclass(slots=True)
class Plan:
    """The work of one refresh."""

    to_write: list[str] = field(default_factory=list)
    """Lessons that have a text, and lack a vector, a note of what they were made of, or the text of a person's file."""
    to_summarize: list[str] = field(default_factory=list)
    """Conversations without a lesson, or changed since."""
    orphans: list[str] = field(default_factory=list)
    unchanged: int = 0
    faults: list[InvalidFile] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Origin:
    """What is known of a lesson that is there."""

    raw_path: str
    source: str
    is_ready: bool
    """Whether it has its vector."""


def make_plan(folder: Path, loaded: Loaded, check: Check) -> Plan:
    """Opens every source, and of the lessons those that are not in the index."""
    plan = Plan()
    rows = {id: row for row, id in enumerate(loaded.index.ids)}
    broken = {Path(fault.path).name for fault in loaded.faults if fault.path is not None}
    for id in sorted({*rows, *loaded.waiting, *loaded.sources}):
        check()
        if file_name("exp", id) in broken:  # whatever it holds, nothing is written over it
            continue
        try:
            origin = _origin(folder, id, rows.get(id), loaded)
            _place(plan, folder, id, loaded.sources.get(id), origin)
        except InvalidFile as fault:
            plan.faults.append(fault)
    return plan


def _origin(folder: Path, id: str, row: int | None, loaded: Loaded) -> _Origin | None:
    if row is not None:
        return _Origin(*loaded.index.origin(row), is_ready=True)
    record = read_lesson(folder, id) if id in loaded.waiting else None
    return None if record is None else _Origin(record.raw_path or "", record.source, is_ready=False)


def _place(plan: Plan, folder: Path, id: str, kind: Kind | None, origin: _Origin | None) -> None:
    known = origin.source if origin is not None else None
    mark = known if kind is None else digest(read_source(folder, kind, id))
    if kind is None and origin is not None and (origin.raw_path or origin.source):
        plan.orphans.append(id)
    if kind == "raw_exp" and known not in ("", mark):
        plan.to_summarize.append(id)
    elif known != mark or (origin is not None and not origin.is_ready):
        plan.to_write.append(id)
    else:
        plan.unchanged += 1


def read_source(folder: Path, kind: Kind, id: str) -> bytes:
    """The bytes of what a lesson is made of. Raises InvalidFile."""
    path = folder / file_name(kind, id)
    try:
        return path.read_bytes()
    except OSError as error:
        raise fault_of(error, path) from error


def read_lesson(folder: Path, id: str) -> Record | None:
    """The lesson as its file has it, None if there is no file. Raises InvalidFile."""
    path = folder / file_name("exp", id)
    try:
        return read_record(path.read_bytes(), id)
    except FileNotFoundError:
        return None
    except (OSError, InvalidFile) as error:
        raise fault_of(error, path) from error


def as_planned(folder: Path, kind: Kind | None, id: str, space: Space) -> Record | None:
    """A lesson of `to_write` as its file is to be, without a vector if there is no good one; None if it has gone.

    Raises InvalidFile.
    """
    record = read_lesson(folder, id)
    if kind == "handcrafted_exp":
        record = _of_person(folder, id, record)
    elif kind == "raw_exp" and record is not None:
        record = replace(record, source=record.source or digest(read_source(folder, kind, id)))
    if record is None or record.fits(space.embedder, space.dimension):
        return record
    return replace(record, vector=NO_VECTOR, embedder=None, embedded="")


def _of_person(folder: Path, id: str, record: Record | None) -> Record:
    """The lesson with the text of the person's file, if that has changed or nobody noted what it was."""
    data = read_source(folder, "handcrafted_exp", id)
    mark = digest(data)
    if record is not None and record.source == mark:
        return record
    try:
        text = read_text_of(data, id)
    except InvalidFile as error:
        raise fault_of(error, folder / file_name("handcrafted_exp", id)) from error
    if record is not None and record.text == text:
        return replace(record, source=mark, raw_path=None)
    extra = {} if record is None else record.extra
    return Record(id, text, source=mark, extra=extra)
