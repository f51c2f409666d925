"""The embedder without a model: the same vector everywhere, alike for texts that are spelt alike."""

from hashlib import sha256
from zlib import crc32

import numpy as np
import pytest
import trio

from callboard.experience import hashed_embedder
from callboard.experience.hashed_embedder import HashedEmbedder
from callboard.runtime.embedder import Embedder

TEXT = "Read the CSV with sep=';': its Gr\u00f6\u00dfe is 3\u00bd, \u65e5\u672c\u8a9e too."


async def likeness(one: str, other: str) -> float:
    left, right = await HashedEmbedder().embed([one, other])
    return float(left @ right)


def test_an_embedder_says_what_its_vectors_are() -> None:
    embedder: Embedder = HashedEmbedder()
    assert (embedder.id, embedder.dimension, embedder.threshold) == ("hashed-ngrams-1/2048", 2048, 0.2)
    assert HashedEmbedder(64).id == "hashed-ngrams-1/64"


async def test_a_vector_is_pinned_to_the_bit() -> None:
    (vector,) = await HashedEmbedder().embed([TEXT])
    assert sha256(vector.astype("<f4").tobytes()).hexdigest() == (
        "f9ff37aa8ffaade20dfde50e58972f4379644e6b647865cc2dd76f13c294fae3"
    )


async def test_a_small_vector_is_pinned_in_numbers() -> None:
    (vector,) = await HashedEmbedder(16).embed(["CSV: a b c abc"])
    root = {2: -2, 3: 1, 7: -2, 9: -1, 15: -1}
    expected = [np.sign(root.get(at, 0)) * (abs(root.get(at, 0)) / 7) ** 0.5 for at in range(16)]
    assert vector.tolist() == np.array(expected, np.float32).tolist()


async def test_a_word_is_hashed_and_signed_by_its_crc() -> None:
    (vector,) = await HashedEmbedder().embed(["ab"])
    hashed = crc32(b" ab")
    assert {at: vector[at] for at in vector.nonzero()[0]} == {hashed % 2048: 1 if hashed >> 31 else -1}


async def test_each_text_has_a_row_of_length_one_in_the_order_of_the_texts() -> None:
    together = await HashedEmbedder().embed(["one text", "", "another"])
    assert together.dtype == np.float32 and together.shape == (3, 2048)
    assert np.allclose(np.linalg.norm(together, axis=1), [1, 0, 1])
    assert (await HashedEmbedder().embed(["another"]))[0].tolist() == together[2].tolist()
    assert (await HashedEmbedder().embed([])).shape == (0, 2048)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Caf\u00e9", "CAFE\u0301"),
        ("stra\u00dfe", "STRASSE"),
        ("\uff23\uff33\uff36 \ufb01le", "csv file"),
        ("a word, and another", "another: WORD and a"),
        ("\u0345\u0301", "\u0301\u03b9"),
    ],
)
async def test_case_order_and_forms_of_unicode_make_no_difference(one: str, other: str) -> None:
    left, right = await HashedEmbedder().embed([one, other])
    assert left.any() and left.tolist() == right.tolist()


@pytest.mark.parametrize("text", ["", " \n", "?!;", "\ud800", "\U0001f600"])
async def test_a_text_without_letters_is_like_nothing(text: str) -> None:
    assert not (await HashedEmbedder().embed([text])).any()


async def test_what_is_spelt_alike_is_alike() -> None:
    assert await likeness("merging the tables", "merged tables") > 0.4
    assert await likeness("\u5408\u5e76\u8ba2\u5355\u8868\u683c", "\u8bf7\u5408\u5e76\u8ba2\u5355\u8868") > 0.3
    assert abs(await likeness("merging the tables", "a dog in Vienna")) < 0.1


@pytest.mark.parametrize(
    "word", ["\u0939\u093f\u0928\u094d\u0926\u0940", "\u0e17\u0e35\u0e48\u0e19\u0e35\u0e48", "\u01f0abc"]
)
async def test_marks_do_not_cut_a_word(word: str) -> None:
    (vector,) = await HashedEmbedder().embed([word])
    assert vector[crc32(f" {word}".encode()) % 2048]


async def test_a_word_that_comes_again_counts_less_than_another() -> None:
    assert await likeness("csv file", "csv file file file file file") > 0.85


async def test_a_long_text_is_hashed_in_pieces_between_which_others_go_on_and_a_cancellation_is_seen() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await HashedEmbedder().embed(["x" * 20_000])
        nursery.cancel_scope.cancel()
    assert turns > 4


async def test_a_text_hashed_in_pieces_has_the_vector_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"word{number}" for number in range(100))
    whole = await HashedEmbedder().embed([text])
    monkeypatch.setattr(hashed_embedder, "_AT_ONCE", 50)
    assert np.array_equal(await HashedEmbedder().embed([text]), whole)


async def test_a_long_run_has_the_vector_of_its_pieces() -> None:
    (whole, pieces) = await HashedEmbedder().embed(["x" * 64_000, " ".join(["x" * 64] * 1000)])
    assert whole.tolist() == pieces.tolist()


def test_a_vector_of_no_length_is_refused() -> None:
    with pytest.raises(ValueError, match="dimension"):
        HashedEmbedder(0)
