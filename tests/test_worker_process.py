"""Worker processes: what a call gives back, and that nothing of it is left."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from callboard.runtime.worker_process import WorkerCall, check_portable

from . import work_to_stop as work
from .test_code_runner import reaped, wait_gone

Function = Callable[..., Any]


def ignore(text: str) -> None:
    """A report that nobody reads."""


async def run(function: Function, report: Callable[[str], None] = ignore, **arguments: Any) -> Any:
    """What the function returns, in time. It reports if it can."""
    reports = "report" if "report" in function.__code__.co_varnames else None
    with trio.fail_after(20):
        return await WorkerCall(function, arguments, reports).run(report)


async def cancel_when_ready(function: Function, **arguments: Any) -> tuple[int, float]:
    """The number that the function reports as ready, and how many seconds the call took from the cancellation on."""
    heard: list[str] = []
    with trio.CancelScope() as scope:

        def report(text: str) -> None:
            heard.append(text)
            heard.append(str(trio.current_time()))
            scope.cancel(reason="it is ready")

        await run(function, report, **arguments)
    assert scope.cancelled_caught
    return int(heard[0].split()[1]), trio.current_time() - float(heard[1])


async def test_it_returns_what_the_function_returns() -> None:
    assert await run(work.double, number=21) == 42


async def test_reports_arrive_in_order_before_the_result() -> None:
    heard: list[str] = []
    words = [f"word {number}" for number in range(1000)]
    assert await run(work.tell, heard.append, words=words) == 1000
    assert heard == words


async def test_what_is_larger_than_a_pipe_arrives_whole() -> None:
    assert await run(work.double, number="ä" * 500_000) == "ä" * 1_000_000


async def test_an_error_comes_with_the_traceback_of_the_worker() -> None:
    with pytest.raises(ValueError) as failed:
        await run(work.fail, kind="value")
    assert str(failed.value) == "no ink"
    assert "work_to_stop.py" in failed.value.__notes__[0] and "in fail" in failed.value.__notes__[0]


@pytest.mark.parametrize(("kind", "said"), [("exit", "SystemExit: 3"), ("odd", "work_to_stop.Odd: one")])
async def test_an_error_that_cannot_be_sent_or_would_end_the_host_says_what_it_was(kind: str, said: str) -> None:
    with pytest.raises(RuntimeError, match=said):
        await run(work.fail, kind=kind)


async def test_a_result_that_cannot_be_sent_is_an_error() -> None:
    with pytest.raises(Exception, match="pickle"):
        await run(work.unsendable)


@pytest.mark.parametrize("kind", ["death", "silence"])
async def test_a_worker_that_dies_is_an_error_with_its_exit_code(kind: str) -> None:
    with pytest.raises(ChildProcessError, match="fail ended without an answer, with exit code 7"):
        await run(work.fail, kind=kind)


async def test_it_reads_nothing_and_what_it_prints_goes_to_stderr(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    assert await run(work.chatty) == ""
    assert capfd.readouterr() == ("", "printed\n")


async def test_a_thread_that_the_function_leaves_is_not_waited_for() -> None:
    assert await run(work.leave_thread) == "done"


async def test_cancelled_it_is_killed_and_reaped() -> None:
    pid, seconds = await cancel_when_ready(work.swallow_for_ever)
    assert reaped(pid)
    assert seconds < 1  # 100 ms on a machine with nothing else to do


@pytest.mark.parametrize("own_session", [True, False])
async def test_cancelled_its_children_are_killed_with_it(own_session: bool) -> None:
    pid, _ = await cancel_when_ready(work.start_child, own_session=own_session)
    await wait_gone(pid)


async def test_a_forked_process_that_holds_the_pipe_does_not_hold_up_the_error() -> None:
    heard: list[str] = []
    with pytest.raises(ChildProcessError, match="exit code 5"):
        await run(work.fork_and_die, heard.append)
    await wait_gone(int(heard[0].split()[1]))


async def test_cancelled_before_it_starts_no_process_is_left() -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await run(work.double, number=1)
    assert scope.cancelled_caught


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_no_descriptor_is_left() -> None:
    await run(work.double, number=1)
    before = os.listdir("/proc/self/fd")
    await run(work.double, number=1)
    await cancel_when_ready(work.start_child)
    with pytest.raises(ChildProcessError):
        await run(work.fail, kind="death")
    assert os.listdir("/proc/self/fd") == before


HOST = """
import os, signal, trio
from callboard.runtime.worker_process import WorkerCall
from tests import work_to_stop

def die(text):
    print(text, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

trio.run(WorkerCall(work_to_stop.swallow_for_ever, {}, "report").run, die)
"""


async def test_a_worker_does_not_outlive_its_host() -> None:
    root = Path(__file__).parent.parent
    host = await trio.run_process([sys.executable, "-c", HOST], capture_stdout=True, check=False, cwd=root)
    await wait_gone(int(host.stdout.split()[1]))


def test_a_function_that_a_process_cannot_find_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be pickled for a worker process"):
        check_portable(lambda: None)


def test_a_function_of_the_program_that_is_run_is_refused() -> None:
    program = "from callboard.runtime.tool import Tool\ndef work(): pass\nTool(work, in_process=True)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "put it into a module of its own" in done.stderr
