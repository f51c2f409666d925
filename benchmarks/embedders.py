"""How well the embedders find the lesson that a query needs, which threshold suits each, and what a text costs.

`python -m benchmarks.embedders` asks for each of the lessons in `lessons.yaml` twice: easy queries are later tasks of
the same kind, hard ones mean the same and share almost no word with it. Top-1 is the share of queries to which the
right lesson is the nearest. For each threshold: the share of right lessons that reach it, how many wrong ones an easy
query is given, and the share of strangers, queries that no lesson helps with, that are given any. The server is a local
one with the sentence model behind it, in the same process: its vectors are the same, and both sides are in its time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import trio
import yaml

from benchmarks._embeddings_server import served
from callboard.experience.hashed_embedder import HashedEmbedder
from callboard.experience.sentence_embedder import MissingExtra, SentenceEmbedder
from callboard.runtime.embedder import Embedder, Matrix
from callboard.runtime.models.http_embedder import HttpEmbedder

NAMES = ("hashed", "sentence", "http")
THRESHOLDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)


@dataclass(frozen=True)
class Pairs:
    """The texts: to each lesson the queries at its place, and queries that have none."""

    lessons: tuple[str, ...]
    easy: tuple[str, ...]
    hard: tuple[str, ...]
    strangers: tuple[str, ...]


@dataclass(frozen=True)
class Scores:
    """How alike an embedder finds them: a row for each query, a column for each lesson."""

    easy: Matrix
    hard: Matrix
    strangers: Matrix


@dataclass(frozen=True)
class Course:
    """What a threshold lets through."""

    easy: float
    """The share of right lessons that an easy query is given."""
    hard: float
    wrong: float
    """How many wrong lessons an easy query is given."""
    strangers: float
    """The share of strangers that are given any lesson."""


def read_pairs() -> Pairs:
    """What stands in `lessons.yaml`."""
    data = yaml.safe_load(Path(__file__).with_name("lessons.yaml").read_text(encoding="utf-8"))
    lessons, easy, hard = (tuple(lesson[key] for lesson in data["lessons"]) for key in ("lesson", "easy", "hard"))
    return Pairs(lessons, easy, hard, tuple(data["strangers"]))


async def score(embedder: Embedder, pairs: Pairs) -> Scores:
    """The products of all vectors."""
    lessons = await embedder.embed(pairs.lessons)
    easy, hard, strangers = [
        await embedder.embed(queries) @ lessons.T for queries in (pairs.easy, pairs.hard, pairs.strangers)
    ]
    return Scores(easy, hard, strangers)


def top_1(scores: Matrix) -> float:
    """The share of queries to which the right lesson, the one at their own place, is the nearest."""
    return float((scores.argmax(axis=1) == np.arange(len(scores))).mean())


def course(scores: Scores, threshold: float) -> Course:
    """What the threshold lets through."""
    wrong = np.count_nonzero(scores.easy >= threshold) - np.count_nonzero(np.diag(scores.easy) >= threshold)
    return Course(
        float((np.diag(scores.easy) >= threshold).mean()),
        float((np.diag(scores.hard) >= threshold).mean()),
        wrong / len(scores.easy),
        float((scores.strangers.max(axis=1) >= threshold).mean()),
    )


async def cost(embedder: Embedder, texts: Sequence[str], runs: int) -> tuple[float, float]:
    """Milliseconds for each text, medians: CPU time of all threads, and what passed."""
    taken: list[tuple[float, float]] = []
    for _ in range(runs):
        cpu, passed = time.process_time(), time.perf_counter()
        await embedder.embed(texts)
        taken.append((time.process_time() - cpu, time.perf_counter() - passed))
    cpu, passed = (statistics.median(column) / len(texts) * 1e3 for column in zip(*taken, strict=True))
    return cpu, passed


@asynccontextmanager
async def embedder_of(name: str) -> AsyncIterator[Embedder]:
    """The embedder of that name. Raises MissingExtra."""
    match name:
        case "hashed":
            yield HashedEmbedder()
        case "sentence":
            yield SentenceEmbedder()
        case _:
            behind = SentenceEmbedder()
            async with (
                served(behind) as url,
                HttpEmbedder(url, name="local", dimension=behind.dimension, threshold=behind.threshold) as embedder,
            ):
                yield embedder


async def measure(name: str, runs: int) -> None:
    """Prints the lines of one embedder."""
    pairs = read_pairs()
    async with embedder_of(name) as embedder:
        # First, since the threads of numpy's products keep their cores busy for a while.
        cpu, passed = await cost(embedder, pairs.lessons, runs)
        scores = await score(embedder, pairs)
    print(f"{name:10}{top_1(scores.easy):>10.2f}{top_1(scores.hard):>10.2f}{cpu:>13.2f}{passed:>13.2f}")
    print(f"{'':10}{'threshold':>10}{'easy':>10}{'hard':>10}{'wrong':>13}{'strangers':>13}")
    for threshold in THRESHOLDS:
        through = course(scores, threshold)
        mark = "*" if threshold == embedder.threshold else ""
        print(
            f"{mark:>10}{threshold:>10}{through.easy:>10.2f}{through.hard:>10.2f}{through.wrong:>13.2f}"
            f"{through.strangers:>13.2f}",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table for each embedder, the threshold it has marked; what cannot run is named with the reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedders", default=",".join(NAMES), help="which, separated by commas")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.embedders.split(",")) - set(NAMES)):
        parser.error(f"no such embedder: {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    print(f"{'embedder':10}{'top-1 easy':>10}{'hard':>10}{'CPU ms/text':>13}{'ms/text':>13}")
    for name in options.embedders.split(","):
        try:
            trio.run(measure, name, options.runs)
        except MissingExtra as error:
            print(f"{name:10}left out: {error}")


if __name__ == "__main__":
    main()
