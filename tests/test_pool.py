"""A pool of lessons: what is found, when what is new is found, and what is added and removed."""

import os
import threading
from pathlib import Path
from unittest import mock

import pytest
import trio

from callboard.experience import ExperiencePool, Found, Lesson
from callboard.experience.index import Index
from callboard.experience.listing import read_listing
from callboard.experience.loader import Loader
from callboard.runtime.embedder import Embedder
from callboard.runtime.errors import InvalidFile, ModelError
from callboard.runtime.testing import run_seeded

from .lessons import WordEmbedder, contents, write_handcrafted, write_raw

LESSONS = {"both": "sell tea", "coffee": "sell coffee", "other": "write a poem", "tea": "sell tea"}


async def filled(folder: Path, **lessons: str) -> ExperiencePool:
    """A pool that has been refreshed."""
    for id, text in (lessons or LESSONS).items():
        write_handcrafted(folder, id, text)
    pool = ExperiencePool(folder, embedder=WordEmbedder())
    await pool.refresh()
    return pool


def ids(found: tuple[Found, ...]) -> list[str]:
    """Of the lessons, in order."""
    return [one.lesson.id for one in found]


async def test_the_best_stand_first_and_equals_by_their_ids(tmp_path: Path) -> None:
    pool = await filled(tmp_path)
    found = await pool.retrieve("sell tea")
    assert ids(found) == ["both", "tea", "coffee"]
    assert [type(one.score) for one in found] == [float] * 3
    assert [one.score for one in found] == pytest.approx([1.0, 1.0, 0.5])
    assert found[0].lesson == Lesson("both", "sell tea")


async def test_the_threshold_is_the_embedders_or_ones_own_and_is_enough(tmp_path: Path) -> None:
    pool = await filled(tmp_path)
    assert ids(await pool.retrieve("sell")) == ["both", "coffee", "tea"]
    assert ids(await pool.retrieve("sell tea", threshold=0.9)) == ["both", "tea"]
    assert len(await pool.retrieve("sell tea", threshold=-1)) == 4
    assert await pool.retrieve("nothing alike") == ()


async def test_a_limit_keeps_the_best(tmp_path: Path) -> None:
    pool = await filled(tmp_path)
    assert ids(await pool.retrieve("sell tea", limit=1)) == ["both"]
    assert ids(await pool.retrieve("sell tea", limit=0)) == []
    with pytest.raises(ValueError, match="limit is a number from 0 on"):
        await pool.retrieve("sell tea", limit=-1)


async def test_each_query_finds_its_own(tmp_path: Path) -> None:
    pool = await filled(tmp_path)
    assert ids(await pool.retrieve("a poem")) == ["other"]
    assert ids(await pool.retrieve("coffee")) == ["coffee"]


async def test_many_are_read_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.experience.pool._MANY", 2)
    pool = await filled(tmp_path)
    threads = []
    lesson = Index.lesson

    def note(index: Index, row: int) -> Lesson:
        threads.append(threading.current_thread())
        return lesson(index, row)

    with mock.patch.object(Index, "lesson", note):
        assert ids(await pool.retrieve("tea")) == ["both", "tea"]
        assert ids(await pool.retrieve("coffee")) == ["coffee"]
    assert [one is threading.current_thread() for one in threads] == [False, False, True]


async def test_a_pool_that_begins_finds_what_others_have_made(tmp_path: Path) -> None:
    await filled(tmp_path)
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder())
    assert "not loaded" in repr(pool)
    assert ids(await pool.retrieve("coffee")) == ["coffee"]
    assert "4 lessons, 0 waiting" in repr(pool)


async def test_what_another_pool_adds_and_removes_is_seen_by_the_next_query(tmp_path: Path) -> None:
    pool = await filled(tmp_path, tea="sell tea")
    other = ExperiencePool(tmp_path, embedder=WordEmbedder())
    assert ids(await pool.retrieve("tea coffee")) == ["tea"]
    await other.add("sell coffee", "coffee")
    await other.refresh()
    assert ids(await pool.retrieve("tea coffee")) == ["coffee", "tea"]
    await other.remove("tea")
    assert ids(await pool.retrieve("tea coffee")) == ["coffee"]


async def test_a_query_leaves_a_folder_alone_that_has_not_changed(tmp_path: Path) -> None:
    pool = await filled(tmp_path)
    os.utime(tmp_path, (1, 1))
    await pool.retrieve("tea")
    with mock.patch.object(Loader, "catch_up", side_effect=AssertionError):
        assert len(await pool.retrieve("tea")) == 2
    os.utime(tmp_path)
    with pytest.raises(AssertionError), mock.patch.object(Loader, "catch_up", side_effect=AssertionError):
        await pool.retrieve("tea")


