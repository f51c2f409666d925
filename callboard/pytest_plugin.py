"""The plugin that pytest loads wherever callboard is installed: the fixture `every_interrupt_point` and its options.

It stands beside the packages, and imports none of them before a test asks for the fixture: runs of pytest that have
nothing to do with callboard must not pay for it.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from callboard.runtime.testing import InterruptReport


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds how much the fixture tries."""
    group = parser.getgroup("callboard", "callboard: interruptions at every moment")
    group.addoption(
        "--interrupt-seeds", type=_positive, default=1, metavar="N", help="schedules that are tried (default: 1)"
    )
    group.addoption(
        "--interrupt-sample", type=_positive, metavar="N", help="moments of a schedule that are tried (default: all)"
    )


@pytest.fixture(scope="session")
def every_interrupt_point(request: pytest.FixtureRequest) -> Callable[..., InterruptReport]:
    """`callboard.runtime.testing.every_interrupt_point` with the seeds and the sample of the command line."""
    every: Callable[..., InterruptReport] = import_module("callboard.runtime.testing").every_interrupt_point
    seeds, sample = (request.config.getoption(name) for name in ("--interrupt-seeds", "--interrupt-sample"))
    return partial(every, seeds=range(seeds), sample=sample)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)
