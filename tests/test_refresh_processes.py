"""Refreshes in processes: two of one folder, and one that is killed wherever it is."""

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import trio

from callboard.experience import ExperiencePool
from callboard.experience.lesson_file import read_record

from .lessons import WordEmbedder, write_handcrafted, write_raw
from .test_imports import ROOT

pytestmark = pytest.mark.slow  # processes, in real time

COUNT = 12


def begin(folder: Path, notes: Path, seconds: float) -> "subprocess.Popen[str]":
    """A refresh that runs."""
    command = [sys.executable, "-m", "tests.refresh_in_process", str(folder), str(notes), str(seconds)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def filled(tmp_path: Path) -> tuple[Path, Path]:
    """A folder of sources, and where the model's calls are noted."""
    folder = tmp_path / "lessons"
    folder.mkdir()
    for number in range(COUNT):
        write_raw(folder, f"raw-{number}", f"query-{number}")
        write_handcrafted(folder, f"own-{number}", f"own {number}")
    return folder, tmp_path / "notes"


def lessons(folder: Path) -> dict[str, str]:
    """The text of each lesson; every file is whole."""
    found = {}
    for path in folder.glob("exp_*.yaml"):
        record = read_record(path.read_bytes(), path.stem.removeprefix("exp_"))
        found[record.id] = record.text
    return found


def test_two_processes_at_once_ask_for_each_lesson_once(tmp_path: Path) -> None:
    folder, notes = filled(tmp_path)
    processes = [begin(folder, notes, 0.02) for _ in range(2)]
    made = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert Counter(line.split()[0] for line in notes.read_text().splitlines()) == {
        f"query-{number}": 1 for number in range(COUNT)
    }
    assert sorted(len(ids) for ids in made) == [0, COUNT]
    assert len(lessons(folder)) == 2 * COUNT


@pytest.mark.parametrize("seed", range(2))
def test_killed_anywhere_nothing_is_half_written_and_the_next_goes_on(tmp_path: Path, seed: int) -> None:
    folder, notes = filled(tmp_path)
    waits = random.Random(seed)
    before: dict[str, str] = {}
    kills = 0
    for _ in range(60):
        calls = notes.stat().st_size if notes.exists() else 0
        process = begin(folder, notes, 0.1)
        while process.poll() is None and (not notes.exists() or notes.stat().st_size == calls):
            time.sleep(0.005)
        try:
            process.wait(waits.uniform(0, 0.5))
        except subprocess.TimeoutExpired:
            process.kill()
            kills += 1
        process.communicate()
        now = lessons(folder)
        assert before.items() <= now.items()
        before = now
        if process.returncode == 0:
            break
    assert kills
    assert process.returncode == 0
    asked = Counter(line.split()[0] for line in notes.read_text().splitlines())
    # A call that was under way when the process was killed is made again; one whose lesson was written is not.
    assert COUNT <= asked.total() <= COUNT + kills
    pool = ExperiencePool(folder, embedder=WordEmbedder())
    assert len(trio.run(pool.retrieve, "query-3 lesson of own 3")) >= COUNT
    report = trio.run(pool.refresh)
    assert (report.unchanged, report.embedded, report.faults) == (2 * COUNT, (), ())


def test_a_lock_that_a_killed_process_held_is_free(tmp_path: Path) -> None:
    folder, notes = filled(tmp_path)
    process = begin(folder, notes, 60)
    until = time.monotonic() + 30
    while not notes.exists() and time.monotonic() < until:
        time.sleep(0.02)
    process.kill()
    process.communicate()

    async def refresh() -> None:
        with trio.fail_after(10):
            await ExperiencePool(folder, embedder=WordEmbedder()).refresh()

    trio.run(refresh)
