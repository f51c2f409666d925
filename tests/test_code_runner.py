"""The code runner: what the code prints, how it ends, how it is stopped, and that nothing of it is left."""

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import trio
from trio.testing import MockClock

from callboard.actors.code_runner import CodeResult, RunOptions, run_code
from callboard.runtime.nursery import open_nursery

Cues: TypeAlias = Mapping[str, Callable[[], object]]
EMPTY: Cues = {}

SLEEP = "import os, time; print('ready', os.getpid()); time.sleep(60)"
BUSY = "import os; print('ready', os.getpid())\nwhile True: pass"
STUBBORN = """\
import os, time
try:
    print('ready', os.getpid())
    time.sleep(60)
except KeyboardInterrupt:
    print('no')
while True: time.sleep(60)
"""
DEAF = "import os, signal; signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'never\\n'))\n" + STUBBORN
PARENT = """\
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN);"
    " signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
child.stdout.readline()
print('ready', child.pid)
"""


@pytest.fixture
def clock(mock_clock: MockClock) -> MockClock:
    """The real time, and a test may jump ahead."""
    mock_clock.rate = 1
    return mock_clock


class Heard:
    """An `on_output` that keeps what it hears and, the first time it has heard a cue, calls what belongs to it."""

    def __init__(self, cues: Cues = EMPTY) -> None:
        self.parts: list[str] = []
        self._cues = dict(cues)

    def __call__(self, text: str) -> None:
        self.parts.append(text)
        for cue in [cue for cue in self._cues if cue in self.text]:
            self._cues.pop(cue)()

    @property
    def text(self) -> str:
        """All of it so far."""
        return "".join(self.parts)


async def run(code: str, folder: Path, on_output: Callable[[str], None] | None = None, **options: Any) -> CodeResult:
    """The result of `run_code`, in time."""
    with trio.fail_after(30):
        return await run_code(code, folder, on_output or Heard(), RunOptions(**options))


async def cancel_when_ready(code: str, folder: Path, cues: Cues = EMPTY) -> tuple[str, int]:
    """What was heard of code cancelled at its first whole line, `ready PID`, and that number."""
    with trio.CancelScope() as scope:
        heard = Heard({"\n": lambda: scope.cancel(reason="it is ready"), **cues})
        await run(code, folder, heard)
    assert scope.cancelled_caught
    return heard.text, int(heard.text.split()[1])


def climb(clock: MockClock) -> dict[str, Callable[[], None]]:
    """Cues that let no time pass between a signal that is refused and the next."""
    return {"no\n": partial(clock.jump, 2), "never\n": partial(clock.jump, 2)}


