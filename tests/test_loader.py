"""What a folder holds: read from the files, from the cache if that is still true, and never half."""

import os
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.experience import index_file, listing, reading
from callboard.experience.index import Index, Texts
from callboard.experience.index_file import NAME, Space
from callboard.experience.lesson_file import Record, write_record
from callboard.experience.loader import Loaded, Loader
from callboard.runtime.errors import InvalidFile

from .lessons import HANDCRAFTED, OLD, write_handcrafted, write_raw

SPACE = Space("words", 2)
LONG_AGO = 1_000_000_000.5


def write(folder: Path, id: str, text: str = "", *, embedder: str = "words", age: float = LONG_AGO) -> Path:
    """A lesson with a vector, changed at some time."""
    path = folder / f"exp_{id}.yaml"
    vector = np.array([0.6, 0.8], np.float32)
    path.write_bytes(write_record(Record(id, text or f"the lesson {id}", None, embedder, vector)))
    os.utime(path, (age, age))
    return path


def load(folder: Path, space: Space = SPACE) -> Loaded:
    """With nothing in memory."""
    return Loader(folder, space).load(lambda: None)


def held(loaded: Loaded) -> dict[str, str]:
    """What can be found, by id."""
    lessons = [loaded.index.lesson(row) for row in range(len(loaded.index))]
    return {lesson.id: lesson.text for lesson in lessons}


def opened(folder: Path) -> list[str]:
    """The lessons whose files are opened by one that begins."""
    read, names = Path.read_bytes, []

    def note(path: Path) -> bytes:
        names.append(path.stem)
        return read(path)

    with mock.patch.object(Path, "read_bytes", note):
        load(folder)
    return names


def test_lessons_are_there_in_the_order_of_their_ids(tmp_path: Path) -> None:
    for id in ("b", "a", "C", "1"):
        write(tmp_path, id)
    loaded = load(tmp_path)
    assert loaded.index.ids == ("1", "C", "a", "b")
    assert held(loaded)["a"] == "the lesson a"
    assert np.allclose(loaded.index.matrix, [[0.6, 0.8]] * 4)


def test_no_file_is_opened_while_the_cache_holds(tmp_path: Path) -> None:
    for id in ("a", "b"):
        write(tmp_path, id)
    assert opened(tmp_path) == ["exp_a", "exp_b"]
    assert opened(tmp_path) == []
    assert held(load(tmp_path)) == {"a": "the lesson a", "b": "the lesson b"}


def test_only_what_came_or_changed_is_opened(tmp_path: Path) -> None:
    for id in ("a", "b", "d"):
        write(tmp_path, id)
    load(tmp_path)
    write(tmp_path, "c")
    write(tmp_path, "b", "another")
    (tmp_path / "exp_d.yaml").unlink()
    assert opened(tmp_path) == ["exp_b", "exp_c"]
    assert held(load(tmp_path)) == {"a": "the lesson a", "b": "another", "c": "the lesson c"}


