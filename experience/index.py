"""Index: the lessons of a folder that can be found, as one matrix, with their texts on disk.

The rule to know: an index never changes. It holds ids and vectors in memory; texts it reads from its own open file,
which stays as it was whatever becomes of its name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from threading import Lock
from typing import BinaryIO, TypeAlias
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from callboard.runtime.embedder import Matrix

from .lesson import Lesson

Counts: TypeAlias = NDArray[np.int64]
Digests: TypeAlias = NDArray[np.uint8]
"""A row of 16 bytes for each file."""

_BETWEEN = "\0"


class Texts:
    """What stands beside each vector, read from a file when it is asked for; threads may share it."""

    __slots__ = ("__weakref__", "_file", "_lock", "_starts")

    def __init__(self, file: BinaryIO, starts: Counts) -> None:
        self._file = file
        self._starts = starts
        self._lock = Lock()
        finalize(self, file.close)

    def read(self, row: int) -> bytes:
        """The entry of that row."""
        start, stop = int(self._starts[row]), int(self._starts[row + 1])
        if hasattr(os, "pread"):
            return os.pread(self._file.fileno(), stop - start, start)
        with self._lock:
            self._file.seek(start)
            return self._file.read(stop - start)


@dataclass(frozen=True, slots=True)
class Index:
    """The lessons of a folder whose vectors one embedder made."""

    ids: tuple[str, ...]
    """In order; all else has a row for each."""
    sizes: Counts
    changed: Counts
    digests: Digests
    """Of the files' bytes."""
    matrix: Matrix
    texts: Texts

    def __len__(self) -> int:
        return len(self.ids)

    def lesson(self, row: int) -> Lesson:
        """The lesson of that row."""
        raw_path, _, text = self._entry(row)
        return Lesson(self.ids[row], text, raw_path or None)

    def origin(self, row: int) -> tuple[str, str]:
        """Where the conversation of a lesson lay, and the digest of what it was made of; both may be empty."""
        raw_path, source, _ = self._entry(row)
        return raw_path, source

    def search(self, vector: Matrix, threshold: float, limit: int | None) -> tuple[list[int], list[float]]:
        """The rows whose product with the vector reaches the threshold, and these products: the greatest first.

        What is equal stands in the order of the ids, at the limit too.
        """
        scores = self.matrix @ vector
        rows = np.flatnonzero(scores >= threshold)
        if limit is not None and limit < rows.size:
            found = scores[rows]
            least = np.partition(found, rows.size - limit)[rows.size - limit] if limit else np.inf
            rows = rows[found >= least]
        rows = rows[np.argsort(-scores[rows], kind="stable")][:limit]
        return rows.tolist(), scores[rows].tolist()

    def _entry(self, row: int) -> list[str]:
        return self.texts.read(row).decode().split(_BETWEEN, 2)


def entry(raw_path: str | None, source: str, text: str) -> bytes:
    """What stands beside a vector."""
    return _BETWEEN.join(((raw_path or "").replace(_BETWEEN, ""), source, text)).encode()
