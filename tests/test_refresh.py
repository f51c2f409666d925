"""A refresh: what is new or changed is made, once, whatever happens in the middle."""

import os
from pathlib import Path
from unittest import mock

import pytest
import trio
import yaml
from trio.testing import MockClock

from callboard.experience import ExperiencePool, refresh
from callboard.experience.loader import Loader
from callboard.experience.report import Progress, RefreshReport
from callboard.experience.summarizer import NAME
from callboard.runtime.errors import InvalidFile, ModelError
from callboard.runtime.scripted_model import Line, Reply, ScriptedModel

from .lessons import HANDCRAFTED, OLD, HeldModel, WordEmbedder, contents, write_handcrafted, write_raw

BUSY = ModelError("busy", fault="server", may_retry=True)


def writer(*steps: Line) -> ScriptedModel:
    """A model that makes lessons."""
    return ScriptedModel({NAME: list(steps)})


def fields(path: Path) -> dict[str, object]:
    """What a file holds."""
    read: dict[str, object] = yaml.safe_load(path.read_text())
    return read


async def test_a_conversation_becomes_a_lesson_that_is_found(tmp_path: Path) -> None:
    raw = write_raw(tmp_path, "tea", correction="Only of 2025!")
    model = writer("How to sell tea.")
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder(), model=model)
    report = await pool.refresh()
    assert report == RefreshReport(("tea",), ("tea",), 0)
    assert '"corrections": ["Only of 2025!"]' in model.requests[0].messages[1].content
    (found,) = await pool.retrieve("sell tea")
    assert (found.lesson.id, found.lesson.text, found.lesson.raw_path) == ("tea", "How to sell tea.", str(raw))
    written = fields(tmp_path / "exp_tea.yaml")
    assert list(written) == ["exp_id", "experience_text", "raw_experience_path", "embedding_model", "embedding"]
    assert (written["embedding_model"], written["raw_experience_path"]) == ("words", str(raw))


async def test_the_originals_folder_works_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "handcrafted_exp_greet.yaml").write_text(HANDCRAFTED)
    (tmp_path / "exp_greet.yaml").write_text(OLD)
    (tmp_path / "exp_1.yaml").write_text("exp_id: 1\nexperience_text: Count from one.\n")
    (tmp_path / "exp_old.yaml").write_text(OLD.replace("exp_id: greet", "exp_id: old"))
    write_raw(tmp_path, "old")
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder())
    report = await pool.refresh()
    assert (report.embedded, report.summarized, report.waiting) == (("1", "greet", "old"), (), ())
    assert [found.lesson.id for found in await pool.retrieve("answer politely")] == ["greet", "old"]
    assert [found.lesson.id for found in await pool.retrieve("count")] == ["1"]


async def test_a_second_refresh_does_nothing(tmp_path: Path) -> None:
    write_raw(tmp_path, "tea")
    write_handcrafted(tmp_path, "greet", "Answer politely.")
    embedder, model = WordEmbedder(), writer("Tea.")
    await ExperiencePool(tmp_path, embedder=embedder, model=model).refresh()
    before, given = contents(tmp_path), len(embedder.given)
    report = await ExperiencePool(tmp_path, embedder=embedder, model=model).refresh()
    assert report == RefreshReport(unchanged=2)
    assert (contents(tmp_path), len(embedder.given)) == (before, given)


async def test_another_embedder_embeds_anew_and_asks_no_model(tmp_path: Path) -> None:
    write_raw(tmp_path, "tea")
    model = writer("Tea.")
    await ExperiencePool(tmp_path, embedder=WordEmbedder(), model=model).refresh()
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder("others", 32), model=model)
    assert await pool.retrieve("tea") == ()
    assert (await pool.refresh()).embedded == ("tea",)
    assert len(await pool.retrieve("tea")) == 1


