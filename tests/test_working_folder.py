"""The working folder: fresh, private, and removed unless the host gave its parent."""

import os
import stat
from pathlib import Path

import pytest
import trio

from callboard.actors.working_folder import working_folder


async def test_it_is_fresh_empty_and_private() -> None:
    async with working_folder(None) as one, working_folder(None) as other:
        assert one != other
        assert one.is_absolute() and not os.listdir(one)
        assert stat.S_IMODE(one.stat().st_mode) == 0o700


async def test_it_is_removed_with_all_that_is_in_it() -> None:
    async with working_folder(None) as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "file").touch()
    assert not folder.exists()


async def test_it_is_removed_when_cancelled() -> None:
    with trio.CancelScope() as scope:
        async with working_folder(None) as folder:
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert not folder.exists()


async def test_it_is_removed_when_its_block_fails() -> None:
    with pytest.raises(KeyError):
        async with working_folder(None) as folder:
            raise KeyError("k")
    assert not folder.exists()


async def test_what_a_link_in_it_points_to_stays(tmp_path: Path) -> None:
    async with working_folder(None) as folder:
        (folder / "link").symlink_to(tmp_path)
        (tmp_path / "file").touch()
    assert os.listdir(tmp_path) == ["file"]


async def test_in_a_parent_it_stays(tmp_path: Path) -> None:
    async with working_folder(tmp_path) as one, working_folder(tmp_path) as other:
        (one / "file").touch()
    assert {one.name, other.name} == set(os.listdir(tmp_path))
    assert (one / "file").exists()
    assert stat.S_IMODE(one.stat().st_mode) == 0o700


async def test_in_a_relative_parent_it_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with working_folder(Path()) as folder:
        assert folder.is_absolute() and folder.parent == tmp_path


async def test_without_its_parent_it_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        async with working_folder(tmp_path / "missing"):
            pytest.fail("entered")


async def test_an_error_of_its_removal_comes_out() -> None:
    with pytest.raises(FileNotFoundError):
        async with working_folder(None) as folder:
            folder.rmdir()
