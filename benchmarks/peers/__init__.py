"""What peers do when a user speaks in the middle of a running tool: a trial for each, and the table of their outcomes.

`python -m benchmarks.peers` makes an environment for each peer, runs them and writes `docs/peers.md`; `--render` only
writes the page anew from `results.json`. Among the other benchmarks this one shows what is recorded and runs nothing.
"""

from collections.abc import Sequence

from .table import read_results, render


def main(arguments: Sequence[str]) -> None:
    """Prints the recorded table."""
    print(render(read_results()))
