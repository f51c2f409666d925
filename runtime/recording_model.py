"""A model that keeps what another one replies in a cassette, for a ReplayModel.

The rule to know: a call is kept when it has ended well, read to its end or left by a reader that had enough. What
failed or was cancelled is not kept: it is no reply.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, TypeAlias

import trio

from .cassette import Secrets, Timed, append, recording_of
from .chat_model import ChatModel, ChatRequest, Delta, FallbackDelta, RetryingDelta

Timing: TypeAlias = Literal["left out", "kept"]


class RecordingModel:
    """A ChatModel that passes on what `model` replies, and adds each call to the file at `path`.

    `secrets` are texts that the file must not hold, wherever in the messages or the reply they stand. With `timing`
    kept, a replay takes as long as the call did. Raises ValueError for an empty secret.
    """

    def __init__(
        self,
        model: ChatModel,
        path: str | os.PathLike[str],
        *,
        secrets: Iterable[str] = (),
        timing: Timing = "left out",
    ) -> None:
        self._model = model
        self._path = Path(path)
        self._secrets = Secrets(secrets)
        self._timing = timing

    @property
    def name(self) -> str:
        """The name of the model that it calls."""
        return self._model.name

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Delta]]:
        """The deltas of the reply. Cancelled: the call is ended at once. Raises what the call raised, and OSError."""
        async with self._model.stream(request) as deltas:
            listening = _Listening(deltas)
            yield listening
        heard = listening.heard if self._timing == "kept" else [(0.0, delta) for _, delta in listening.heard]
        append(self._path, recording_of(self.name, request, heard, self._secrets))

    def __repr__(self) -> str:
        return f"<RecordingModel {self._model!r} to {self._path}>"


class _Listening:
    """Passes deltas on, and remembers those of the reply."""

    def __init__(self, deltas: AsyncIterator[Delta]) -> None:
        self.heard: list[Timed] = []
        self._deltas = deltas
        self._last = trio.current_time()

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self

    async def __anext__(self) -> Delta:
        delta = await self._deltas.__anext__()
        if not isinstance(delta, RetryingDelta | FallbackDelta):
            now = trio.current_time()
            self.heard.append((now - self._last, delta))
            self._last = now
        return delta
