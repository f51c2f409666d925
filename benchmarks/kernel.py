"""What a kernel costs: its start, a run, and an interruption until the code has ended, beside a bare Python process.

`python -m benchmarks.kernel` prints the median and the worst of so many trials, in milliseconds of the real clock. The
cold start is the first of all, and on a machine that has run Python lately it is hardly colder than the others.
Bare: the same interpreter that does nothing, started and awaited. Linux or macOS.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import trio

from callboard.actors.kernel import Kernel, KernelOptions, open_kernel
from callboard.actors.sandbox import Isolation, why_not

INTERRUPTED = {
    "busy loop": "while True: pass",
    "sleep": "import time\nwhile True: time.sleep(60)",
    "numpy": "import numpy\na = numpy.ones((500, 500))\nwhile True: a = a @ a / 500",
    "child process": "import subprocess\nwhile True: subprocess.run(['sleep', '60'])",
    "print flood": "while True: print('flood ' * 20)",
    "file write": "file = open('big', 'wb', 0)\nwhile True: file.seek(0); file.write(b'x' * 100_000)",
}

Times = dict[str, list[float]]


async def measure(isolation: Isolation, trials: int) -> Times:
    """Milliseconds of each trial, by what was tried."""
    times: Times = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(trials):
            async with open_kernel(Path(folder), KernelOptions(isolation=isolation)) as kernel:
                name = "first start and run" if number == 0 else "start and run"
                times.setdefault(name, []).append(await _run(kernel, "1"))
        async with open_kernel(Path(folder), KernelOptions(isolation=isolation)) as kernel:
            await _run(kernel, "x = 1\nimport numpy, subprocess")
            times["run"] = [await _run(kernel, "x + 1") for _ in range(10 * trials)]
            for name, code in INTERRUPTED.items():
                times[f"interrupt: {name}"] = [await _interrupted(kernel, code) for _ in range(trials)]
    return times


async def _run(kernel: Kernel, code: str) -> float:
    begun = time.perf_counter()
    await kernel.run(code, lambda text: None)
    return 1000 * (time.perf_counter() - begun)


async def _interrupted(kernel: Kernel, code: str) -> float:
    """From the cancellation on, until the run has ended."""
    begun = 0.0
    printed = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(kernel.run, f"print('begun')\n{code}", lambda text: printed.set())
        await printed.wait()
        await trio.sleep(0.02)
        begun = time.perf_counter()
        nursery.cancel_scope.cancel()
    return 1000 * (time.perf_counter() - begun)


def bare(trials: int) -> list[float]:
    """Of a Python process that does nothing."""
    times = []
    for _ in range(trials):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-s", "-c", ""], check=True)
        times.append(1000 * (time.perf_counter() - begun))
    return times


async def run(trials: int, as_json: bool) -> None:
    """Prints the figures."""
    _print("none", {"bare Python process": bare(trials)}, as_json)
    _print("none", await measure("none", trials), as_json)
    if reason := await why_not():
        print(f"bubblewrap is left out: {reason}", file=sys.stderr)
    else:
        _print("bubblewrap", await measure("bubblewrap", trials), as_json)


def _print(isolation: Isolation, times: Times, as_json: bool) -> None:
    for name, every in times.items():
        median, worst = statistics.median(every), max(every)
        if as_json:
            print(json.dumps({"isolation": isolation, "case": name, "median_ms": median, "worst_ms": worst}))
        else:
            print(f"{isolation:12}{name:26}{median:9.2f} ms{worst:9.2f} ms at worst")


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="one JSON object a line, in place of the table")
    options = parser.parse_args(arguments)
    trio.run(run, options.trials, options.json)


if __name__ == "__main__":
    main()
