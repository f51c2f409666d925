"""Artifacts: plain files that are new or changed, by names that are safe."""

import os
from pathlib import Path

import pytest

from callboard.actors import artifacts
from callboard.actors.artifacts import artifacts_since, files_in, safe_name


def test_what_is_new_or_changed_is_an_artifact(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("1")
    (tmp_path / "changed.csv").write_text("1")
    before = files_in(tmp_path)
    (tmp_path / "changed.csv").write_text("22")
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "one.png").write_text("")
    (tmp_path / ".hidden").write_text("")
    assert artifacts_since(before, tmp_path) == ["changed.csv", "plots/one.png"]


def test_what_is_no_plain_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    (tmp_path / "folder").symlink_to("/etc")
    os.mkfifo(tmp_path / "fifo")
    assert artifacts_since({}, tmp_path) == []


@pytest.mark.parametrize("name", [b"a\nb.csv", b"-rf", b"a\xffb.csv", b"<b>", b"\xe2\x80\xaea.csv"])
def test_a_file_with_an_unsafe_name_is_named_by_a_safe_one(name: bytes, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(name)).write_text("content")
    (found,) = artifacts_since({}, tmp_path)
    assert found == safe_name(found)
    assert (tmp_path / found).read_text() == "content"


def test_names_that_become_one_stay_two(tmp_path: Path) -> None:
    for name in ("a*b", "a?b"):
        (tmp_path / name).write_text(name)
    found = artifacts_since({}, tmp_path)
    assert sorted((tmp_path / name).read_text() for name in found) == ["a*b", "a?b"]


def test_there_are_only_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "MOST_FILES", 5)
    for number in range(9):
        (tmp_path / str(number)).touch()
    assert len(artifacts_since({}, tmp_path)) == 5
