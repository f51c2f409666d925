"""Hashed embedder: texts as counts of their words and parts of words, without a model, a network or a dependency.

The rule to know: its vectors are kept in files, so the same text has the same vector in every process, on every
machine and under every version of Python, to the bit. What changes one must change `_SPACE`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from unicodedata import normalize
from zlib import crc32

import numpy as np
import trio
from numpy.typing import NDArray

from callboard.runtime.embedder import Matrix

_SPACE = "hashed-ngrams-1"

# Signs that combine are no letters for `\w`, and would cut the words of Hindi, Thai or pointed Hebrew and Arabic: the
# blocks that hold them, without their punctuation.
_MARKS = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    r"\u0900-\u0963\u0966-\u096f\u0971-\u0df3\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece"
    r"\u1000-\u1049\u1780-\u17d3\u200c\u200d"
)

# Longer runs, as of data or of scripts without spaces, are cut: what a piece has is hashed between two checkpoints.
_WORD = re.compile(rf"[\w{_MARKS}]{{1,64}}")
_PARTS = (3, 4, 5)

# About five milliseconds of work.
_AT_ONCE = 10_000


class HashedEmbedder:
    """An Embedder that finds texts by the words and spellings they share: no paraphrases.

    Case and the forms of Unicode that mean the same make no difference. A text without letters and digits has a vector
    of zeros, which is like nothing.
    """

    def __init__(self, dimension: int = 2048) -> None:
        if dimension < 1:
            raise ValueError(f"dimension is a number from 1 on, not {dimension!r}")
        self._dimension = dimension

    def __repr__(self) -> str:
        return f"<HashedEmbedder {self.id}>"

    @property
    def id(self) -> str:
        """The space of the vectors: how they are made, and their length."""
        return f"{_SPACE}/{self._dimension}"

    @property
    def dimension(self) -> int:
        """The length of each vector."""
        return self._dimension

    @property
    def threshold(self) -> float:
        """From which product of two vectors on their texts count as alike: 0.2, measured by `benchmarks/embedders`."""
        return 0.2

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """A vector for each text, in their order, of length 1, or of zeros.

        Works in the caller's task and lets others go on every few milliseconds. Cancelled: it ends there.
        """
        await trio.lowlevel.checkpoint()
        matrix: Matrix = np.zeros((len(texts), self._dimension), np.float32)
        for row, text in zip(matrix, texts, strict=True):
            row[:] = _vector(await self._sums(text))
            await trio.lowlevel.checkpoint()
        return matrix

    async def _sums(self, text: str) -> NDArray[np.float64]:
        """For each place of the vector, the signs of the hashes that fall on it, added up."""
        sums = np.zeros(self._dimension)
        hashes: list[int] = []
        for word in _WORD.finditer(_normal(text)):
            hashes.extend(_hashes(word[0]))
            if len(hashes) >= _AT_ONCE:
                sums += self._counted(hashes)
                hashes.clear()
                await trio.lowlevel.checkpoint()
        return sums + self._counted(hashes)

    def _counted(self, hashes: Sequence[int]) -> NDArray[np.float64]:
        found = np.array(hashes, np.uint32)
        signs = np.where(found >> 31, 1.0, -1.0)
        places = (found % self._dimension).astype(np.intp)
        return np.bincount(places, weights=signs, minlength=self._dimension).astype(np.float64, copy=False)


def _normal(text: str) -> str:
    # Folding the case may leave a form that is none of NFKC.
    return normalize("NFKC", normalize("NFKC", text).casefold())


def _hashes(word: str) -> Iterator[int]:
    # The space tells a word from the part of another that is spelt like it.
    yield crc32(f" {word}".encode())
    for length in _PARTS:
        for at in range(len(word) - length + 1):
            yield crc32(word[at : at + length].encode())


def _vector(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    # Sums of signs are whole, so their sum is exact in any order, and IEEE 754 rounds roots and quotients in one way.
    size = np.abs(sums)
    length = np.sqrt(size.sum())
    vector: NDArray[np.float64] = np.sign(sums) * np.sqrt(size) / length if length else sums
    return vector