async def test_a_changed_conversation_is_summarized_again_and_no_other(tmp_path: Path) -> None:
    for id in ("coffee", "tea"):
        write_raw(tmp_path, id)
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder(), model=writer("Coffee.", "Tea.", "More tea."))
    await pool.refresh()
    write_raw(tmp_path, "tea", "Sell more.")
    report = await pool.refresh()
    assert (report.summarized, report.embedded, report.unchanged) == (("tea",), ("tea",), 1)
    assert [lesson.text for lesson in pool.lessons] == ["Coffee.", "More tea."]


async def test_a_conversation_of_the_originals_that_changes_later_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "exp_greet.yaml").write_text(OLD)
    write_raw(tmp_path, "greet")
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder(), model=writer("Anew."))
    assert (await pool.refresh()).summarized == ()
    write_raw(tmp_path, "greet", "Bye.")
    assert (await pool.refresh()).summarized == ("greet",)


async def test_a_person_who_changes_their_file_changes_the_lesson(tmp_path: Path) -> None:
    write_handcrafted(tmp_path, "greet", "Answer politely.")
    embedder = WordEmbedder()
    pool = ExperiencePool(tmp_path, embedder=embedder)
    await pool.refresh()
    write_handcrafted(tmp_path, "greet", "Answer briefly.")
    assert (await pool.refresh()).embedded == ("greet",)
    assert embedder.given == ["Answer politely.", "Answer briefly."]
    assert [found.lesson.text for found in await pool.retrieve("briefly")] == ["Answer briefly."]


async def test_a_person_who_changes_a_lesson_has_it_kept_and_embedded(tmp_path: Path) -> None:
    write_raw(tmp_path, "tea")
    embedder = WordEmbedder()
    pool = ExperiencePool(tmp_path, embedder=embedder, model=writer("Tea."))
    await pool.refresh()
    path = tmp_path / "exp_tea.yaml"
    path.write_text(path.read_text().replace("Tea.", "Green tea."))
    report = await pool.refresh()
    assert (report.summarized, report.embedded) == ((), ("tea",))
    assert embedder.given == ["Tea.", "Green tea."]


async def test_a_person_may_change_the_lesson_of_a_persons_file_too(tmp_path: Path) -> None:
    write_handcrafted(tmp_path, "greet", "Answer politely.")
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder())
    await pool.refresh()
    path = tmp_path / "exp_greet.yaml"
    path.write_text(path.read_text().replace("politely", "at once"))
    assert (await pool.refresh()).embedded == ("greet",)
    assert [lesson.text for lesson in pool.lessons] == ["Answer at once."]


async def test_of_two_sources_no_model_is_asked(tmp_path: Path) -> None:
    write_raw(tmp_path, "greet")
    write_handcrafted(tmp_path, "greet", "Answer politely.")
    report = await ExperiencePool(tmp_path, embedder=WordEmbedder(), model=writer()).refresh()
    assert report.embedded == ("greet",)
    assert [Path(fault.path or "").name for fault in report.faults] == ["raw_exp_greet.yaml"]


async def test_a_lesson_whose_source_has_gone_is_reported_and_kept(tmp_path: Path) -> None:
    write_raw(tmp_path, "tea").rename(tmp_path / "raw_exp_gone.yaml")
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder(), model=writer("Tea."))
    await pool.refresh()
    (tmp_path / "raw_exp_gone.yaml").unlink()
    (tmp_path / "exp_alone.yaml").write_text("exp_id: alone\nexperience_text: By itself.\n")
    for _ in range(2):
        assert (await pool.refresh()).orphans == ("gone",)
    assert len(await pool.retrieve("tea")) == 1


