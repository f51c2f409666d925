"""Every moment of every scenario with every injection: `python -m tests.prove --seeds 50`.

Prints a row for each scenario, and for each invariant how many runs held it. Exits with 1 at the first that broke.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from callboard.runtime.referee import Invariant
from callboard.runtime.testing import InterruptReport, InvariantBroken, every_interrupt_point
from tests.injections import INJECTIONS
from tests.scenarios import SCENARIOS

Row = tuple[str, InterruptReport, list[str]]


def prove(name: str, seeds: int, injections: Sequence[str]) -> Row:
    """The injections into one scenario."""
    total, broken = InterruptReport(seeds=seeds), []
    for injection in injections:
        try:
            report = every_interrupt_point(SCENARIOS[name], INJECTIONS[injection], seeds=range(seeds), limit=60)
        except InvariantBroken as error:
            broken.append(f"{injection}: {error}")
        else:
            total.runs += report.runs
            total.outcomes += report.outcomes
    return name, total, broken


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--injections", nargs="*", choices=list(INJECTIONS), default=list(INJECTIONS))
    arguments = parser.parse_args()
    started, runs = time.monotonic(), 0
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    with ProcessPoolExecutor(arguments.processes) as pool:
        for name, report, broken in pool.map(
            partial(prove, seeds=arguments.seeds, injections=arguments.injections), SCENARIOS
        ):
            print(f"{name:38}{report}", *broken, sep="\n    ", flush=True)
            runs, outcomes, failures = runs + report.runs, outcomes + report.outcomes, failures + broken
    print(f"{runs} runs in {time.monotonic() - started:.0f} s: {dict(sorted(outcomes.items()))}")
    for invariant in Invariant:
        held = "held in all runs" if not failures else "see above"
        print(f"{invariant.value:120} {arguments.seeds} seeds, {runs} runs, {held}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