def test_the_cache_may_be_deleted(tmp_path: Path) -> None:
    write(tmp_path, "a")
    loaded = load(tmp_path)
    (tmp_path / NAME).unlink()
    assert held(loaded) == held(load(tmp_path)) == {"a": "the lesson a"}


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_cache_that_is_not_whole_is_made_anew(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("lessons")
    write(folder, "a")
    load(folder)
    cache = folder / NAME
    whole = cache.read_bytes()
    at = data.draw(st.integers(1, len(whole) - 2))
    flipped = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    cache.write_bytes(data.draw(st.binary() | st.sampled_from([whole[:at], whole[at:], flipped])))
    assert held(load(folder)) == {"a": "the lesson a"}
    assert cache.read_bytes() == whole


def test_an_edit_that_keeps_the_size_is_found(tmp_path: Path) -> None:
    write(tmp_path, "a", "tea")
    load(tmp_path)
    write(tmp_path, "a", "sea", age=LONG_AGO + 1)
    assert held(load(tmp_path)) == {"a": "sea"}


def test_a_lesson_that_has_gone_is_not_there(tmp_path: Path) -> None:
    for id in "ab":
        write(tmp_path, id)
    load(tmp_path)
    (tmp_path / "exp_a.yaml").unlink()
    assert opened(tmp_path) == []
    assert held(load(tmp_path)) == {"b": "the lesson b"}


def test_a_file_that_goes_while_the_folder_is_read_is_no_fault(tmp_path: Path) -> None:
    path = write(tmp_path, "a")
    loaded = Loader(tmp_path, SPACE).load(path.unlink)
    assert (held(loaded), loaded.faults) == ({}, ())


def test_a_file_that_is_young_no_more_is_opened_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a")
    monkeypatch.setattr(listing, "_TICK", 1 << 62)
    assert opened(tmp_path) == opened(tmp_path) == ["exp_a"]
    monkeypatch.undo()
    assert (opened(tmp_path), opened(tmp_path)) == (["exp_a"], [])


def test_an_edit_that_keeps_size_and_time_is_found_by_verifying(tmp_path: Path) -> None:
    write(tmp_path, "a", "tea")
    loader = Loader(tmp_path, SPACE)
    loader.load(lambda: None)
    write(tmp_path, "a", "sea")
    assert held(loader.load(lambda: None)) == {"a": "tea"}
    assert held(loader.load(lambda: None, verify=True)) == {"a": "sea"}


def test_a_file_as_young_as_the_cache_is_opened_again(tmp_path: Path) -> None:
    path = write(tmp_path, "a", "tea")
    os.utime(path)
    status = path.stat()
    load(tmp_path)
    write(tmp_path, "a", "sea")
    os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))
    assert held(load(tmp_path)) == {"a": "sea"}


def test_nothing_is_written_when_nothing_is_new(tmp_path: Path) -> None:
    write(tmp_path, "a")
    os.utime(write(tmp_path, "young"))
    (tmp_path / "exp_bad.yaml").write_text("[")
    write(tmp_path, "foreign", embedder="other")
    load(tmp_path)
    with mock.patch.object(reading, "IndexWriter", side_effect=AssertionError):
        loaded = load(tmp_path)
    assert (loaded.index.ids, list(loaded.waiting), len(loaded.faults)) == (("a", "young"), ["foreign"], 1)


def test_more_files_than_are_read_ahead_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_FEW", 2)
    for id in "abcde":
        write(tmp_path, id, embedder="other" if id == "d" else "words")
    (tmp_path / "exp_f.yaml").write_text("[")
    assert opened(tmp_path) == [f"exp_{id}" for id in "abcdef"]
    loaded = load(tmp_path)
    assert (list(held(loaded)), list(loaded.waiting), len(loaded.faults)) == (["a", "b", "c", "e"], ["d"], 1)


def test_vectors_of_another_embedder_wait(tmp_path: Path) -> None:
    write(tmp_path, "a", embedder="other")
    write(tmp_path, "b")
    (tmp_path / "exp_greet.yaml").write_text(OLD)
    loaded = load(tmp_path)
    assert (list(held(loaded)), sorted(loaded.waiting)) == (["b"], ["a", "greet"])
    assert load(tmp_path, Space("other", 2)).index.ids == ("a",)
    assert load(tmp_path, Space("words", 3)).index.ids == ()


def test_a_bad_file_is_told_by_name_and_the_others_work(tmp_path: Path) -> None:
    write(tmp_path, "good")
    (tmp_path / "exp_bad.yaml").write_text("exp_id: other\nexperience_text: x\n")
    (tmp_path / "exp_empty.yaml").touch()
    (tmp_path / "exp_folder.yaml").mkdir()
    (tmp_path / "exp_a b.yaml").touch()
    (tmp_path / "notes.txt").touch()
    loaded = load(tmp_path)
    assert list(held(loaded)) == ["good"]
    names = sorted(Path(fault.path or "").name for fault in loaded.faults)
    assert names == ["exp_a b.yaml", "exp_bad.yaml", "exp_empty.yaml", "exp_folder.yaml"]
    assert all(str(fault).startswith(str(tmp_path)) and fault.remedy for fault in loaded.faults)


