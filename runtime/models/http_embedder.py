"""An embedder behind HTTP: the embeddings of OpenAI, which most servers of models speak."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import trio

from ..backoff import Backoff
from ..embedder import Matrix
from ..errors import ModelError
from .body import closing
from .endpoint import ApiKey, Connection, ConnectionOptions, Endpoint, checked_options, key_of
from .http_chat_model import KEY_VARIABLE
from .remote import Remote

_JSON = "application/json"


class EmbedderOptions(ConnectionOptions, total=False):
    """The options of an HttpEmbedder: these and those of the connection, and all others for the server."""

    timeout: float
    """Seconds it may take to connect, and may pass without a byte; 60 unless given."""
    limit: int
    """How many requests run at once; 16 unless given."""
    batch: int
    """How many texts stand in one request; 100 unless given."""
    backoff: Backoff
    """How a request is made again that failed where another may do better."""
    dimensions: int
    """For the server: how long it shall make its vectors. Some take it."""
    user: str


class HttpEmbedder(Remote):
    """An Embedder at `base_url`, such as `http://localhost:8000/v1`: `async with HttpEmbedder(...) as embedder`.

    `dimension` is how long the model's vectors are; `threshold` depends on the model too, and 0.2 suits most sentence
    models. The key is `api_key` or the environment's CALLBOARD_API_KEY.
    """

    def __init__(
        self,
        base_url: str,
        *,
        name: str,
        dimension: int,
        threshold: float = 0.2,
        api_key: str | None = None,
        **options: Unpack[EmbedderOptions],
    ) -> None:
        given: dict[str, Any] = dict(options)
        connection = Connection(given.pop("timeout", 60.0), given.pop("limit", 16), given)
        super().__init__(
            name, Endpoint(base_url, "/embeddings", name, ApiKey(key_of(api_key, KEY_VARIABLE)), connection)
        )
        self._dimension = dimension
        self._threshold = threshold
        self._batch: int = given.pop("batch", 100)
        self._backoff: Backoff = given.pop("backoff", None) or Backoff()
        if self._batch < 1:
            raise ValueError(f"batch is a whole number from 1 on, not {self._batch!r}")
        self._options = checked_options(given)

    @property
    def id(self) -> str:
        """The model's name and its dimension."""
        return f"{self.name}/{self._dimension}"

    @property
    def dimension(self) -> int:
        """The length of each vector."""
        return self._dimension

    @property
    def threshold(self) -> float:
        """From which product of two vectors on their texts count as alike."""
        return self._threshold

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """A vector of length 1 for each text, in their order, by one request after another of `batch` texts.

        Cancelled: the request is ended at once. Raises ModelError, once `backoff` does not let it be made again; for
        an empty text as the server does.
        """
        await trio.lowlevel.checkpoint()
        rows = [await self._rows(texts[at : at + self._batch]) for at in range(0, len(texts), self._batch)]
        return np.concatenate(rows) if rows else np.zeros((0, self._dimension), np.float32)

    async def _rows(self, texts: Sequence[str]) -> Matrix:
        failed = 0
        while True:
            try:
                return self._matrix(await self._reply(texts), len(texts))
            except ModelError as error:
                failed += 1
                pause = self._backoff.pause(failed, error)
                if pause is None:
                    raise
            await trio.sleep(pause)

    async def _reply(self, texts: Sequence[str]) -> bytes:
        """The body of one reply."""
        limit, errors = self._endpoint.connection.reply_limit, self._endpoint.errors
        body = bytearray()
        sent = {**self._options, "model": self.name, "input": list(texts), "encoding_format": "float"}
        async with self._endpoint.post(sent, _JSON) as response, closing(response.aiter_raw()) as chunks:
            with errors.mapped():
                async for chunk in chunks:
                    body += chunk
                    if len(body) > limit:
                        raise errors.broken(f"the reply has more than {limit} bytes")
        return bytes(body)

    def _matrix(self, body: bytes, count: int) -> Matrix:
        """The vectors in a reply. Raises ModelError for what are none."""
        errors = self._endpoint.errors
        try:
            reply = json.loads(body)
            if isinstance(reply, dict) and reply.get("error"):
                raise errors.of_body(reply)
            found = sorted(reply["data"], key=lambda one: one["index"])
            matrix = np.array([one["embedding"] for one in found], np.float32)
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise errors.broken("the reply has no embeddings") from error
        if matrix.shape != (count, self._dimension) or not np.isfinite(matrix).all():
            shape = " x ".join(map(str, matrix.shape))
            raise errors.broken(f"the reply has {shape} numbers, not {count} x {self._dimension}")
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        unit: Matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths != 0)
        return unit
