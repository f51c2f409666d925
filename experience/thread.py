"""Thread: where files are read and written, so that no conversation waits for a disk.

The rule to know: a clock that jumps when all tasks wait would jump while a thread works. Under such a clock, which is
one of tests, there is no thread: a seeded run depends on its seed alone.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeVar

import trio

from .reading import Check

T = TypeVar("T")


async def in_thread(work: Callable[[Check], T]) -> T:
    """What the work returns, in a thread. It gets a function to call between two files.

    Cancelled: the thread ends at the next of these calls, and is waited for. Raises what the work raises.
    """
    if getattr(trio.lowlevel.current_clock(), "autojump_threshold", inf) < inf:
        await trio.lowlevel.checkpoint()
        return work(_go_on)
    return await trio.to_thread.run_sync(work, trio.from_thread.check_cancelled)


def _go_on() -> None:
    """In the place of a check: nobody can cancel what is one step."""
