"""What a folder of lessons costs: to be ready, to be searched, and to be held.

`python -m benchmarks.experience` prints, for so many lessons of 384 numbers each, CPU and clock milliseconds from
nothing until they are ready: with the cache that lies beside the files, and without it, beside pure PyYAML, which reads
some of the same files as TaskWeaver does. Then what a query costs beside numpy's bare product, measured in
turn in one process; and, in processes of their own, by how much memory grows beside that of the matrix, at the most and
at the end.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import trio
import yaml

from callboard.experience.index_file import NAME, Space
from callboard.experience.lesson import file_name
from callboard.experience.lesson_file import Record, digest, write_record
from callboard.experience.loader import Loader
from callboard.experience.pool import ExperiencePool
from callboard.runtime.embedder import Matrix

DIMENSION = 384
SPACE = Space("made-up", DIMENSION)
TEXT = "The user asked for a table of the orders. " * 20
LONG_AGO = 1_000_000_000
LIMIT = 5


class MadeUpEmbedder:
    """Gives one vector to all texts, at once."""

    id, dimension, threshold = SPACE.embedder, SPACE.dimension, -1.0

    def __init__(self, vector: Matrix) -> None:
        self._rows = vector.reshape(1, -1)

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """The vector, for one text."""
        await trio.lowlevel.checkpoint()
        return self._rows


def vectors(count: int, seed: int = 0) -> Matrix:
    """So many rows of length 1."""
    drawn = np.random.default_rng(seed).standard_normal((count, DIMENSION), dtype=np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return drawn


def write_lessons(folder: Path, count: int) -> None:
    """So many lessons, written long ago, as a refresh writes them."""
    for number in range(count):
        text = f"{number}. {TEXT}"
        (row,) = vectors(1, number)
        record = Record(f"lesson-{number:06}", text, None, SPACE.embedder, row, "", digest(text.encode()))
        path = folder / file_name("exp", record.id)
        path.write_bytes(write_record(record))
        os.utime(path, (LONG_AGO, LONG_AGO + 0.5))


def load(folder: Path) -> Loader:
    """A loader that has begun with nothing in memory."""
    loader = Loader(folder, SPACE)
    loader.load(lambda: None)
    return loader


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and clock milliseconds of one run."""
    cpu, clock = time.process_time(), time.perf_counter()
    work()
    return (time.process_time() - cpu) * 1e3, (time.perf_counter() - clock) * 1e3


def read_purely(paths: Sequence[Path]) -> None:
    """The files as TaskWeaver reads them."""
    for path in paths:
        yaml.safe_load(path.read_text())


def cold_start(folder: Path, count: int, runs: int, few: int) -> None:
    """Prints what it takes until the lessons are ready."""
    without = []
    for _ in range(min(runs, 3)):
        (folder / NAME).unlink(missing_ok=True)
        without.append(timed(lambda: load(folder)))
    with_cache = [timed(lambda: load(folder)) for _ in range(runs)]
    paths = sorted(folder.glob("exp_*.yaml"))[:few]
    pure = timed(lambda: read_purely(paths))[0] / len(paths) * count
    show("with the cache", with_cache)
    show("without", without)
    ours = statistics.median(cpu for cpu, _ in without)
    print(
        f"{'pure PyYAML':20}{pure:>10.0f} ms CPU, from {len(paths)} files; {pure / ours:.0f} times as much as without"
    )


def show(name: str, times: Sequence[tuple[float, float]]) -> None:
    """Prints a line of medians."""
    cpu, clock = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"{name:20}{cpu:>10.1f} ms CPU{clock:>10.1f} ms clock", flush=True)


async def retrieval(folder: Path, runs: int) -> None:
    """Prints what a query costs beside the product."""
    (query,) = vectors(1, seed=1_000_000)
    pool = ExperiencePool(folder, embedder=MadeUpEmbedder(query))
    await pool.retrieve("warm up", limit=LIMIT)
    matrix = pool._loader.loaded.index.matrix if pool._loader.loaded else vectors(1)
    pairs = []
    for _ in range(runs):
        started = time.perf_counter()
        for _ in range(10):
            matrix @ query
        product = time.perf_counter()
        for _ in range(10):
            await pool.retrieve("query", limit=LIMIT)
        pairs.append((product - started, time.perf_counter() - product))
    bare, ours = (statistics.median(column) * 100 for column in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for other, one in pairs)
    print(f"{'a query':20}{ours:>10.3f} ms, numpy's product {bare:.3f} ms: {ratio:.2f} times as much")


def resident(peak: bool) -> int:
    """Bytes of this process now, or at the most."""
    if peak:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def hold(folder: Path) -> None:
    """Prints by how many matrices memory has grown, in a process that is new."""
    load_nothing = Loader(Path(tempfile.mkdtemp()), SPACE)
    load_nothing.load(lambda: None)
    before = resident(peak=False)
    loader = load(folder)
    assert loader.loaded is not None
    size = loader.loaded.index.matrix.nbytes
    peak, now = resident(peak=True) - before, resident(peak=False) - before
    print(f"{peak / size:.2f} times the matrix at the most, {now / size:.2f} at the end, of {size / 1e6:.0f} MB")


def memory(folder: Path, count: int) -> None:
    """Prints what so many lessons take, without the cache and with it."""
    for name in ("without", "with the cache"):
        print(f"{f'{count}, {name}':24}{in_process('--hold', folder)}", flush=True)


def in_process(option: str, folder: Path) -> str:
    """What this program prints with the option, in a process of its own, with one thread for the products.

    Two threads fight each other for the cores of a busy machine, and twenty milliseconds of that hide all else.
    """
    command = [sys.executable, "-m", "benchmarks.experience", option, str(folder)]
    variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=variables).stdout.strip()


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lessons", type=int, default=10_000, help="to be ready and searched")
    parser.add_argument("--held", type=int, default=100_000, help="whose memory is measured; 0 for none")
    parser.add_argument("--pure", type=int, default=50, help="files that pure PyYAML reads")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--hold", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--search", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.search is not None:
        trio.run(retrieval, options.search, options.runs)
        return
    if options.hold is not None:
        hold(options.hold)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_lessons(Path(folder), options.lessons)
        print(f"{options.lessons} lessons of {DIMENSION} numbers are ready")
        cold_start(Path(folder), options.lessons, options.runs, options.pure)
        print(in_process("--search", Path(folder)))
    if options.held:
        with tempfile.TemporaryDirectory() as folder:
            write_lessons(Path(folder), options.held)
            memory(Path(folder), options.held)


if __name__ == "__main__":
    main()
