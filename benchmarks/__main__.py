"""Runs every `bench_*` module of this folder in the order of their names, or those named as arguments."""

import importlib
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path


def names() -> list[str]:
    """The names of the benchmarks that stand in this folder, in order, without their `bench_`."""
    modules = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return sorted(name.removeprefix("bench_") for name in modules if name.startswith("bench_"))


def main(wanted: Sequence[str]) -> None:
    """Run the benchmarks named in `wanted`, or all; an unknown name, or none to run, ends the program."""
    known = names()
    if unknown := sorted(set(wanted) - set(known)):
        sys.exit(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(known) or 'none'}")
    if not known:
        sys.exit("benchmarks/ holds no bench_*.py yet")
    for name in wanted or known:
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.bench_{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
