"""The file of an index: the texts first, as they are read, then the arrays, and at the end what they are.

The rule to know: it holds nothing that the lessons' files do not hold. What cannot be read is made anew.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import tempfile
from array import array
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO
from zlib import crc32

import numpy as np

from callboard.runtime.embedder import Matrix
from callboard.runtime.value import value

from .index import Counts, Digests, Index, Texts

NAME = ".callboard.cache"
DIGEST = 16
"""Bytes of each file's digest."""

_VERSION = 1
_LENGTH = struct.Struct("<Q")
_PART = 1 << 18


@value
class Space:
    """Which vectors may be compared: those of one embedder, of one length."""

    embedder: str
    dimension: int


class IndexWriter:
    """Writes one index: the texts one by one, then all else. `discard` it if it is not finished."""

    def __init__(self, folder: Path, space: Space) -> None:
        self._space = space
        self._target = folder / NAME
        self._temporary: Path | None = folder / f".{token_hex(8)}.tmp"
        self._file: BinaryIO
        try:
            self._file = open(self._temporary, "x+b")  # noqa: SIM115 (the index that is made keeps it open)
        except OSError:
            # A folder that may not be written to works too: the index then begins anew with each process.
            self._temporary = None
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (as above)
        self._starts = array("q", [0])

    def add(self, text: bytes) -> None:
        """The entry of the next row."""
        self._file.write(text)
        self._starts.append(self._starts[-1] + len(text))

    def finish(self, ids: Sequence[str], stamps: tuple[Counts, Counts], digests: Digests, matrix: Matrix) -> Index:
        """The index, and its file beside the lessons if the folder may be written to."""
        starts = np.array(self._starts, np.int64)
        named = "\n".join(ids).encode()
        self._file.flush()  # numpy writes past the buffer
        for part in (starts, *stamps, digests, matrix):
            part.tofile(self._file)
        self._file.write(named)
        self._file.flush()
        sizes = {"count": len(ids), "names": len(named), "sum": _sum(self._file, self._file.tell())}
        foot = {"version": _VERSION, **_described(self._space), **sizes}
        end = json.dumps(foot).encode()
        self._file.write(end + _LENGTH.pack(len(end)))
        self._file.flush()
        if self._temporary is not None:
            os.fsync(self._file.fileno())
            self._replace(self._temporary)
        return Index(tuple(ids), *stamps, digests, matrix, Texts(self._file, starts))

    def _replace(self, temporary: Path) -> None:
        try:
            os.replace(temporary, self._target)
        except OSError:  # on Windows, while another process reads the old one
            temporary.unlink(missing_ok=True)

    def discard(self) -> None:
        """Leaves nothing of it."""
        self._file.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)


def open_index(folder: Path, space: Space) -> Index | None:
    """The index that lies beside the lessons; None if there is none of that space, or none that is whole."""
    try:
        file = open(folder / NAME, "rb")  # noqa: SIM115 (the index keeps it open)
    except OSError:
        return None
    try:
        return _read(file, space)
    except (OSError, ValueError, TypeError, LookupError, struct.error):
        file.close()
        return None


def _described(space: Space) -> dict[str, Any]:
    return {"embedder": space.embedder, "dimension": space.dimension, "order": sys.byteorder}


def _sum(file: BinaryIO, size: int) -> int:
    """Of so many bytes from the beginning; the file stands behind them then."""
    file.seek(0)
    sum = 0
    while size:
        part = file.read(min(size, _PART))
        if not part:
            raise ValueError("not whole")
        sum = crc32(part, sum)
        size -= len(part)
    return sum


def _read(file: BinaryIO, space: Space) -> Index:
    """Raises ValueError, and others, for what is no whole index of that space."""
    whole = file.seek(0, os.SEEK_END)
    file.seek(-_LENGTH.size, os.SEEK_END)
    (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
    file.seek(whole - _LENGTH.size - length)
    foot = json.loads(file.read(length))
    if {key: foot.get(key) for key in ("version", *_described(space))} != {"version": _VERSION, **_described(space)}:
        raise ValueError("of another kind")
    if foot["sum"] != _sum(file, whole - _LENGTH.size - length):
        raise ValueError("not whole")
    count, names = foot["count"], foot["names"]
    arrays = 8 * (count + 1) + 2 * 8 * count + DIGEST * count + 4 * space.dimension * count
    texts = whole - _LENGTH.size - length - names - arrays
    file.seek(texts)
    starts = np.fromfile(file, np.int64, count + 1)
    sizes, changed = np.fromfile(file, np.int64, count), np.fromfile(file, np.int64, count)
    digests = np.fromfile(file, np.uint8, DIGEST * count).reshape(count, DIGEST)
    matrix = np.fromfile(file, np.float32, space.dimension * count).reshape(count, space.dimension)
    ids = tuple(file.read(names).decode().split("\n")) if count else ()
    if len(ids) != count or starts[-1] != texts:
        raise ValueError("not whole")
    return Index(ids, sizes, changed, digests, matrix, Texts(file, starts))
