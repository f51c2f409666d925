"""Runs every benchmark of this folder in the order of their names, or those named as arguments."""

import importlib
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path


def names() -> list[str]:
    """The modules of this folder that are benchmarks: all that have no leading underscore."""
    modules = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return sorted(name for name in modules if not name.startswith("_"))


def main(wanted: Sequence[str]) -> None:
    """Runs the benchmarks named in `wanted`, or all; an unknown name ends the program."""
    known = names()
    if unknown := sorted(set(wanted) - set(known)):
        sys.exit(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(known)}")
    for name in wanted or known:
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main([])


if __name__ == "__main__":
    main(sys.argv[1:])
