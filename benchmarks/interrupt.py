"""What an interruption takes: until all old work has ended, and until the model is called with the user's words.

`python -m benchmarks.interrupt` prints milliseconds of the real clock from the call of `intervene` on, for the whole
chain of superiors, and the ratio of CPU time to the same tree in bare trio, measured in turn in one process. All of it
is work of this process, so the two times are alike, but other programs disturb the CPU time less. A chain of 50 is 50
roles that wait for one another; 1,000 leaves are one superior that waits for 1,000 subordinates.
Full: roles with mailboxes, drafts that are kept, posts recorded in memory, which the new attempt asks for its rounds.
Bare: a task and a nursery for each role, one cancel scope round all; it keeps nothing and tells nobody.
Of tasks that are due at once trio takes now the first and now the last first, by chance. So a chain unwinds in a quick
way or in a slow one, and the spread shows both.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import trio
import trio.testing

from benchmarks._tree import OPTIONS, Moment, StreamingModel, Tree, Worker, chain, fan, work
from callboard.runtime.opening import open_conversation

WORDS = "Only for 2025."


class Latency(NamedTuple):
    """From the interruption on."""

    call: Moment
    """Until the call that interrupts has returned."""
    stopped: Moment
    """Until its caller, who waits for it, knows that all old work has ended."""
    next_call: Moment
    """Until the model is called again, with the words."""


Measure = Callable[[Tree], Awaitable[Latency]]


async def full(tree: Tree) -> Latency:
    """Of a conversation."""
    model = StreamingModel(tree)
    async with open_conversation(Worker(tree, model), options=OPTIONS) as conversation:
        conversation.communicate("Begin.")
        await model.at_work.wait()
        await trio.testing.wait_all_tasks_blocked()
        began = Moment.now()
        receipt = conversation.intervene(WORDS, broadcast_level=-1)
        returned = Moment.now()
        await receipt.stopped()
        stopped = Moment.now()
        await conversation.wait_idle()
    return _latency(model, began, returned, stopped)


async def bare(tree: Tree) -> Latency:
    """Of nested nurseries in one cancel scope."""
    model = StreamingModel(tree)
    scope, ended = trio.CancelScope(), trio.Event()

    async def root() -> None:
        with scope:
            await work(tree, model, "Begin.")
        ended.set()
        await work(Tree(tree.name), model, WORDS)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(root)
        await model.at_work.wait()
        await trio.testing.wait_all_tasks_blocked()
        began = Moment.now()
        scope.cancel()
        returned = Moment.now()
        await ended.wait()
        stopped = Moment.now()
    return _latency(model, began, returned, stopped)


def _latency(model: StreamingModel, began: Moment, returned: Moment, stopped: Moment) -> Latency:
    if model.told != WORDS:
        raise RuntimeError(f"the model was told {model.told!r}, not the user's words")
    return Latency(returned.since(began), stopped.since(began), model.called_at.since(began))


@dataclass(frozen=True)
class Comparison:
    """One measure of one tree: milliseconds, medians but for the worst, and the ratios that were taken run by run."""

    tree: str
    measure: str
    full_ms: float
    full_cpu_ms: float
    full_worst_ms: float
    bare_ms: float
    bare_cpu_ms: float
    ratio: float
    ratios: tuple[float, ...]
    """Of CPU time, the lowest first."""

    @classmethod
    def of(cls, tree: str, measure: str, pairs: Sequence[tuple[Moment, Moment]]) -> Comparison:
        """Of the times that callboard and bare trio took, in pairs."""
        ours, theirs = ([Moment(one.clock * 1e3, one.cpu * 1e3) for one in times] for times in zip(*pairs, strict=True))
        ratios = tuple(sorted(full.cpu / bare.cpu for full, bare in pairs))
        full, bare = _median(ours), _median(theirs)
        worst = max(one.clock for one in ours)
        return cls(tree, measure, *full, worst, *bare, statistics.median(ratios), ratios)

    def cell(self) -> str:
        """For the table."""
        ratio = f"ratio {self.ratio:.2f} ({self.ratios[0]:.2f} to {self.ratios[-1]:.2f})"
        return f"{self.full_ms:6.2f} ms, CPU {self.full_cpu_ms:.2f}, worst {self.full_worst_ms:.2f}, {ratio}"


def _median(times: Sequence[Moment]) -> Moment:
    return Moment(*map(statistics.median, zip(*times, strict=True)))


def compare(name: str, tree: Tree, runs: int) -> Iterator[Comparison]:
    """Runs the two in turn; the first pair warms up."""
    pairs = [(_measured(full, tree), _measured(bare, tree)) for _ in range(runs + 1)][1:]
    for number, measure in enumerate(Latency._fields):
        yield Comparison.of(name, measure, [(ours[number], theirs[number]) for ours, theirs in pairs])


def _measured(measure: Measure, tree: Tree) -> Latency:
    gc.collect()  # or a run pays for what the one before it has left
    return trio.run(measure, tree)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def print_row(call: Comparison, stopped: Comparison, next_call: Comparison) -> None:
    """One tree, in the table."""
    theirs = f"{stopped.bare_ms:6.2f} ms, CPU {stopped.bare_cpu_ms:.2f}"
    cells = f"{call.full_ms:6.2f} ms  {stopped.cell():62}{next_call.cell():62}{theirs}"
    print(f"{call.tree:12}{cells}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depths", type=_numbers, default="1,5,50", help="of the chains")
    parser.add_argument("--leaves", type=_numbers, default="1,100,1000", help="under one superior")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="one JSON object a line, in place of the table")
    options = parser.parse_args(arguments)
    trees = [(f"depth {depth}", chain(depth)) for depth in options.depths]
    trees += [(f"leaves {leaves}", fan(leaves)) for leaves in options.leaves]
    if not options.json:
        print(
            f"{'':12}{'the call':11}{'all old work has ended':52}{'the model is called again':52}the same in bare trio"
        )
    for name, tree in trees:
        figures = list(compare(name, tree, options.runs))
        if not options.json:
            print_row(*figures)
            continue
        for one in figures:
            print(json.dumps(asdict(one)), flush=True)
    if not options.json:
        print("aims: within 2 times bare trio; at depth 50 the model is called again within 5 ms")


if __name__ == "__main__":
    main()
