"""The lock of a folder: one at a time, let go of by whoever ends, and never waited for beyond a cancellation."""

import os
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from callboard.experience.folder_lock import NAME, folder_lock
from callboard.runtime.errors import InvalidFile


async def test_one_task_at_a_time_holds_it(tmp_path: Path, autojump_clock: MockClock) -> None:
    course: list[str] = []

    async def hold(name: str) -> None:
        async with folder_lock(tmp_path):
            course.append(f"{name} in")
            await trio.sleep(1)
            course.append(f"{name} out")

    async with trio.open_nursery() as nursery:
        for name in "abc":
            nursery.start_soon(hold, name)
    assert [word.split()[1] for word in course] == ["in", "out"] * 3


async def test_who_waits_for_it_can_be_cancelled_and_has_not_taken_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with folder_lock(tmp_path):
        with trio.move_on_after(1) as scope:
            async with folder_lock(tmp_path):
                raise AssertionError("it is held")
    assert scope.cancelled_caught
    with trio.fail_after(1):
        async with folder_lock(tmp_path):
            pass


async def test_a_block_that_fails_lets_go_of_it(tmp_path: Path, autojump_clock: MockClock) -> None:
    with pytest.raises(KeyError):
        async with folder_lock(tmp_path):
            raise KeyError
    with trio.fail_after(1):
        async with folder_lock(tmp_path):
            pass
    assert (tmp_path / NAME).exists()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks for the open file where Linux lists them")
async def test_a_file_that_a_forked_process_has_open_holds_nothing(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with folder_lock(tmp_path):
        copies = [os.dup(handle) for handle in (int(name) for name in os.listdir("/proc/self/fd")) if _is_lock(handle)]
    with trio.fail_after(1):
        async with folder_lock(tmp_path):
            pass
    assert copies
    for handle in copies:
        os.close(handle)


def _is_lock(handle: int) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{handle}").endswith(NAME)
    except OSError:
        return False


async def test_without_a_folder_there_is_no_lock(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="make the folder, and allow to write to it"):
        async with folder_lock(tmp_path / "none"):
            pass
