"""Runs the trials of all peers, or of those that are named, and writes the page; `--render` only writes the page."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
from collections.abc import Iterator
from typing import Any

from .environment import NotInstalled, interpreter
from .outcome import NotDriven, outcome, run_trial
from .roster import PEERS, Peer
from .table import PAGE, RESULTS, page, read_results, render, write_results


def main() -> None:
    """The program. Trials of peers that are not named keep what was recorded of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("peers", nargs="*", metavar="PEER", help=", ".join(peer.key for peer in PEERS))
    parser.add_argument("--render", action="store_true", help="run nothing: write the page from what is recorded")
    options = parser.parse_args()
    known = {peer.key for peer in PEERS}
    if unknown := sorted(set(options.peers) - known):
        parser.error(f"no such peer: {', '.join(unknown)}")
    if not options.render:
        _record(set(options.peers) or known)
    results = read_results()
    PAGE.write_text(page(results), encoding="utf-8")
    print(render(results))


def _record(wanted: set[str]) -> None:
    """Runs the trials that are wanted, and keeps the others."""
    trials = [trial for peer in PEERS if peer.key in wanted for trial in _trials(peer)]
    kept = read_results()["trials"] if RESULTS.exists() else []
    trials += [trial for trial in kept if trial["peer"] not in wanted]
    order = [peer.key for peer in PEERS]
    trials.sort(key=lambda trial: order.index(trial["peer"]))
    write_results(
        {
            "python": platform.python_version(),
            "machine": f"{os.cpu_count()} cores under {platform.system()}",
            "trials": trials,
        }
    )


def _trials(peer: Peer) -> Iterator[dict[str, Any]]:
    for mechanism in peer.mechanisms:
        print(f"{peer.name}: {mechanism}", flush=True)
        trial: dict[str, Any] = {"peer": peer.key, "mechanism": mechanism, "date": datetime.date.today().isoformat()}
        try:
            trial["outcome"] = outcome(run_trial(interpreter(peer), peer.key, mechanism))
        except (NotInstalled, NotDriven) as error:
            trial["reason"] = str(error)
        yield trial


if __name__ == "__main__":
    main()