async def test_bad_files_are_named_and_the_others_work(tmp_path: Path) -> None:
    write_raw(tmp_path, "tea")
    bad = {
        "exp_a.yaml": "[",
        "handcrafted_exp_a.yaml": HANDCRAFTED.replace("greet", "a"),
        "handcrafted_exp_b.yaml": "exp_id: c\nexperience_text: x\n",
        "raw_exp_d.yaml": "rounds: []\n",
        "raw_exp_e f.yaml": "",
    }
    for name, text in bad.items():
        (tmp_path / name).write_text(text)
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder(), model=writer("Tea."))
    report = await pool.refresh()
    names = sorted(Path(fault.path or "").name for fault in report.faults)
    assert names == ["exp_a.yaml", "handcrafted_exp_b.yaml", "raw_exp_d.yaml", "raw_exp_e f.yaml"]
    assert (report.summarized, report.waiting) == (("tea",), ("d",))
    assert (tmp_path / "exp_a.yaml").read_text() == "["
    assert pool.faults == report.faults


async def test_without_a_model_conversations_wait(tmp_path: Path) -> None:
    write_raw(tmp_path, "tea")
    write_handcrafted(tmp_path, "greet", "Answer politely.")
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder())
    report = await pool.refresh()
    assert (report.embedded, report.waiting, pool.waiting) == (("greet",), ("tea",), ("tea",))


async def test_a_model_that_fails_is_not_asked_for_ever_and_asked_again_next_time(tmp_path: Path) -> None:
    for id in "abcde":
        write_raw(tmp_path, id)
    model = writer(BUSY, "B.", Reply(""), BUSY, BUSY, "A.", "C.", "D.", "E.")
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder(), model=model)
    report = await pool.refresh()
    assert [failure.id for failure in report.failures] == ["a", "c", "d", "e"]
    assert report.failures[0].reason == "ModelError: busy"
    assert (report.summarized, report.waiting) == (("b",), ("a", "c", "d", "e"))
    assert (await pool.refresh()).summarized == ("a", "c", "d", "e")
    model.check_finished()


async def test_after_three_failures_in_a_row_no_conversation_is_tried(tmp_path: Path) -> None:
    for id in "abcde":
        write_raw(tmp_path, id)
    with writer(BUSY, BUSY, BUSY) as model:
        report = await ExperiencePool(tmp_path, embedder=WordEmbedder(), model=model).refresh()
    assert (len(report.failures), len(report.waiting)) == (3, 5)


async def test_an_embedder_that_fails_costs_no_summary(tmp_path: Path) -> None:
    write_raw(tmp_path, "tea")
    embedder = WordEmbedder()
    embedder.error = BUSY
    with writer("Tea.") as model:
        pool = ExperiencePool(tmp_path, embedder=embedder, model=model)
        with pytest.raises(ModelError, match="busy"):
            await pool.refresh()
        report = await pool.refresh()
    assert (report.summarized, report.embedded) == ((), ("tea",))


async def test_vectors_of_another_length_are_refused(tmp_path: Path) -> None:
    write_handcrafted(tmp_path, "greet", "Answer politely.")
    embedder = WordEmbedder()
    pool = ExperiencePool(tmp_path, embedder=embedder)
    embedder.dimension = 3
    with pytest.raises(ModelError, match="words made 1 x 3 numbers, not 1 x 64"):
        await pool.refresh()


async def test_progress_is_told_before_each_step(tmp_path: Path) -> None:
    write_handcrafted(tmp_path, "greet", "Answer politely.")
    write_raw(tmp_path, "tea")
    told: list[Progress] = []
    await ExperiencePool(tmp_path, embedder=WordEmbedder(), model=writer("Tea.")).refresh(told.append)
    assert told == [Progress("embedding", "greet", 0, 2), Progress("summarizing", "tea", 1, 2)]


async def test_many_lessons_are_embedded_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "_BATCH", 2)
    for number in range(5):
        write_handcrafted(tmp_path, str(number), f"lesson {number}")
    told: list[Progress] = []
    report = await ExperiencePool(tmp_path, embedder=WordEmbedder()).refresh(told.append)
    assert report.embedded == ("0", "1", "2", "3", "4")
    assert [progress.done for progress in told] == [0, 2, 4]


