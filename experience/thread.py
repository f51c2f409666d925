"""Thread: where files are read and written, so that no conversation waits for a disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

from .reading import Check

T = TypeVar("T")


async def in_thread(work: Callable[[Check], T]) -> T:
    """What the work returns, in a thread. It gets a function to call between two files.

    Cancelled: the thread ends at the next of these calls, and is waited for. Raises what the work raises.
    """
    return await trio.to_thread.run_sync(work, trio.from_thread.check_cancelled)
