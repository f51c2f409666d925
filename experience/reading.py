"""Reading: from an index that was, and the files that are, to the index of these files.

The rule to know: a file whose size and time of change are known is not opened; one whose digest is known is not parsed.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from callboard.runtime.errors import InvalidFile

from .index import Index, entry
from .index_file import DIGEST, IndexWriter, Space
from .lesson import Lesson, file_name
from .lesson_file import Record, read_record
from .listing import UNKNOWN, Listing

Check: TypeAlias = Callable[[], None]
"""Called between two files; what it raises ends the reading, and nothing has changed."""

_FEW = 500
"""So many files are read first, to see whether there is a new index to write at all."""

_NONE = -1


class Reading:
    """One pass over the files of a listing."""

    def __init__(self, listing: Listing, base: Index | None, space: Space, *, verify: bool = False) -> None:
        self.waiting: dict[str, Lesson] = {}
        """Lessons without a vector of this space."""
        self.faults: list[InvalidFile] = []
        self._listing = listing
        self._base = base
        self._space = space
        self._rows = _rows(listing, base)
        self._same = np.zeros(len(listing.ids), bool) if verify else _unchanged(listing, base, self._rows)
        self._read: dict[int, Record | int | None] = {}
        """What has come of files that were opened: a record, the row of the base that holds it, or nothing to find."""
        self._marks: dict[int, bytes] = {}

    def run(self, check: Check) -> Index:
        """The index of the files; the base itself if it is that."""
        for number in np.flatnonzero(~self._same)[:_FEW].tolist():
            self._open(number, check)
        if self._base is not None and self._is_base(self._base):
            return self._base
        writer = IndexWriter(self._listing.folder, self._space)
        try:
            return self._write(writer, check)
        except BaseException:
            writer.discard()
            raise

    def _is_base(self, base: Index) -> bool:
        """Whether there is nothing to write: all rows of the base are in use, and no other."""
        opened = len(self._read)
        if opened < np.count_nonzero(~self._same) or any(isinstance(read, Record) for read in self._read.values()):
            return False
        used = self._same.copy()
        used[[number for number, read in self._read.items() if read is not None]] = True
        return np.array_equal(self._listing.changed[used], base.changed)

    def _write(self, writer: IndexWriter, check: Check) -> Index:
        ids, base = self._listing.ids, self._base
        matrix = np.zeros((len(ids), self._space.dimension), np.float32)
        digests = np.zeros((len(ids), DIGEST), np.uint8)
        kept: list[int] = []
        for number in range(len(ids)):
            found = int(self._rows[number]) if self._same[number] else self._open(number, check)
            if found is None:
                continue
            at = len(kept)
            kept.append(number)
            if isinstance(found, Record):
                matrix[at] = found.vector
                digests[at] = np.frombuffer(self._marks.pop(number), np.uint8)
                writer.add(entry(found.raw_path, found.source, found.text))
            elif base is not None:
                matrix[at], digests[at] = base.matrix[found], base.digests[found]
                writer.add(base.texts.read(found))
        matrix.resize((len(kept), self._space.dimension), refcheck=False)
        stamps = self._listing.sizes[kept], self._listing.changed[kept]
        return writer.finish([ids[number] for number in kept], stamps, digests[: len(kept)], matrix)

    def _open(self, number: int, check: Check) -> Record | int | None:
        """What has come of the file; it is remembered of the first few, which are asked for twice."""
        if number in self._read:
            return self._read[number]
        check()
        id = self._listing.ids[number]
        path = self._listing.folder / file_name("exp", id)
        try:
            found = self._look(number, id, path)
        except FileNotFoundError:  # it has gone since the folder was listed
            found = None
        except (OSError, InvalidFile) as error:
            self.faults.append(fault_of(error, path))
            found = None
        if len(self._read) < _FEW:
            self._read[number] = found
        return found

    def _look(self, number: int, id: str, path: Path) -> Record | int | None:
        data = path.read_bytes()
        mark = sha256(data).digest()[:DIGEST]
        row = int(self._rows[number])
        if self._base is not None and row != _NONE and self._base.digests[row].tobytes() == mark:
            return row
        record = read_record(data, id)
        if not record.fits(self._space.embedder, self._space.dimension):
            self.waiting[id] = Lesson(id, record.text, record.raw_path)
            return None
        self._marks[number] = mark
        return record


def fault_of(error: OSError | InvalidFile, path: Path) -> InvalidFile:
    """What is wrong with the file of that path."""
    if isinstance(error, InvalidFile):
        return InvalidFile(error.message, path=path, line=error.line, key=error.key, remedy=error.remedy)
    return InvalidFile(error.strerror or str(error), path=path, remedy="check the file and its permissions")


def _rows(listing: Listing, base: Index | None) -> NDArray[np.intp]:
    """For each file the row of the base that has its id, or none."""
    count = len(listing.ids)
    if base is None:
        return np.full(count, _NONE, np.intp)
    if base.ids == listing.ids:
        return np.arange(count)
    by_id = {id: row for row, id in enumerate(base.ids)}
    return np.array([by_id.get(id, _NONE) for id in listing.ids], np.intp)


def _unchanged(listing: Listing, base: Index | None, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (rows != _NONE) & (listing.changed != UNKNOWN)
    if base is not None and len(base):
        same &= (base.sizes[rows] == listing.sizes) & (base.changed[rows] == listing.changed)
    return same
