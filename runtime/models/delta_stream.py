"""The deltas of one reply as an async iterator over the chunks of its body.

A class, since an async generator that is left between two deltas would have to be closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable

import trio

from ..chat_model import Delta
from ..errors import ModelError
from .delta_reader import DeltaReader


class DeltaStream:
    """The deltas of one answer; each is a checkpoint. Cancelled while it waits for the server: the stream is over.

    `first` come before those of the answer. A body of more than `limit` bytes raises ModelError.
    """

    def __init__(
        self, chunks: AsyncIterator[bytes], reader: DeltaReader, limit: int, first: Iterable[Delta] = ()
    ) -> None:
        self.ended = False
        """Whether the reply is complete."""
        self._chunks = chunks
        self._reader = reader
        self._limit = limit
        self._size = 0
        self._read: deque[Delta] = deque(first)
        self._failure: ModelError | None = None

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self

    async def __anext__(self) -> Delta:
        await trio.lowlevel.checkpoint()
        while not self._read:
            if self._failure is not None:
                raise self._failure
            if self.ended:
                raise StopAsyncIteration
            await self._read_more()
        return self._read.popleft()

    async def _read_more(self) -> None:
        """Takes one chunk. An error in its middle is kept, to be raised after the deltas before it."""
        try:
            chunk = await self._next_chunk()
            self._read.extend(self._reader.feed(chunk))
            if not chunk or self._reader.done:
                self._read.extend(self._reader.finish())
                self.ended = True
        except ModelError as error:
            self._failure = error

    async def _next_chunk(self) -> bytes:
        """Some bytes, none at the end of the stream."""
        with self._reader.errors.mapped():
            async for chunk in self._chunks:
                self._size += len(chunk)
                if self._size > self._limit:
                    raise self._reader.errors.broken(f"the reply has more than {self._limit} bytes")
                if chunk:
                    return chunk
        return b""
