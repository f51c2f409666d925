"""Stragglers: async calls that were cancelled and do not end are reported, and no other."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from typing import TypeVar

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime import straggler
from callboard.runtime.nursery import open_nursery
from callboard.runtime.straggler import StragglerWatch

Result = TypeVar("Result")
name: ContextVar[str] = ContextVar("name", default="none")


class Reports:
    """Keeps when it was called, and in whose context variables."""

    def __init__(self) -> None:
        self.all: list[tuple[float, str]] = []

    def __call__(self) -> None:
        self.all.append((trio.current_time(), name.get()))


class Spawned(trio.abc.Instrument):
    """Counts the tasks that are started."""

    def __init__(self) -> None:
        self.count = 0

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


async def swallow(seconds: float) -> str:
    """Ends that many seconds after it was begun, whatever happens."""
    until = trio.current_time() + seconds
    while trio.current_time() < until:
        with trio.CancelScope(shield=True, deadline=until):
            await trio.sleep_forever()
    return "ended"


async def swallow_in_nursery(seconds: float) -> str:
    """The same in a task of its own."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(swallow, seconds)
    return "ended"


async def run_reported(call: Callable[[], Awaitable[Result]], *, after: float, report: Callable[[], None]) -> Result:
    with StragglerWatch(after, report):
        return await call()


async def add_one(number: int) -> int:
    await trio.lowlevel.checkpoint()
    return number + 1


async def test_a_call_returns_what_it_returns_and_starts_no_task() -> None:
    spawned, reports = Spawned(), Reports()
    trio.lowlevel.add_instrument(spawned)
    assert await run_reported(partial(add_one, 1), after=1, report=reports) == 2
    assert (spawned.count, reports.all) == (0, [])


async def test_a_call_that_ends_when_it_is_cancelled_starts_no_task_either(autojump_clock: MockClock) -> None:
    spawned, reports = Spawned(), Reports()
    trio.lowlevel.add_instrument(spawned)
    with trio.move_on_after(1) as scope:
        await run_reported(trio.sleep_forever, after=1, report=reports)
    await trio.sleep(5)
    assert scope.cancelled_caught
    assert (spawned.count, reports.all) == (0, [])


@pytest.mark.parametrize("call", [swallow, swallow_in_nursery])
async def test_one_that_does_not_end_is_reported_once_in_time_and_waited_for(
    autojump_clock: MockClock, call: Callable[[float], Awaitable[str]]
) -> None:
    reports = Reports()
    name.set("caller")
    start = trio.current_time()
    with trio.CancelScope(deadline=start + 1):
        assert await run_reported(partial(call, 9), after=2, report=reports) == "ended"
    assert reports.all == [(start + 3, "caller")]
    assert trio.current_time() == start + 9


async def test_one_that_ends_in_time_is_not_reported_and_holds_nobody_up(autojump_clock: MockClock) -> None:
    reports, started = Reports(), trio.current_time()
    async with open_nursery() as nursery:
        nursery.start_soon(partial(run_reported, partial(swallow, 2), after=2, report=reports))
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert trio.current_time() - started == 2
    await trio.sleep(5)
    assert reports.all == []


async def test_one_that_begins_cancelled_is_reported_too(autojump_clock: MockClock) -> None:
    reports = Reports()
    with trio.CancelScope() as scope:
        scope.cancel()
        await run_reported(partial(swallow, 3), after=2, report=reports)
    assert len(reports.all) == 1


async def test_one_that_is_cancelled_twice_is_reported_once(autojump_clock: MockClock) -> None:
    reports = Reports()
    async with open_nursery() as nursery:
        with trio.CancelScope() as outer, trio.CancelScope() as inner:
            nursery.start_soon(cancel_twice, outer, inner)
            await run_reported(partial(swallow, 9), after=2, report=reports)
    assert len(reports.all) == 1


async def cancel_twice(outer: trio.CancelScope, inner: trio.CancelScope) -> None:
    """The shield takes the cancellation off the inner scope in between."""
    outer.cancel()
    inner.shield = True
    inner.shield = False


async def test_an_error_comes_out_as_itself_with_what_it_came_from() -> None:
    async def clean_up_badly() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise KeyError("no")

    with trio.CancelScope() as scope, pytest.raises(KeyError) as failed:
        scope.cancel()
        await run_reported(clean_up_badly, after=1, report=Reports())
    assert isinstance(failed.value.__context__, trio.Cancelled)


async def test_an_error_of_the_report_ends_the_nursery_of_the_task(autojump_clock: MockClock) -> None:
    def refuse() -> None:
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        async with open_nursery() as nursery:
            nursery.start_soon(partial(run_reported, partial(swallow, 9), after=2, report=refuse))
            await trio.sleep(1)
            nursery.cancel_scope.cancel()


async def test_a_scope_inside_the_block_is_none_of_the_watchs(autojump_clock: MockClock) -> None:
    reports = Reports()
    with StragglerWatch(2, reports):
        with trio.move_on_after(1):
            await trio.sleep_forever()
        await trio.sleep(9)
    assert reports.all == []


async def test_a_block_that_is_handed_over_to_another_nursery_is_watched_there(autojump_clock: MockClock) -> None:
    reports = Reports()

    async def begin(task_status: trio.TaskStatus[None]) -> None:
        with StragglerWatch(2, reports):
            task_status.started()
            await swallow(9)

    async with open_nursery() as nursery:
        await nursery.start(begin)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert len(reports.all) == 1


async def test_a_block_in_the_main_task_of_a_run_is_watched_too(autojump_clock: MockClock) -> None:
    reports = Reports()

    async def main() -> None:
        with trio.move_on_after(1):
            await run_reported(partial(swallow, 9), after=2, report=reports)

    await trio.to_thread.run_sync(partial(trio.run, main, clock=MockClock(autojump_threshold=0)))
    assert len(reports.all) == 1


async def test_the_clean_up_of_many_that_are_cancelled_together_is_reported_for_each(
    autojump_clock: MockClock,
) -> None:
    reports = Reports()
    async with open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(partial(run_reported, partial(swallow, 9), after=2, report=reports))
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert len(reports.all) == 5


async def test_with_a_trio_that_tells_nothing_calls_run_all_the_same(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(straggler, "HEARD", False)
    reports = Reports()
    with trio.move_on_after(1):
        assert await run_reported(partial(swallow, 9), after=2, report=reports) == "ended"
    assert reports.all == []


def test_this_trio_tells() -> None:
    assert straggler.HEARD