def test_a_link_out_of_the_folder_is_a_fault_and_one_within_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "lessons"
    folder.mkdir()
    (folder / "exp_out.yaml").symlink_to(write(tmp_path, "out"))
    write(folder, "real").rename(folder / "kept")
    (folder / "exp_real.yaml").symlink_to("kept")
    loaded = load(folder)
    assert list(held(loaded)) == ["real"]
    assert [fault.message for fault in loaded.faults] == ["a link that leads out of the folder"]


def test_of_two_sources_the_one_of_a_person_counts(tmp_path: Path) -> None:
    (tmp_path / "handcrafted_exp_greet.yaml").write_text(HANDCRAFTED)
    path = write_raw(tmp_path, "greet")
    write_raw(tmp_path, "late")
    write_handcrafted(tmp_path, "late", "x")
    write_raw(tmp_path, "other")
    loaded = load(tmp_path)
    assert loaded.sources == {"greet": "handcrafted_exp", "late": "handcrafted_exp", "other": "raw_exp"}
    assert [fault.path for fault in loaded.faults] == [str(path), str(tmp_path / "raw_exp_late.yaml")]


def test_a_folder_that_is_not_there_is_a_fault_of_the_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="No such file or directory; do: make the folder"):
        load(tmp_path / "none")


def test_a_folder_that_may_not_be_written_to_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a")
    monkeypatch.setattr(index_file, "token_hex", lambda count: "no/folder")
    assert held(load(tmp_path)) == {"a": "the lesson a"}
    assert [path.name for path in tmp_path.iterdir()] == ["exp_a.yaml"]


def test_a_loading_that_is_broken_off_leaves_nothing(tmp_path: Path) -> None:
    for id in "ab":
        write(tmp_path, id)
    loader = Loader(tmp_path, SPACE)
    check = mock.Mock(side_effect=[None, KeyboardInterrupt])
    with pytest.raises(KeyboardInterrupt):
        loader.load(check)
    assert loader.loaded is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exp_a.yaml", "exp_b.yaml"]
    assert list(held(loader.load(lambda: None))) == ["a", "b"]


def test_a_loading_that_breaks_off_while_it_writes_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_FEW", 0)
    for id in "ab":
        write(tmp_path, id)
    with pytest.raises(KeyboardInterrupt):
        Loader(tmp_path, SPACE).load(mock.Mock(side_effect=[None, KeyboardInterrupt]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exp_a.yaml", "exp_b.yaml"]


def test_what_was_loaded_stays_as_it_was_when_there_is_something_newer(tmp_path: Path) -> None:
    write(tmp_path, "a", "tea")
    loader = Loader(tmp_path, SPACE)
    old = loader.load(lambda: None)
    write(tmp_path, "a", "coffee")
    assert held(loader.load(lambda: None)) == {"a": "coffee"}
    assert held(old) == {"a": "tea"}


scores = st.lists(st.sampled_from([-0.5, 0.0, 0.25, 0.5, 1.0]), max_size=12)


@settings(max_examples=60, deadline=None)
@given(scores, st.sampled_from([-1.0, 0.0, 0.25, 0.6]), st.none() | st.integers(0, 14))
def test_a_search_gives_the_best_first_and_what_is_equal_by_id(
    values: list[float], threshold: float, limit: int | None
) -> None:
    matrix = np.array(values, np.float32).reshape(-1, 1)
    none = np.empty(0, np.int64)
    index = Index(tuple(map(str, range(len(values)))), none, none, none.astype(np.uint8), matrix, mock.Mock(spec=Texts))
    found = sorted((-score, row) for row, score in enumerate(values) if score >= threshold)[:limit]
    rows, scores = index.search(np.ones(1, np.float32), threshold, limit)
    assert (rows, scores) == ([row for _, row in found], [-score for score, _ in found])
