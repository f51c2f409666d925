"""A seeded run: an async function on a virtual clock, under a scheduler whose choices depend on a seed alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import TypeVar

import trio
import trio._core._run as trio_run
from trio.testing import MockClock

from .ids import Ids, current_ids

T = TypeVar("T")
EPOCH = 1_700_000_000_000_000
"""What the virtual clock's zero is called in ids and times, in microseconds."""
TIME_LIMIT = 600.0
"""Virtual seconds after which a run counts as hung."""


def run_seeded(
    main: Callable[[], Awaitable[T]],
    seed: int = 0,
    instruments: Sequence[trio.abc.Instrument] = (),
    limit: float = TIME_LIMIT,
) -> T:
    """Runs an async function on a virtual clock; the order of tasks, the ids and the times depend on the seed alone.

    Waiting costs no time: when every task waits, the clock jumps. Raises what the function raises, trio.TooSlowError
    after `limit` virtual seconds, RuntimeError for a trio whose scheduler can no longer be seeded. What waits behind a
    shield after twice the limit is cancelled all the same: a run always ends.
    """

    async def limited() -> T:
        trio.lowlevel.spawn_system_task(_lift_shields, trio.lowlevel.current_task(), 2 * limit)
        with trio.fail_after(limit):
            return await main()

    if not hasattr(trio_run, "_ALLOW_DETERMINISTIC_SCHEDULING") or not hasattr(trio_run, "_r"):
        raise RuntimeError(f"the scheduler of trio {trio.__version__} cannot be seeded the way this module knows")
    seeded, state = trio_run._ALLOW_DETERMINISTIC_SCHEDULING, trio_run._r.getstate()
    trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]  # a constant of trio's, for tests to set
    trio_run._r.seed(seed)
    clock = MockClock(autojump_threshold=0)
    variables = copy_context()
    variables.run(current_ids.set, Ids(lambda: EPOCH + round(clock.current_time() * 1_000_000)))
    try:
        return variables.run(partial(trio.run, limited, clock=clock, instruments=instruments))
    finally:
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING = seeded  # type: ignore[misc]  # as above
        trio_run._r.setstate(state)


async def _lift_shields(task: trio.lowlevel.Task, after: float) -> None:
    await trio.sleep(after)
    while True:
        waiting = [task]
        for below in waiting:
            waiting += [child for nursery in below.child_nurseries for child in nursery.child_tasks]
            status: trio_run.CancelStatus | None = below._cancel_status
            while status is not None:
                status._scope.shield = False
                status = status._parent
        await trio.sleep(1)
