"""Folders of lessons for tests, and an embedder that counts words and notes what it was given."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from zlib import crc32

import numpy as np
import trio

from callboard.runtime.chat_model import ChatRequest, Delta, EndDelta, TextDelta
from callboard.runtime.embedder import Matrix
from callboard.runtime.errors import ModelError
from callboard.runtime.transcript_file import dump

HANDCRAFTED = """\
# a lesson of ours
exp_id: greet
experience_text: |-
  - Answer politely.
"""
OLD = """\
exp_id: greet
experience_text: "- Answer politely."
raw_experience_path: null
embedding_model: all-mpnet-base-v2
embedding: [0.01, -0.02]
"""


class WordEmbedder:
    """Alike are texts that share words."""

    def __init__(self, id: str = "words", dimension: int = 64) -> None:
        self.id = id
        self.dimension = dimension
        self.threshold = 0.2
        self.given: list[str] = []
        """Every text, in order."""
        self.error: ModelError | None = None
        """What is raised for the next texts, once."""

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """Raises the error, if there is one."""
        await trio.lowlevel.checkpoint()
        if error := self.error:
            self.error = None
            raise error
        self.given += texts
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[crc32(word.strip(".:,-").encode()) % self.dimension] += 1
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: Matrix = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths != 0)
        return unit


class HeldModel:
    """A model that replies when it is told to, with what it is told."""

    name = "held"

    def __init__(self) -> None:
        self._say, self._said = trio.open_memory_channel[str](10)
        self._call, self._called = trio.open_memory_channel[ChatRequest](10)

    async def called(self) -> ChatRequest:
        """The next request, as soon as it has come."""
        return await self._called.receive()

    def say(self, text: str) -> None:
        """Replies to the request."""
        self._say.send_nowait(text)

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Delta]]:
        """Holds the request until the reply was told."""
        self._call.send_nowait(request)
        text = await self._said.receive()
        yield _deltas(text)


async def _deltas(text: str) -> AsyncIterator[Delta]:
    yield TextDelta(text)
    yield EndDelta("stop")


def write_raw(folder: Path, id: str, query: str = "Sell tea.", correction: str = "") -> Path:
    """A saved conversation."""
    post = {"id": "post-1", "message": query, "send_from": "User", "send_to": "Planner", "attachment_list": []}
    said = {**post, "id": "post-2", "message": correction, "kind": "intervention", "words": "words-1"}
    posts = [post, said] if correction else [post]
    round_ = {"id": "round-1", "user_query": query, "state": "finished", "post_list": posts}
    path = folder / f"raw_exp_{id}.yaml"
    path.write_bytes(dump({"id": id, "plugins": [], "roles": ["User"], "enabled": True, "rounds": [round_]}))
    return path


def write_handcrafted(folder: Path, id: str, text: str) -> Path:
    """A lesson that a person wrote."""
    path = folder / f"handcrafted_exp_{id}.yaml"
    path.write_bytes(dump({"exp_id": id, "experience_text": text}))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of all files but the cache and the lock, by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith(".")}
