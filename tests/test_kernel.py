"""Kernel: code runs piece after piece in one process, and an interruption ends the code and keeps the variables."""

import os
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from callboard.actors.kernel import Kernel, KernelOptions, KernelResult, open_kernel
from callboard.actors.plugin import Plugin
from callboard.actors.printed import Printed
from callboard.runtime.leftovers import Holdings

from .test_code_runner import wait_gone


class Bench:
    """A kernel, and what it has printed."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.shown = ""
        self.grew = trio.Event()

    async def __call__(self, code: str) -> KernelResult:
        return await self.kernel.run(code, self._show, {"user": "Ada"})

    async def output(self, code: str) -> str:
        """What it prints."""
        return (await self(code)).output

    async def cut(self, code: str, after: float = 0.0) -> str:
        """What is shown of code that is cancelled so many seconds after it has printed something."""
        self.shown, self.grew = "", trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.kernel.run, f"print('begun')\n{code}", self._show)
            await self.grew.wait()
            await trio.sleep(after)
            nursery.cancel_scope.cancel()
        return self.shown

    def _show(self, text: str) -> None:
        self.shown += text
        self.grew.set()


OPEN = KernelOptions(isolation="none", ladder=0.3)


@asynccontextmanager
async def bench(folder: Path, options: KernelOptions = OPEN) -> AsyncIterator[Bench]:
    """A kernel that leaves no process behind."""
    before = Holdings.now()
    async with open_kernel(folder, options) as kernel:
        yield Bench(kernel)
    assert not before.left_behind()


async def test_variables_stay_and_the_last_expression_is_shown(tmp_path: Path) -> None:
    async with bench(tmp_path) as run:
        assert await run.output("x = 20\nNone") == ""
        assert await run.output("def f(): return x + 1\nf() * 2") == "42\n"


@pytest.mark.slow
async def test_what_children_and_c_print_comes_in_order(tmp_path: Path) -> None:
    code = (
        "import os, sys\nprint(1)\nos.system('echo 2')\nos.write(2, b'3\\n')\nprint(4, file=sys.stderr)\nprint(5);None"
    )
    async with bench(tmp_path) as run:
        assert await run.output(code) == "1\n2\n3\n4\n5\n"


async def test_an_error_is_shown_with_its_lines_and_none_of_the_kernels(tmp_path: Path) -> None:
    async with bench(tmp_path) as run:
        await run("def f():\n    return 1 / 0")
        result = await run("f()")
    assert result.ended == "failed"
    assert 'File "<code 1>", line 2, in f\n    return 1 / 0\n' in result.output
    assert "kernel_process" not in result.output
    assert result.output.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.slow
async def test_what_ends_a_program_ends_no_kernel(tmp_path: Path) -> None:
    async with bench(tmp_path) as run:
        await run("x = 1")
        assert (await run("import sys; sys.exit(0)")).succeeded
        assert (await run("sys.exit('no')")).output.endswith("SystemExit: no\n")
        assert (await run("sys.stdout.close(); import os; os.close(1); os.close(2)")).succeeded
        assert (await run("if os.fork() == 0: x = 'of the copy'")).succeeded
        with trio.fail_after(5):
            assert await run.output("os.wait()[1]") == "0\n"
        assert "invalid syntax" in await run.output("x = = 2")
        assert (await run.output("input()")).endswith("EOFError: EOF when reading a line\n")
        assert await run.output("x") == "1\n"


@pytest.mark.slow
async def test_plugins_and_session_variables_are_there(tmp_path: Path) -> None:
    file = tmp_path / "prices.py"
    file.write_text(
        "from callboard_session import variables\n"
        "def price(item: str) -> str:\n    return f'{item} for {variables[\"user\"]}'\n"
    )
    options = KernelOptions(isolation="none", plugins=(Plugin(file),))
    async with bench(tmp_path, options) as run:
        assert await run.output("price('tea')") == "'tea for Ada'\n"


@pytest.mark.parametrize("code", ["while True: pass", "import time; time.sleep(60)"], ids=["busy", "sleep"])
async def test_an_interruption_keeps_variables_and_what_was_printed(code: str, tmp_path: Path) -> None:
    async with bench(tmp_path) as run:
        await run("x = 1")
        await run("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)")
        shown = await run.cut(f"x = 2\n{code}", 0.02)
        assert shown.startswith("begun\nTraceback") and shown.endswith("[interrupted; the variables are kept]\n")
        assert await run.output("x") == "2\n"


@pytest.mark.slow
async def test_code_that_ignores_an_interruption_is_killed_and_the_loss_is_told(tmp_path: Path) -> None:
    stubborn = "import signal\nfor one in (2, 15): signal.signal(one, signal.SIG_IGN)\nwhile True: pass"
    async with bench(tmp_path, KernelOptions(isolation="none", ladder=0.05)) as run:
        await run("x = 1")
        assert "had to be killed: all variables" in await run.cut(stubborn, 0.05)
        assert "NameError" in await run.output("x")


@pytest.mark.slow
async def test_a_kernel_that_ends_is_told_and_the_next_code_has_another(tmp_path: Path) -> None:
    async with bench(tmp_path) as run:
        result = await run("import os; print('bye', end=''); os._exit(3)")
        assert result.ended == "lost"
        assert result.output.startswith("bye\n[the kernel has ended (exit code 3): all variables")
        await run("import os, threading, time\nthreading.Timer(0.02, os.abort).start()")
        await trio.sleep(0.2)
        output = await run.output("1")
        assert output.startswith("[the kernel has ended since the last code (killed by signal 6)") and output.endswith(
            "1\n"
        )


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 0.001, 0.01, 0.03])
async def test_a_start_that_is_cancelled_leaves_nothing(after: float, tmp_path: Path) -> None:
    async with bench(tmp_path) as run:
        with trio.move_on_after(after):
            await run("while True: pass")
        assert await run.output("1") == "1\n"


@pytest.mark.slow
async def test_a_run_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    async with bench(tmp_path, KernelOptions(isolation="none", timeout=0.2)) as run:
        result = await run("x = 1\nwhile True: pass")
        assert (result.ended, result.succeeded) == ("stopped", False)
        assert result.output.endswith("[stopped after 0.2 s; the variables are kept]\n")
        assert await run.output("x") == "1\n"


@pytest.mark.slow
async def test_what_is_forged_as_a_reply_ends_the_kernel_and_nothing_else(tmp_path: Path) -> None:
    each = "for fd in range(3, 20):\n    try: os.write(fd, b'no reply\\n')\n    except OSError: pass\n"
    forged = f"import os\n{each}while True: pass"
    async with bench(tmp_path, KernelOptions(isolation="none", timeout=20)) as run:
        with trio.fail_after(4):
            assert (await run(forged)).ended == "lost"
        assert await run.output("1") == "1\n"


def fed(pieces: list[bytes], most: int = 100) -> tuple[Printed, str]:
    """What is made of output that comes in pieces, and what is shown of it on the way."""
    shown: list[str] = []
    printed = Printed(b"\0mark\0", shown.append, most)
    for piece in pieces:
        printed.feed(piece)
    return printed, "".join(shown)


@pytest.mark.parametrize("cut", range(14))
def test_a_marker_may_come_in_pieces(cut: int) -> None:
    data = "é\0ma".encode() + b"\0mark\0late"
    printed, shown = fed([data[:cut], data[cut:]])
    assert (printed.complete, printed.text(), shown) == (True, "é\0ma", "é\0ma")


def test_of_more_output_than_is_kept_the_middle_is_left_out() -> None:
    printed, shown = fed([b"0123456789" * 3, b"abcdefghij\0mark\0"], most=8)
    assert (printed.text(), shown) == ("0123\n[32 bytes left out]\nghij", "01234567")


INTERRUPTED = {
    "busy loop": "while True: state['n'] += 1",
    "sleep": "import time\nwhile True: time.sleep(60)",
    "numpy": "import numpy\na = numpy.ones((300, 300))\nwhile True: a = a @ a / 300",
    "child process": "import subprocess\nwhile True: subprocess.run(['sleep', '60'])",
    "print flood": "while True: print('flood ' * 20)",
    "file write": "file = open('big', 'wb', 0)\nwhile True: file.seek(0); file.write(b'x' * 100_000)",
}


CHILDREN = """\
import os
def living():
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent = open(f"/proc/{name}/stat").read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z":
            found.append(name)
    return found