async def test_a_source_without_a_lesson_waits_and_is_no_fault(tmp_path: Path) -> None:
    pool = await filled(tmp_path, tea="sell tea")
    write_raw(tmp_path, "new")
    write_handcrafted(tmp_path, "more", "sell more tea")
    assert ids(await pool.retrieve("tea")) == ["tea"]
    assert (pool.waiting, pool.faults) == (("more", "new"), ())
    assert [lesson.id for lesson in pool.lessons] == ["tea"]


async def test_lessons_that_wait_for_their_vector_are_listed(tmp_path: Path) -> None:
    await filled(tmp_path)
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder("others"))
    assert (pool.lessons, pool.waiting, pool.faults) == ((), (), ())
    await pool.load()
    assert [lesson.text for lesson in pool.lessons] == list(LESSONS.values())
    assert pool.waiting == tuple(LESSONS)


async def test_without_a_folder_nothing_is_found_and_that_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="make the folder, or name another one"):
        await ExperiencePool(tmp_path / "none").retrieve("tea")


async def test_an_embedder_that_fails_fails_the_query(tmp_path: Path) -> None:
    pool = await filled(tmp_path)
    embedder: Embedder = pool.embedder
    assert isinstance(embedder, WordEmbedder)
    embedder.error = ModelError("busy", fault="server", may_retry=True)
    with pytest.raises(ModelError, match="busy"):
        await pool.retrieve("tea")
    assert len(await pool.retrieve("tea")) == 2


async def test_without_an_embedder_words_are_hashed(tmp_path: Path) -> None:
    write_handcrafted(tmp_path, "tea", "Sell tea by the pound.")
    pool = ExperiencePool(tmp_path)
    await pool.refresh()
    assert ids(await pool.retrieve("sell a pound of tea")) == ["tea"]


async def test_what_is_added_has_an_id_and_is_found_after_a_refresh(tmp_path: Path) -> None:
    pool = await filled(tmp_path)
    id = await pool.add("- Bake bread.\n- Not cake.")
    assert id.startswith("lesson-")
    assert ids(await pool.retrieve("bake bread")) == []
    await pool.refresh()
    (found,) = await pool.retrieve("bake bread")
    assert (found.lesson.id, found.lesson.text) == (id, "- Bake bread.\n- Not cake.")


@pytest.mark.parametrize(
    ("text", "id", "message"),
    [(" ", "new", "not empty"), ("x", "tea", "is taken by handcrafted_exp_tea.yaml"), ("x", "../tea", "is no id")],
)
async def test_what_cannot_be_added_changes_nothing(tmp_path: Path, text: str, id: str, message: str) -> None:
    pool = await filled(tmp_path, tea="sell tea")
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=message):
        await pool.add(text, id)
    assert contents(tmp_path) == before


async def test_a_lesson_is_removed_with_its_source_and_not_made_again(tmp_path: Path) -> None:
    pool = await filled(tmp_path)
    assert await pool.remove("tea") == ("handcrafted_exp_tea.yaml", "exp_tea.yaml")
    assert ids(await pool.retrieve("tea")) == ["both"]
    await pool.refresh()
    assert ids(await pool.retrieve("tea")) == ["both"]


@pytest.mark.parametrize(("id", "message"), [("none", "there is no lesson 'none'"), ("../exp_tea", "is no id")])
async def test_a_lesson_that_is_not_there_cannot_be_removed(tmp_path: Path, id: str, message: str) -> None:
    pool = await filled(tmp_path)
    with pytest.raises(ValueError, match=message):
        await pool.remove(id)


async def test_a_query_that_is_cancelled_while_it_loads_can_be_asked_again(tmp_path: Path) -> None:
    await filled(tmp_path)
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder())
    with trio.CancelScope() as scope:
        scope.cancel()
        await pool.retrieve("tea")
    assert scope.cancelled_caught
    assert len(await pool.retrieve("tea")) == 2


async def test_queries_in_many_tasks_load_the_folder_once(tmp_path: Path) -> None:
    await filled(tmp_path)
    os.utime(tmp_path, (1, 1))
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder())
    with mock.patch("callboard.experience.loader.read_listing", wraps=read_listing) as listing:
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(pool.retrieve, "tea")
        assert len(await pool.retrieve("tea")) == 2
    assert listing.call_count == 1


def test_one_pool_serves_trio_runs_in_several_threads(tmp_path: Path) -> None:
    pool = trio.run(filled, tmp_path)
    counts: list[int] = []

    def run() -> None:
        counts.append(len(trio.run(pool.retrieve, "tea")))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [2] * 4


def test_a_seeded_run_needs_no_thread_and_no_time(tmp_path: Path) -> None:
    async def scenario() -> float:
        pool = await filled(tmp_path)
        assert len(await pool.retrieve("tea")) == 2
        return trio.current_time()

    assert run_seeded(scenario) == 0


async def test_on_a_real_clock_files_are_read_in_a_thread(tmp_path: Path) -> None:
    with mock.patch.object(Loader, "load", lambda loader, check, verify: threads.append(threading.current_thread())):
        threads: list[threading.Thread] = []
        await ExperiencePool(tmp_path).load()
    assert threads != [threading.current_thread()]
