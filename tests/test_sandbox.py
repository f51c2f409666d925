"""Sandbox: what code in it may not do, an attempt of each kind. In Linux with bubblewrap none of these is skipped."""

import os
import shutil
import socket
import sys
from pathlib import Path

import pytest
import trio

from callboard.actors.kernel import KernelOptions, open_kernel
from callboard.actors.sandbox import SandboxLimits, SandboxMissing, check_isolation, why_not
from callboard.runtime.leftovers import Holdings

from .test_kernel import Bench, bench

# The gate sets it where bubblewrap is there; the tests fail then if it does not work.
REQUIRED = os.environ.get("CALLBOARD_SANDBOX") == "required"
HERE = sys.platform == "linux" and shutil.which("bwrap") is not None
boxed = pytest.mark.skipif(not HERE and not REQUIRED, reason="bubblewrap is not here")

LIMITS = SandboxLimits(memory=2**30, file_size=2**20, processes=20, open_files=64)
BOX = KernelOptions(limits=LIMITS, timeout=20, ladder=0.5)


@boxed
async def test_bubblewrap_works_where_it_is() -> None:
    assert await why_not() == ""


@pytest.mark.parametrize("isolation", ["docker", "", None])
async def test_another_word_for_isolation_is_refused(isolation: str) -> None:
    with pytest.raises(ValueError, match="isolation is 'bubblewrap' or 'none'"):
        await check_isolation(isolation)  # type: ignore[arg-type]  # what a settings file may hold


async def test_a_bubblewrap_that_fails_is_told_with_what_it_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho no namespaces >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("callboard.actors.sandbox.sys.platform", "linux")
    with pytest.raises(SandboxMissing, match=r"does not work here: no namespaces\. Install it"):
        async with open_kernel(tmp_path):
            pass


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="processes is a whole number from 1 on, not 0"):
        SandboxLimits(processes=0)


