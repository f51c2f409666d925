"""Every moment of every scenario with every injection: `python -m tests.prove --seeds 50`.

Prints, in Markdown, a row for each scenario as it is done, where the moments lay, and for each invariant how many runs
held it. Exits with 1 if one was broken; also if, with all moments of all scenarios, none lay in some kind of step.
"""

import argparse
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, product
from multiprocessing import Pool

from callboard.runtime.moments import STEPS
from callboard.runtime.referee import Invariant
from callboard.runtime.testing import InterruptReport, InvariantBroken, every_interrupt_point, fail
from tests.injections import INJECTIONS
from tests.scenarios import SCENARIOS

WITH_FAILURES = {**INJECTIONS, "a leaf fails": fail(), "boss fails": fail("boss")}
PAIRS_A_PROCESS = 50
"""Pairs of a scenario and an injection after which a process makes room for a new one."""


@dataclass
class Proof:
    """What was run, and what broke."""

    report: InterruptReport = field(default_factory=InterruptReport)
    broken: list[tuple[str, frozenset[Invariant]]] = field(default_factory=list)
    """What broke, with the scenario, the injection, the seed and the moment; and which invariants that were."""

    @property
    def empty_steps(self) -> list[str]:
        """The kinds of step in which no moment lay."""
        return [step for step in STEPS if not any(found == step for _, found in self.report.moments)]

    def add(self, other: "Proof") -> None:
        """Counts the other's runs too."""
        self.report.add(other.report)
        self.broken += other.broken


def prove(pair: tuple[str, str], seeds: int, sample: int | None) -> Proof:
    """One injection into one scenario."""
    name, injection = pair
    try:
        return Proof(
            every_interrupt_point(
                SCENARIOS[name], WITH_FAILURES[injection], seeds=range(seeds), sample=sample, limit=60
            )
        )
    except InvariantBroken as error:
        invariants = frozenset(breach.invariant for breach in error.breaches)
        return Proof(InterruptReport(seeds=seeds), [(f"{name}, {injection}: {error}", invariants)])


def prove_all(arguments: argparse.Namespace) -> Iterator[tuple[str, Proof]]:
    """The scenarios one after another, each with all injections into it."""
    pairs = list(product(arguments.scenarios, arguments.injections))
    one = partial(prove, seeds=arguments.seeds, sample=arguments.sample)
    with Pool(arguments.processes, maxtasksperchild=PAIRS_A_PROCESS) as pool:
        done = zip(pairs, pool.imap(one, pairs), strict=True)
        for name, group in groupby(done, key=lambda entry: entry[0][0]):
            total = Proof()
            for _, proof in group:
                total.add(proof)
            yield name, total


def row(name: str, report: InterruptReport, outcomes: Sequence[str]) -> str:
    """A line of the table of scenarios."""
    counts = [report.runs, *(report.outcomes[outcome] for outcome in outcomes)]
    return " | ".join([f"| {name:34}", *(f"{count:9}" for count in counts)]) + " |"


def print_proof(proof: Proof, seconds: float, arguments: argparse.Namespace) -> None:
    """What all scenarios together showed."""
    runs = proof.report.runs
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"\n{runs} runs in {seconds:.0f} s on {arguments.processes} processes: {runs / seconds:.0f} a second.")
    print(f"{len(arguments.scenarios)} scenarios, {len(arguments.injections)} injections, {arguments.seeds} seeds.")
    print(f"The largest process took {peak} MiB.\n\nWhere the moments lay:\n\n```text")
    print(f"{proof.report.table(roles='a role')}\n```\n\n| invariant | runs | |\n|---|---|---|")
    for invariant in Invariant:
        broken = sum(invariant in invariants for _, invariants in proof.broken)
        print(f"| {invariant.value} | {runs} | {f'broken by {broken} pairs' if broken else 'held'} |")
    for what, _ in proof.broken:
        print(f"\n{what}")


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2, help="seeds from 0 on (default 2)")
    parser.add_argument("--sample", type=int, help="moments of a seed, spread evenly; all of them unless given")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--scenarios", nargs="+", choices=list(SCENARIOS), default=list(SCENARIOS), metavar="NAME")
    parser.add_argument(
        "--injections", nargs="+", choices=list(WITH_FAILURES), default=list(WITH_FAILURES), metavar="NAME"
    )
    return parser.parse_args()


def main() -> None:
    """Prints the tables."""
    arguments = parsed()
    started, total = time.monotonic(), Proof()
    outcomes = ["seen", "told", "missed", "started", "waiting", "failed", "failed while cut", "handled", "met nobody"]
    print("| scenario | runs |", *(f"{outcome} |" for outcome in outcomes))
    print("|---" * (len(outcomes) + 2) + "|")
    for name, proof in prove_all(arguments):
        print(row(name, proof.report, outcomes), flush=True)
        total.add(proof)
    print(row("all", total.report, outcomes))
    print_proof(total, time.monotonic() - started, arguments)
    if total.empty_steps:
        print(f"\nNo moment lay in: {', '.join(total.empty_steps)}.")
    complete = arguments.sample is None and arguments.scenarios == list(SCENARIOS)
    sys.exit(1 if total.broken or (complete and total.empty_steps) else 0)


if __name__ == "__main__":
    main()
