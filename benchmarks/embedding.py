"""What a host costs: a conversation in a trio thread, spoken to by asyncio, by uvloop and by threads that block.

`python -m benchmarks.embedding` prints, for each program, medians over the runs, and how they compare with the same
program over anyio's blocking portal to trio: the median of the ratios run by run. All programs run in turn in one
process, and have the same conversations. Events: more is better; elsewhere less is.
Round trip: `send` to a role that answers at once. Events: read by the program, of one conversation and of many.
Cancelled: from the cancellation of the task that sends, or from `stop` in another thread, until the role's clean-up is
done, and until the program goes on. Late: by how much a tick of the program that is due each millisecond comes late,
at worst while a role blocks its thread by mistake, and in ninety-nine of a hundred while trio is busy.
uvloop is measured where it is installed. Needs anyio 4.16.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio

from benchmarks import _embedded_tasks, _embedded_threads, _portal
from benchmarks._embedded import Figures, Sizes
from benchmarks._embedded_tasks import cut_on_asyncio, cut_on_trio

HEAD = ("program", "round trip", "its p99", "events/s", "of many", "cleaned up", "went on", "late: block", "busy p99")
WIDTH = 19
"""Of a column."""
FULL = Sizes(sends=2000, events=100_000, conversations=200, cancels=50, stall=0.5, busy=1.0)
SMALLEST = Sizes(sends=10, events=60, conversations=2, cancels=1, stall=0.005, busy=0.005)


@dataclass(frozen=True)
class Program:
    """One way to speak to a conversation, and the name of that which it is compared with."""

    name: str
    measure: Callable[[Sizes], Figures]
    baseline: str = ""


def on_asyncio(enter: Any, loop_factory: Callable[[], Any] | None, sizes: Sizes) -> Figures:
    """A program on an asyncio loop."""
    measure = partial(_embedded_tasks.measure, enter, cut_on_asyncio, sizes)
    return anyio.run(measure, backend="asyncio", backend_options={"loop_factory": loop_factory})


def programs() -> tuple[Program, ...]:
    """All that can run here, a baseline right after what is compared with it."""
    on_trio = partial(_embedded_tasks.measure, _embedded_tasks.in_trio, cut_on_trio)
    loops: dict[str, Callable[[], Any] | None] = {"asyncio": None}
    if importlib.util.find_spec("uvloop"):
        loops["uvloop"] = importlib.import_module("uvloop").new_event_loop
    found = [Program("trio, no host", lambda sizes: anyio.run(on_trio, sizes, backend="trio"))]
    for name, factory in loops.items():
        portal = f"portal, {name}"
        found.append(Program(f"TrioHost, {name}", partial(on_asyncio, _embedded_tasks.in_host, factory), portal))
        found.append(Program(portal, partial(on_asyncio, _portal.for_asyncio, factory)))
    portal = "portal, threads"
    threads = partial(_embedded_threads.measure, _embedded_threads.in_host)
    found.append(Program("BlockingHost", threads, portal))
    found.append(Program(portal, partial(_embedded_threads.measure, _portal.for_threads)))
    return tuple(found)


def run_all(sizes: Sizes) -> dict[str, Figures]:
    """One run of each program, by name."""
    figures = {}
    for program in programs():
        gc.collect()  # or a program pays for what the one before it has left
        figures[program.name] = program.measure(sizes)
    return figures


def median(figures: Sequence[Sequence[float]]) -> list[float]:
    """Column by column."""
    return [statistics.median(column) for column in zip(*figures, strict=True)]


def ratios(runs: Sequence[dict[str, Figures]], program: Program) -> list[float | None]:
    """To the program's baseline, the median of those of each run; nothing where there is none."""
    if not program.baseline:
        return [None] * len(Figures._fields)
    return [*median([_quotients(run[program.name], run[program.baseline]) for run in runs])]


def _quotients(ours: Figures, theirs: Figures) -> list[float]:
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def cell(field: str, figure: float, ratio: float | None) -> str:
    """For the table: events in thousands, times in the unit that suits them."""
    if field.startswith("events"):
        text = f"{figure / 1e3:.1f} k"
    elif figure < 1e-3:
        text = f"{figure * 1e6:.0f} us"
    else:
        text = f"{figure * 1e3:.1f} ms"
    return text if ratio is None else f"{text} x{ratio:.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--smallest", action="store_true", help="to see that it runs; the figures mean nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, in place of the table")
    options = parser.parse_args(arguments)
    runs = [run_all(SMALLEST if options.smallest else FULL) for _ in range(options.runs)]
    if not options.json:
        print("".join(f"{title:<{WIDTH}}" for title in HEAD).rstrip())
    for program in programs():
        figures = Figures(*median([run[program.name] for run in runs]))
        quotients = ratios(runs, program)
        if options.json:
            print(json.dumps({"program": program.name, **figures._asdict(), "ratios": quotients}))
            continue
        cells = map(cell, Figures._fields, figures, quotients)
        print(f"{program.name:<{WIDTH}}" + "".join(f"{text:<{WIDTH}}" for text in cells).rstrip())


if __name__ == "__main__":
    main()