async def test_cancelled_in_the_middle_it_goes_on_the_next_time(tmp_path: Path) -> None:
    for id in "abc":
        write_raw(tmp_path, id)
    model = HeldModel()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ExperiencePool(tmp_path, embedder=WordEmbedder(), model=model).refresh)
        model.say("A.")
        for _ in range(2):
            await model.called()
        nursery.cancel_scope.cancel()
    assert sorted(contents(tmp_path)) == ["exp_a.yaml", "raw_exp_a.yaml", "raw_exp_b.yaml", "raw_exp_c.yaml"]
    with writer("B.", "C.") as again:
        pool = ExperiencePool(tmp_path, embedder=WordEmbedder(), model=again)
        assert (await pool.refresh()).summarized == ("b", "c")


async def test_what_is_ready_is_found_while_the_rest_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "_PUBLISHED", 0.0)
    for id in ("coffee", "tea"):
        write_raw(tmp_path, id)
    model = HeldModel()
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder(), model=model)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pool.refresh)
        await model.called()
        assert await pool.retrieve("coffee tea") == ()
        model.say("Coffee.")
        await model.called()
        with mock.patch.object(Loader, "catch_up", side_effect=AssertionError("the refresh does that")):
            assert [found.lesson.text for found in await pool.retrieve("coffee tea")] == ["Coffee."]
        model.say("Tea.")
    assert len(await pool.retrieve("coffee tea")) == 2


async def test_two_at_once_do_the_work_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    for id in "ab":
        write_raw(tmp_path, id)
    reports: list[RefreshReport] = []

    async def run(pool: ExperiencePool) -> None:
        reports.append(await pool.refresh())

    with writer(Reply("A.", delay=1), Reply("B.", delay=1)) as model:
        one, other = (ExperiencePool(tmp_path, embedder=WordEmbedder(), model=model) for _ in range(2))
        async with trio.open_nursery() as nursery:
            for pool in (one, one, other):
                nursery.start_soon(run, pool)
    assert [report.summarized for report in reports] == [("a", "b"), (), ()]


async def test_what_is_removed_while_it_is_made_is_not_brought_back(tmp_path: Path) -> None:
    write_raw(tmp_path, "tea")
    model = HeldModel()
    pool = ExperiencePool(tmp_path, embedder=WordEmbedder(), model=model)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pool.refresh)
        await model.called()
        assert await pool.remove("tea") == ("raw_exp_tea.yaml",)
        model.say("Tea.")
    assert contents(tmp_path) == {}


async def test_what_a_killed_process_left_is_removed_when_it_is_old(tmp_path: Path) -> None:
    old, young, other = (tmp_path / name for name in (".0123456789abcdef.tmp", ".fedcba9876543210.tmp", ".note.tmp"))
    for path in (old, young, other):
        path.touch()

    for path in (old, other):
        os.utime(path, (1, 1))
    await ExperiencePool(tmp_path, embedder=WordEmbedder()).refresh()
    assert [path.exists() for path in (old, young, other)] == [False, True, True]


async def test_keys_that_nobody_knows_stay_in_a_file_that_is_written_again(tmp_path: Path) -> None:
    (tmp_path / "exp_greet.yaml").write_text(OLD + "author: Ada\n")
    await ExperiencePool(tmp_path, embedder=WordEmbedder()).refresh()
    assert fields(tmp_path / "exp_greet.yaml")["author"] == "Ada"
    raw = write_raw(tmp_path, "greet")
    await ExperiencePool(tmp_path, embedder=WordEmbedder()).refresh()
    raw.write_text(raw.read_text().replace("tea", "rum"))
    await ExperiencePool(tmp_path, embedder=WordEmbedder(), model=writer("Rum.")).refresh()
    written = fields(tmp_path / "exp_greet.yaml")
    assert (written["experience_text"], written["author"]) == ("Rum.", "Ada")


async def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="make the folder"):
        await ExperiencePool(tmp_path / "none", embedder=WordEmbedder()).refresh()
