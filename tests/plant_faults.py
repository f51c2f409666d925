"""Puts each fault into the core and counts the runs until it is caught: `python -m tests.plant_faults`.

It is not told where to look. All faults are looked for on one walk: each step of it takes the next scenario with
another injection and another moment, so that a few dozen runs have been everywhere. Prints a table; exits with 1 if a
fault is not caught. `--write` puts the table into docs/planted-faults.md.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from itertools import count
from math import e
from pathlib import Path

import pytest

from callboard.runtime.referee import Invariant
from callboard.runtime.testing import InvariantBroken, count_moments, run_interrupted
from tests.injections import INJECTIONS
from tests.planted_faults import FAULTS, Fault
from tests.scenarios import SCENARIOS

PAGE = Path(__file__).parent.parent / "docs" / "planted-faults.md"
LIMIT = 60
"""Virtual seconds after which a run counts as hung."""
UNDISTURBED = -1
GOLDEN = 0.6180339887498949
"""Multiples of it lie evenly between whole numbers, however many there are."""


@dataclass(frozen=True)
class Finding:
    """A line of the table."""

    fault: str
    runs: int
    """Until it was caught, that one included."""
    seed: int
    scenario: str
    injection: str
    moment: int
    """-1 if it shows without an interruption."""
    invariant: str
    """The name of the one that caught it."""

    def __str__(self) -> str:
        return f"| {' | '.join(map(str, astuple(self)))} |"


HEAD = [f"| {' | '.join(field.name for field in fields(Finding))} |", f"|{'---|' * len(fields(Finding))}"]


def walk() -> Iterator[tuple[int, str, str, float]]:
    """Seed, scenario, injection, and which part of the scenario's moments lies before the chosen one; without end."""
    scenarios, injections = list(SCENARIOS), list(INJECTIONS)
    for seed in count():
        for turn in range(len(injections)):
            for number, scenario in enumerate(scenarios):
                place = seed * len(injections) + turn
                part = (place * GOLDEN + number * e) % 1  # both of them, or each injection would have its moment
                yield seed, scenario, injections[(turn + number) % len(injections)], part


def find(fault: Fault, runs: int) -> Finding | None:
    """The first run of the walk that shows the fault; None if `runs` of them do not."""
    moments: dict[tuple[int, str], int] = {}
    done = 0
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        for seed, scenario, injection, part in walk():
            moment = UNDISTURBED
            try:
                if (seed, scenario) not in moments:
                    done += 1
                    moments[seed, scenario] = count_moments(SCENARIOS[scenario], seed, LIMIT)
                done += 1
                moment = int(part * moments[seed, scenario])
                run_interrupted(SCENARIOS[scenario], INJECTIONS[injection], seed, moment, LIMIT)
            except InvariantBroken as broken:
                caught_by = _named(fault, broken).name
                return Finding(fault.__name__, done, seed, scenario, injection, moment, caught_by)
            if done >= runs:
                return None
    raise AssertionError("the walk has no end")


def _named(fault: Fault, broken: InvariantBroken) -> Invariant:
    """The invariant that was made to catch it, if that one did; else the first that was broken."""
    found = [breach.invariant for breach in broken.breaches]
    return next((invariant for invariant in found if invariant in FAULTS.get(fault, ())), found[0])


def read() -> list[Finding]:
    """The table of the page."""
    rows = re.findall(
        r"^\| (\w+) \| (\d+) \| (\d+) \| (.+) \| (.+) \| (-?\d+) \| (\w+) \|$", PAGE.read_text("utf-8"), re.M
    )
    return [Finding(f, int(runs), int(seed), s, i, int(moment), n) for f, runs, seed, s, i, moment, n in rows]


def write(findings: list[Finding]) -> None:
    """Replaces the table of the page."""
    table = "\n".join([*HEAD, *map(str, findings)]) + "\n"
    page = PAGE.read_text("utf-8")
    PAGE.write_text(re.sub(r"(?m)(^\| fault .*\n)(^\|.*\n)+", lambda _: table, page, count=1), "utf-8")


def main() -> None:
    """Prints the table, a line as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="of one fault, before it counts as not caught")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    arguments = parser.parse_args()
    findings, missed = [], []
    print(*HEAD, sep="\n")
    for fault in FAULTS:
        finding = find(fault, arguments.runs)
        if finding is None:
            missed.append(fault.__name__)
        else:
            findings.append(finding)
        print(finding or f"| {fault.__name__} | not caught in {arguments.runs} runs |", flush=True)
    if arguments.write and not missed:
        write(findings)
    sys.exit(f"not caught: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