deadline = time.monotonic() + 2
while living() and time.monotonic() < deadline:
    time.sleep(0.01)
living()
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", INTERRUPTED)
@pytest.mark.parametrize("isolation", ["none", "bubblewrap"])
async def test_a_thousand_interruptions_keep_the_state_and_leave_no_process(
    kind: str, isolation: str, tmp_path: Path
) -> None:
    if isolation == "bubblewrap" and sys.platform != "linux":
        pytest.skip("bubblewrap is for Linux")
    options = KernelOptions(isolation="bubblewrap" if isolation == "bubblewrap" else "none", ladder=10)
    seeded = random.Random(kind)
    async with bench(tmp_path, options) as run:
        await run("state = {'n': 0, 'runs': 0}")
        await run("import time, subprocess\ntry: import numpy\nexcept ImportError: pass")
        for number in range(1, 85):
            shown = await run.cut(f"state['runs'] += 1\n{INTERRUPTED[kind]}", seeded.random() * 0.02)
            assert shown.startswith("begun")
            assert shown.endswith("[interrupted; the variables are kept]\n")
            runs = await run.output("state['runs']")
            assert runs in (f"{number}\n", f"{number - 1}\n")
            if runs != f"{number}\n":  # cut before its first line
                await run("state['runs'] += 1")
        assert await run.output(CHILDREN) == "[]\n"