async def wait_gone(pid: int) -> None:
    """Returns when a process that has been killed, and is nobody's child here, has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with trio.fail_after(10):
        await trio.lowlevel.wait_readable(descriptor)
    os.close(descriptor)


def reaped(pid: int) -> bool:
    """Whether a process has ended and is no zombie either."""
    return not Path(f"/proc/{pid}").exists()


async def test_output_comes_in_order_as_it_is_printed(tmp_path: Path) -> None:
    code = "import os, sys\nprint(1); print(2, file=sys.stderr); os.system('echo 3'); sys.stdout.write('4')"
    heard = Heard()
    result = await run(code, tmp_path, heard)
    assert result == CodeResult("1\n2\n3\n4", 0, timed_out=False)
    assert result.succeeded
    assert heard.text == result.output


async def test_output_is_heard_before_the_code_ends(tmp_path: Path) -> None:
    cue = tmp_path / "heard"
    code = "import os, time\nprint('ready')\nwhile not os.path.exists('heard'): time.sleep(0.001)"
    assert (await run(code, tmp_path, Heard({"ready": cue.touch}))).succeeded


async def test_an_error_gives_its_traceback_and_exit_code(tmp_path: Path) -> None:
    result = await run("print('a')\n1 / 0", tmp_path)
    assert result.exit_code == 1 and not result.succeeded
    assert f'File "{tmp_path}/code-1.py", line 2, in <module>\n    1 / 0' in result.output
    assert result.output.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize(
    ("code", "exit_code"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", -9)]
)
async def test_the_exit_code_is_that_of_subprocess(tmp_path: Path, code: str, exit_code: int) -> None:
    assert await run(code, tmp_path) == CodeResult("", exit_code, timed_out=False)


async def test_a_character_split_over_two_reads_is_whole(tmp_path: Path) -> None:
    halves = "import os\nos.write(1, b'1\\xe2\\x82')\nwhile not os.path.exists('heard'): pass\nos.write(1, b'\\xac2')"
    heard = Heard({"1": (tmp_path / "heard").touch})
    assert (await run(halves, tmp_path, heard)).output == "1€2"
    assert heard.parts == ["1", "€2"]


async def test_what_is_not_utf8_is_replaced(tmp_path: Path) -> None:
    result = await run("import os; os.write(1, b'a\\xff\\xe2\\x82')", tmp_path)
    assert result.output == "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"


async def test_a_flood_is_cut_in_the_middle(tmp_path: Path) -> None:
    heard = Heard()
    result = await run("print('a' * 300_000 + 'é' * 300_000)", tmp_path, heard, most_output=101)
    assert result.output == "a" * 50 + "\n[599900 characters left out]\n" + "é" * 50 + "\n"
    assert heard.text == "a" * 101


@pytest.mark.parametrize("length", [1, 10, 11, 12])
async def test_only_what_is_too_long_is_cut(tmp_path: Path, length: int) -> None:
    text = "abcdefghijkl"[:length]
    result = await run(f"print({text!r}, end='')", tmp_path, most_output=11)
    assert result.output == (text if length < 12 else "abcde\n[1 characters left out]\nghijkl")


async def test_the_environment_of_the_host_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "sesame")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    code = "import os, sys\nprint(dict(os.environ), sys.path, sys.flags.no_user_site, sys.flags.utf8_mode)"
    result = await run(code, tmp_path, environment={"MODE": "quiet"})
    assert "sesame" not in result.output and "/elsewhere" not in result.output
    assert f"'HOME': '{tmp_path}'" in result.output and "'MODE': 'quiet'" in result.output
    assert result.output.endswith(" 1 1\n")


async def test_the_folder_is_where_it_works(tmp_path: Path) -> None:
    folder = tmp_path / "with spaces, ünd ä 字"
    folder.mkdir()
    (folder / "earlier.py").write_text("word = 'ä'")
    result = await run("import earlier, os, tempfile; print(earlier.word, os.getcwd(), tempfile.gettempdir())", folder)
    assert result.output == f"ä {folder} {folder}\n"


async def test_a_relative_folder_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (await run("import os; print(os.environ['HOME'])", Path())).output == f"{tmp_path}\n"


async def test_there_is_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "typed").write_text("typed by the host's user")
    own, typed = os.dup(0), os.open(tmp_path / "typed", os.O_RDONLY)
    os.dup2(typed, 0)
    try:
        assert (await run("import sys; print(repr(sys.stdin.read()))", tmp_path)).output == "''\n"
    finally:
        os.dup2(own, 0)
        os.close(own)
        os.close(typed)


async def test_no_file_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "code-2.py").touch()
    assert (await run("print(__file__)", tmp_path)).output == f"{tmp_path}/code-3.py\n"
    assert (tmp_path / "code-2.py").read_text() == ""


async def test_a_missing_folder_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing'$"):
        await run("print()", tmp_path / "missing")


@pytest.mark.parametrize(("code", "seconds", "most"), [("'\ud800'", 1, 1), ("", -1, 1), ("", 1, 0)])
async def test_what_cannot_be_run_starts_nothing(tmp_path: Path, code: str, seconds: float, most: int) -> None:
    with pytest.raises(ValueError):
        await run(code, tmp_path, timeout=seconds, most_output=most)
    assert not os.listdir(tmp_path)


def test_a_ladder_takes_no_seconds_below_0() -> None:
    with pytest.raises(ValueError, match="ladder is a number of seconds"):
        RunOptions(ladder=float("nan"))


async def test_two_may_run_in_one_folder(tmp_path: Path) -> None:
    results: list[CodeResult] = []

    async def keep(mine: str, others: str) -> None:
        code = f"import os\nopen({mine!r}, 'w')\nwhile not os.path.exists({others!r}): pass\nprint({mine!r})"
        results.append(await run(code, tmp_path))

    async with open_nursery() as nursery:
        nursery.start_soon(keep, "a", "b")
        nursery.start_soon(keep, "b", "a")
    assert {result.output for result in results} == {"a\n", "b\n"}
    assert set(os.listdir(tmp_path)) == {"a", "b", "code-1.py", "code-2.py"}


async def test_to_end_well_after_the_timeout_is_no_success(tmp_path: Path, clock: MockClock) -> None:
    code = "import time\ntry: print('ready'); time.sleep(60)\nexcept KeyboardInterrupt: pass"
    result = await run(code, tmp_path, Heard({"\n": partial(clock.jump, 5)}), timeout=5)
    assert (result.exit_code, result.timed_out, result.succeeded) == (0, True, False)


async def test_after_the_timeout_it_is_interrupted(tmp_path: Path, clock: MockClock) -> None:
    result = await run(SLEEP, tmp_path, Heard({"\n": partial(clock.jump, 5)}), timeout=5)
    assert result.timed_out and not result.succeeded
    assert result.exit_code == -2 and result.output.endswith("KeyboardInterrupt\n")


@pytest.mark.parametrize(("code", "exit_code", "last"), [(STUBBORN, -15, "no\n"), (DEAF, -9, "no\nnever\n")])
async def test_what_refuses_a_signal_gets_the_next(
    tmp_path: Path, clock: MockClock, code: str, exit_code: int, last: str
) -> None:
    heard = Heard({"\n": partial(clock.jump, 5), **climb(clock)})
    result = await run(code, tmp_path, heard, timeout=5)
    assert (result.exit_code, result.timed_out) == (exit_code, True)
    assert result.output.split("\n", 1)[1] == last


async def test_the_limits_of_the_ladder_are_kept(tmp_path: Path, clock: MockClock) -> None:
    heard = Heard({"\n": partial(clock.jump, 5)})
    result = await run(DEAF, tmp_path, heard, timeout=5, ladder=0.05)
    assert result.exit_code == -9


@pytest.mark.parametrize("code", [SLEEP, BUSY])
async def test_cancelled_it_is_interrupted_and_reaped(tmp_path: Path, code: str) -> None:
    heard, pid = await cancel_when_ready(code, tmp_path)
    assert heard.endswith("KeyboardInterrupt\n")
    assert reaped(pid)


@pytest.mark.parametrize(("code", "last"), [(STUBBORN, "no\n"), (DEAF, "no\nnever\n")])
async def test_cancelled_it_cannot_refuse_to_end(tmp_path: Path, clock: MockClock, code: str, last: str) -> None:
    heard, pid = await cancel_when_ready(code, tmp_path, climb(clock))
    assert heard == f"ready {pid}\n{last}"
    assert reaped(pid)


async def test_cancelled_it_may_tidy_up_and_is_heard(tmp_path: Path) -> None:
    code = f"try:\n    {SLEEP}\nfinally:\n    time.sleep(0.05); print('tidy')"
    heard, pid = await cancel_when_ready(code, tmp_path)
    assert heard.startswith(f"ready {pid}\ntidy\n")


@pytest.mark.parametrize("end", ["time.sleep(60)", "while True: pass"])
async def test_cancelled_its_children_end_too(tmp_path: Path, end: str) -> None:
    _, pid = await cancel_when_ready(PARENT + end, tmp_path)
    await wait_gone(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="found through /proc")
async def test_cancelled_a_child_that_left_the_group_ends_too(tmp_path: Path) -> None:
    code = PARENT.replace("stdout=subprocess.PIPE)", "stdout=subprocess.PIPE, start_new_session=True)")
    _, pid = await cancel_when_ready(code + "time.sleep(60)", tmp_path)
    await wait_gone(pid)


@pytest.mark.parametrize("end", ["", "1 / 0"])
async def test_children_left_in_the_background_are_killed(tmp_path: Path, end: str) -> None:
    result = await run(PARENT + end, tmp_path)
    await wait_gone(int(result.output.split()[1]))


async def test_a_child_that_left_the_group_does_not_hold_up_the_result(tmp_path: Path) -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '60'], start_new_session=True).pid)"
    result = await run(code, tmp_path)
    os.kill(int(result.output), 9)


async def test_an_error_of_on_output_stops_the_code_and_comes_out(tmp_path: Path) -> None:
    seen: list[str] = []

    def refuse(text: str) -> None:
        seen.append(text)
        raise KeyError(text)

    code = "import os, time; os.write(1, str(os.getpid()).encode()); time.sleep(60)"
    with pytest.raises(KeyError):
        await run(code, tmp_path, refuse)
    assert reaped(int(seen[0]))


async def test_cancelled_before_it_starts_it_leaves_nothing(tmp_path: Path) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await run(SLEEP, tmp_path)
    assert scope.cancelled_caught
    assert not os.listdir(tmp_path)


async def test_a_process_that_outlives_sigkill_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[trio.Process] = []
    open_process = trio.lowlevel.open_process

    async def keep(*arguments: Any, **options: Any) -> trio.Process:
        started.append(await open_process(*arguments, **options))
        return started[0]

    monkeypatch.setattr(trio.lowlevel, "open_process", keep)
    monkeypatch.setattr(os, "killpg", lambda pid, number: None)
    monkeypatch.setattr("callboard.runtime.ladder._KILLED", 0.01)
    with pytest.raises(TimeoutError, match=r"process \d+ is still there 0.01 s after SIGKILL"):
        await run(BUSY, tmp_path, timeout=0, ladder=0.01)
    started[0].kill()
    await started[0].wait()


async def test_without_pidfds_it_works_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert (await run("print(1)", tmp_path)).output == "1\n"
    _, pid = await cancel_when_ready(SLEEP, tmp_path)
    assert reaped(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_no_descriptor_is_left(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    await run("print(1)", tmp_path)
    await cancel_when_ready(SLEEP, tmp_path)
    with pytest.raises(FileNotFoundError):
        await run("print(1)", tmp_path / "missing")
    assert os.listdir("/proc/self/fd") == before
