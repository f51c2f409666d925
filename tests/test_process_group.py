"""Process groups: what belongs to a child, and that it is looked at without touching it."""

import itertools
import os
import sys
from dataclasses import replace

import pytest
import trio

from callboard.runtime import process_group
from callboard.runtime.ladder import end_process, kill_process, wait_ended
from callboard.runtime.process_group import ProcessGroup

from .test_code_runner import reaped
from .test_ladder import DEAF_NESTED, READY, SLEEP, start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


async def test_looking_whether_it_has_ended_reaps_nothing() -> None:
    process, _ = await start(READY)
    await wait_ended(process)
    group = ProcessGroup(process)
    assert group.ended and not group.reaped
    assert not reaped(process.pid)
    await end_process(process)
    assert group.reaped


async def test_a_number_that_has_passed_to_another_process_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    process, _ = await start(DEAF_NESTED)
    read, births = process_group._read_row, itertools.count()

    def younger(pid: int) -> object:
        row = read(pid)
        return row and replace(row, born=next(births))

    with monkeypatch.context() as patch:
        patch.setattr(process_group, "_read_row", younger)
        group = ProcessGroup(process)
        group.find()
    assert repr(group) == f"<ProcessGroup {process.pid} and 0 more>"
    await kill_process(process)


async def test_all_below_a_child_belongs_to_it_and_nothing_else() -> None:
    process, line = await start(DEAF_NESTED)
    other, _ = await start(SLEEP)
    group = ProcessGroup(process)
    group.find()
    group.find()
    assert repr(group) == f"<ProcessGroup {process.pid} and 2 more>"
    assert int(line) in group._held and other.pid not in group._held
    group.close()
    await kill_process(process)
    assert not reaped(other.pid)
    await kill_process(other)


async def test_waiting_for_its_end_can_be_cancelled_and_touches_nothing() -> None:
    process, _ = await start(SLEEP)
    before = os.listdir("/proc/self/fd")
    with trio.move_on_after(0.01) as scope:
        await ProcessGroup(process).wait_ended()
    assert scope.cancelled_caught and process.poll() is None
    assert os.listdir("/proc/self/fd") == before
    await kill_process(process)


async def test_a_name_with_brackets_and_spaces_is_read_past(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import ctypes; ctypes.CDLL(None).prctl(15, b'a) S 1 (b', 0, 0, 0)\n" + SLEEP
    process, _ = await start(code)
    row = process_group._read_row(process.pid)
    assert row is not None and (row.parent, row.group, row.session) == (os.getpid(), process.pid, process.pid)
    await kill_process(process)