@pytest.mark.slow
async def test_a_program_that_is_started_after_the_interruption_is_reached(tmp_path: Path) -> None:
    late = """\
import signal, subprocess
def start(number, frame):
    global child
    child = subprocess.Popen(["sleep", "60"])
    raise KeyboardInterrupt
signal.signal(signal.SIGINT, start)
while True: pass
"""
    async with bench(tmp_path) as run:
        await run.cut(late, 0.05)
        assert await run.output("child.wait(5)") == "-2\n"


@pytest.mark.slow
async def test_the_kernel_dies_with_its_host(tmp_path: Path) -> None:
    program = (
        "import trio, os, sys\nfrom pathlib import Path\nfrom callboard.actors.kernel import *\n"
        "async def main():\n"
        "    async with open_kernel(Path(sys.argv[1]), KernelOptions(isolation='none')) as kernel:\n"
        "        code = 'import os, time; print(os.getpid()); time.sleep(60)'\n"
        "        await kernel.run(code, lambda text: print(text, flush=True))\n"
        "trio.run(main)\n"
    )
    process = await trio.lowlevel.open_process([sys.executable, "-c", program, str(tmp_path)], stdout=-1)
    assert process.stdout is not None
    kernel = int(await process.stdout.receive_some())
    process.kill()
    await process.wait()
    await process.stdout.aclose()
    with trio.fail_after(5):
        await wait_gone(kernel)


@pytest.mark.slow
async def test_a_kernel_outlives_the_thread_that_trio_started_programs_in(tmp_path: Path) -> None:
    async with bench(tmp_path, KernelOptions(isolation="none")) as run:
        await run("x = 1")
        await trio.sleep(11)  # idle threads of trio end after 10 s
        assert await run.output("x") == "1\n"


@pytest.mark.slow
async def test_open_figures_are_saved(tmp_path: Path) -> None:
    package = tmp_path / "matplotlib"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "pyplot.py").write_text(
        "numbers = [1, 2]\ndef get_fignums(): return list(numbers)\n"
        "class Figure:\n    def savefig(self, name): open(name, 'w').close()\n"
        "def figure(number): return Figure()\ndef close(which): numbers.clear()\n"
    )
    async with bench(tmp_path) as run:
        await run("import matplotlib.pyplot")
        await run("1")
    assert {"figure-1.png", "figure-2.png"} < set(os.listdir(tmp_path))
