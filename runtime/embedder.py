"""The edge to models that make vectors of texts: one protocol, and nothing of any provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[np.float32]
"""A row for each text."""


class Embedder(Protocol):
    """Texts as vectors, alike if the texts are. One object serves any number of conversations at once."""

    @property
    def id(self) -> str:
        """The name of the space that the vectors lie in: those of two embedders with one id may be compared."""

    @property
    def dimension(self) -> int:
        """The length of each vector."""

    @property
    def threshold(self) -> float:
        """From which product of two vectors on their texts count as alike, from -1 to 1."""

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """A vector for each text, in their order, each of length 1, so that their product says how alike they are.

        Cancelled: the request is ended at once. Raises ModelError.
        """