@boxed
@pytest.mark.slow
async def test_there_is_no_network(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        async with bench(tmp_path, BOX) as run:
            output = await run.output(f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)")
            assert "ConnectionRefusedError" in output
            assert "OSError" in await run.output("socket.create_connection(('192.0.2.1', 80), 2)")
            assert (
                await run.output("import os; os.listdir('/sys/class/net') if os.path.isdir('/sys') else []") == "[]\n"
            )
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


@boxed
@pytest.mark.slow
async def test_files_outside_cannot_be_read_or_written(tmp_path: Path) -> None:
    secret, folder = tmp_path / "secret", tmp_path / "own"
    secret.write_text("secret")
    folder.mkdir()
    async with bench(folder, BOX) as run:
        assert "FileNotFoundError" in await run.output(f"open({str(secret)!r}).read()")
        assert "FileNotFoundError" in await run.output("open('/etc/passwd').read()")
        assert "Error" in await run.output(f"open({str(secret)!r}, 'w')")
        for place in ("/usr/lib/x", "/etc/x", f"{sys.prefix}/x", "/x", f"{tmp_path}/x"):
            assert "Error" in await run.output(f"open({place!r}, 'w')"), place
        mounts = await run.output("print(open('/proc/self/mounts').read())")
        fields = [line.split() for line in mounts.splitlines() if line]
        written = {mount[1] for mount in fields if mount[3].split(",")[0] == "rw"}
        inner = {place for place in written if place.startswith(("/dev/", "/proc/"))}
        assert written - inner == {"/dev", "/proc", "/tmp", str(folder)}
        assert "Error" in await run.output("import os; os.symlink('/', 'root'); open('root/x', 'w')")
        assert "PermissionError" in await run.output("os.mknod('disk', 0o60600, os.makedev(8, 0))")
        assert "Error" in await run.output("os.chroot('.')")
        assert await run.output("os.system('mount -t tmpfs x /usr 2>/dev/null') != 0") == "True\n"
        assert await run.output("open('mine', 'w').write('1'); open('mine').read()") == "'1'\n"
    assert secret.read_text() == "secret"
    assert set(os.listdir(tmp_path)) == {"secret", "own"}


@boxed
@pytest.mark.slow
async def test_a_fork_bomb_ends_at_the_limit_of_processes_and_leaves_nothing(tmp_path: Path) -> None:
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError as error: print(error); break\nos.wait()"
    counted = """\
import os, time
count = 0
try:
    while count < 1000:
        if os.fork() == 0:
            time.sleep(60)
        count += 1
except OSError:
    print("refused at", count)"""
    async with bench(tmp_path, BOX) as run:
        output = await run.output(counted)
        assert output.startswith("refused at ") and int(output.split()[-1]) < 20
    async with bench(tmp_path, KernelOptions(limits=LIMITS, timeout=1, ladder=0.3)) as run:
        assert "temporarily unavailable" in await run.output(bomb)


@boxed
@pytest.mark.slow
async def test_too_much_memory_is_an_error_and_keeps_the_state(tmp_path: Path) -> None:
    async with bench(tmp_path, BOX) as run:
        await run("x = 1")
        assert "MemoryError" in await run.output("'x' * 3 * 2**30")
        assert "No space left" in await run.output(
            "for number in range(2000):\n    with open(f'/tmp/{number}', 'wb') as file: file.write(b'x' * 2**20)"
        )
        assert await run.output("x") == "1\n"


@boxed
@pytest.mark.slow
async def test_a_file_ends_at_its_limit(tmp_path: Path) -> None:
    async with bench(tmp_path, BOX) as run:
        assert "File too large" in await run.output("open('big', 'wb').write(b'x' * 2**21)")
        assert "Too many open files" in await run.output("many = [open('/dev/null') for _ in range(100)]")
    assert (tmp_path / "big").stat().st_size <= 2**20


@boxed
@pytest.mark.slow
async def test_processor_time_ends_the_kernel(tmp_path: Path) -> None:
    async with bench(tmp_path, KernelOptions(limits=SandboxLimits(processor=1))) as run:
        result = await run("while True: pass")
        assert result.ended == "lost"
        assert "perhaps by the system, for memory or processor time" in result.output


@boxed
@pytest.mark.slow
@pytest.mark.parametrize("flood", ["while True: print('x' * 10_000)", "import os; os.system('yes')"])
async def test_a_flood_of_output_is_stopped(flood: str, tmp_path: Path) -> None:
    async with bench(tmp_path, BOX) as run:
        await run("x = 1")
        with trio.fail_after(15):
            result = await run(flood)
        assert result.ended == "stopped"
        assert "[stopped: it printed too much; the variables are kept]" in result.output
        assert len(result.output) < 21_000
        assert await run.output("x") == "1\n"


@boxed
@pytest.mark.slow
async def test_games_with_signals_hurt_the_kernel_alone(tmp_path: Path) -> None:
    games = [
        "import os, signal; os.kill(os.getppid(), 9); os.kill(1, 9); os.killpg(0, 2)",
        f"os.kill({os.getpid()}, 9)",
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); signal.signal(2, signal.SIG_IGN)\nwhile True: pass",
        "for number in {*range(1, 32)} - {9, 19}: signal.signal(number, signal.SIG_IGN)\nwhile True: pass",
        "import subprocess; subprocess.Popen(['sh', '-c', \"trap '' 2 15; sleep 60\"], start_new_session=True)",
        "import os; os.setsid() if os.getpgrp() != os.getpid() else None; os.kill(os.getpid(), 19)",
        "import os; os.kill(-1, 9)",
    ]
    before = Holdings.now()
    with trio.fail_after(60):
        async with open_kernel(tmp_path, KernelOptions(limits=LIMITS, timeout=0.3, ladder=0.2)) as kernel:
            run = Bench(kernel)
            for game in games:
                await run(f"import os, signal\n{game}")
            assert (await run.output("1")).endswith("1\n")
    assert not before.left_behind()


@boxed
@pytest.mark.slow
async def test_code_is_nobody_and_gains_no_powers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLBOARD_SECRET", "secret")
    async with bench(tmp_path, BOX) as run:
        status = await run.output("print(open('/proc/self/status').read())")
        lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert {lines["CapPrm"], lines["CapEff"]} == {"0" * 16}
        assert lines["NoNewPrivs"] == "1"
        assert "PermissionError" in await run.output("import os; os.setuid(0)")
        assert await run.output("sorted(name for name in os.listdir('/proc') if name.isdigit())") == "['1', '2']\n"
        assert "'CALLBOARD_SECRET'" not in await run.output("sorted(os.environ)")
