"""The ladder: which signal ends a child, that all of it ends, and that no stranger is signalled."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from callboard.runtime.ladder import EndedBy, end_process, kill_process, wait_ended
from callboard.runtime.process_group import ProcessGroup

from .test_code_runner import reaped, wait_gone

READY = "print('ready', flush=True); import time, signal, subprocess, os, sys\n"
SLEEP = READY + "time.sleep(60)"
NO_INTERRUPT = "import signal; signal.signal(2, signal.SIG_IGN)\n" + SLEEP
DEAF = "import signal; signal.signal(15, signal.SIG_IGN)\n" + NO_INTERRUPT
# A child of a child, each in a session of its own; the number of the last is printed.
NESTED = """\
import subprocess, sys, time
ignore = "import signal; [signal.signal(number, signal.SIG_IGN) for number in (2, 15)]; "
inner = ignore + "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
outer = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {inner!r}], start_new_session=True)"
subprocess.Popen([sys.executable, "-c", OUTER + "; time.sleep(60)"], start_new_session=True)
time.sleep(60)
"""
DEAF_NESTED = NESTED.replace("OUTER", "ignore + outer")
SOFT_NESTED = NESTED.replace("OUTER", "outer")


MULTIPLYING = """\
import os, signal, subprocess, sys, time
inner = f'''
import os, signal, subprocess, time
def multiply(*_):
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    open({FILE + "-"!r}, "w").write(str(child.pid))
    os.rename({FILE + "-"!r}, {FILE!r})
signal.signal(signal.SIGINT, multiply)
print("ready", flush=True)
while True: time.sleep(60)
'''
outer = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {inner!r}], start_new_session=True)"
subprocess.Popen([sys.executable, "-c", outer + "; time.sleep(60)"], start_new_session=True)
signal.signal(signal.SIGINT, signal.SIG_IGN)
while not os.path.exists(FILE): time.sleep(0.002)
"""


async def start(code: str) -> tuple[trio.Process, str]:
    """A child that runs the code, and its first line."""
    process = await trio.lowlevel.open_process(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert process.stdout is not None
    line = ""
    async with process.stdout:
        while not line.endswith("\n"):
            line += (await process.stdout.receive_some()).decode()
    return process, line.strip()


def start_plainly(code: str, *, own_session: bool) -> subprocess.Popen[bytes]:
    """The same without trio, and without waiting for a line."""
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=own_session)


def dead(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@pytest.mark.parametrize(
    ("code", "ladder", "ended_by", "exit_code"),
    [
        (SLEEP, 10, "interrupt", -signal.SIGINT),
        (NO_INTERRUPT, 0.1, "terminate", -signal.SIGTERM),
        (DEAF, 0.05, "kill", -signal.SIGKILL),
        (READY, 10, "itself", 0),
    ],
)
async def test_each_rung_ends_what_has_refused_the_one_before(
    code: str, ladder: float, ended_by: EndedBy, exit_code: int
) -> None:
    process, _ = await start(code)
    if ended_by == "itself":
        await wait_ended(process)
    assert await end_process(process, ladder=ladder) == ended_by
    assert process.returncode == exit_code
    assert reaped(process.pid)


async def test_a_cancellation_does_not_stop_the_climb() -> None:
    process, _ = await start(DEAF)
    with trio.CancelScope() as scope:
        scope.cancel()
        assert await end_process(process, ladder=0.02) == "kill"
    assert reaped(process.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("end", [kill_process, end_process])
async def test_what_moved_to_sessions_of_its_own_ends_too(end: Callable[[trio.Process], Any]) -> None:
    process, line = await start(DEAF_NESTED)
    await end(process)
    assert reaped(process.pid)
    assert dead(int(line))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_what_was_there_before_its_parent_was_interrupted_is_found_when_that_has_gone() -> None:
    """The child in the middle ends at SIGINT, and its own child then has a stranger for a parent."""
    process, line = await start(SOFT_NESTED)
    assert await end_process(process, ladder=10) == "interrupt"
    await wait_gone(int(line))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_what_is_started_on_the_way_by_one_that_has_lost_its_parent_is_found(tmp_path: Path) -> None:
    """At SIGINT the process in the middle ends, and its child starts another; the first ends when it has seen that."""
    process, _ = await start(f"FILE = {str(tmp_path / 'pid')!r}\n" + MULTIPLYING)
    assert await end_process(process, ladder=20) == "interrupt"
    assert dead(int((tmp_path / "pid").read_text()))


async def test_it_returns_when_all_that_was_killed_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    process, line = await start(DEAF_NESTED)
    wait_gone, waited = ProcessGroup.wait_gone, list[str]()

    async def wait_and_tell(group: ProcessGroup) -> None:
        waited.append(repr(group))
        await wait_gone(group)

    monkeypatch.setattr(ProcessGroup, "wait_gone", wait_and_tell)
    await kill_process(process)
    assert waited == [f"<ProcessGroup {process.pid} and 2 more>"]
    assert dead(int(line))


async def test_what_a_child_that_has_ended_left_in_its_group_is_killed() -> None:
    process, line = await start("import subprocess; print(subprocess.Popen(['sleep', '60']).pid, flush=True)")
    await wait_ended(process)
    assert await end_process(process) == "itself"
    await wait_gone(int(line))


async def test_a_child_that_was_reaped_is_not_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    process, _ = await start(READY)
    await process.wait()
    signalled: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, number: signalled.append(pid))
    assert await end_process(process) == "itself"
    await kill_process(process)
    assert not signalled


async def test_a_popen_will_do() -> None:
    with start_plainly(SLEEP, own_session=True) as process:
        assert await end_process(process, ladder=10) in ("interrupt", "terminate")
    assert process.returncode is not None and reaped(process.pid)


async def test_a_child_in_the_hosts_own_group_is_refused() -> None:
    with start_plainly(SLEEP, own_session=False) as process:
        for end in (end_process, kill_process):
            with pytest.raises(ValueError, match="start it with start_new_session=True"):
                await end(process)
        process.kill()


@pytest.mark.parametrize("ladder", [-1, float("nan")])
async def test_a_ladder_is_seconds_from_0_on(ladder: float) -> None:
    process, _ = await start(READY)
    with pytest.raises(ValueError, match="from 0 on"):
        await end_process(process, ladder=ladder)
    await process.wait()


async def test_without_descriptors_of_processes_the_group_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    process, _ = await start(DEAF)
    assert await end_process(process, ladder=0.02) == "kill"
    monkeypatch.delattr(os, "waitid")
    process, _ = await start(SLEEP)
    assert await end_process(process, ladder=10) == "interrupt"
    assert reaped(process.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_no_descriptor_is_left() -> None:
    await kill_process((await start(DEAF_NESTED))[0])
    before = os.listdir("/proc/self/fd")
    await end_process((await start(DEAF_NESTED))[0], ladder=0.05)
    assert os.listdir("/proc/self/fd") == before
