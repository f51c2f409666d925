"""Calls in threads: what stands, what is left behind, and what comes late."""

import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from callboard.runtime import thread_call
from callboard.runtime.nursery import open_nursery
from callboard.runtime.thread_call import ThreadCall

name: ContextVar[str] = ContextVar("name", default="none")


class Late:
    """An `on_late` that one can wait for."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[object](100)

    def __call__(self, result: object) -> None:
        self._send.send_nowait((result, name.get()))

    async def come(self) -> object:
        """What came, and in whose context variables."""
        return await self._receive.receive()

    @property
    def count(self) -> int:
        """How much has come and was not waited for."""
        return self._receive.statistics().current_buffer_used


class Gate:
    """Holds a thread until it is opened, twenty seconds at most."""

    def __init__(self) -> None:
        self._opened = threading.Event()
        self.open = self._opened.set

    def pass_through(self, error: BaseException | None = None) -> str:
        assert self._opened.wait(20)
        if error is not None:
            raise error
        return "through"


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Opened at the end in any case: no test leaves a thread."""
    made = Gate()
    yield made
    made.open()


async def cancel(
    function: Callable[[], object],
    call: ThreadCall,
    ladder: float = 0,
    on_abandoned: Callable[[], None] | None = None,
    then: tuple[Callable[[], object], ...] = (),
) -> list[object]:
    """The result of a call that is cancelled once its thread runs, if it has one.

    The first of `then` is called in the step of the cancellation, the next when all tasks wait again.
    """
    results: list[object] = []
    runs = trio.Event()

    def work() -> object:
        trio.from_thread.run_sync(runs.set)
        return function()

    async def run() -> None:
        results.append(await call.run(work, ladder=ladder, on_abandoned=on_abandoned))

    async with open_nursery() as nursery:
        nursery.start_soon(run)
        await runs.wait()
        nursery.cancel_scope.cancel()
        for do in then:
            do()
            with trio.CancelScope(shield=True):
                await wait_all_tasks_blocked()
    return results


def nothing() -> None:
    """Does nothing."""


async def test_it_returns_or_raises_what_the_function_does() -> None:
    assert await ThreadCall().run(lambda: 1, ladder=1) == 1
    with pytest.raises(ZeroDivisionError):
        await ThreadCall().run(lambda: 1 / 0, ladder=1)


async def test_a_thread_that_ends_within_the_ladder_comes_late_and_is_not_left_behind(gate: Gate) -> None:
    late, left = Late(), list[bool]()
    name.set("caller")
    call = ThreadCall(late)
    assert await cancel(gate.pass_through, call, 20, lambda: left.append(True), then=(nothing, gate.open)) == []
    assert late.count == 1
    assert await late.come() == ("through", "caller")
    assert not left


async def test_a_result_that_is_there_at_the_tick_of_the_cancellation_stands() -> None:
    call = ThreadCall()

    def wait_finished() -> None:  # the loop takes nothing from the thread meanwhile
        while not call._finished:
            time.sleep(0)

    assert await cancel(lambda: "there", call, then=(wait_finished,)) == ["there"]


async def test_an_error_that_is_there_at_the_tick_of_the_cancellation_stands_too() -> None:
    call = ThreadCall()

    def wait_finished() -> None:
        while not call._finished:
            time.sleep(0)

    with pytest.raises(ZeroDivisionError):
        await cancel(lambda: 1 / 0, call, then=(wait_finished,))


async def test_a_thread_that_asks_whether_it_is_cancelled_ends_within_the_ladder_with_nothing() -> None:
    def ask() -> None:
        while True:
            trio.from_thread.check_cancelled()

    late, left = Late(), list[bool]()
    assert await cancel(ask, ThreadCall(late), 20, lambda: left.append(True)) == []
    assert not left and late.count == 0


async def test_a_thread_that_does_not_end_is_left_behind_and_what_it_returns_comes_late(gate: Gate) -> None:
    left: list[bool] = []
    late = Late()
    name.set("caller")
    assert await cancel(gate.pass_through, ThreadCall(late), on_abandoned=lambda: left.append(True)) == []
    assert left == [True]
    gate.open()
    assert await late.come() == ("through", "caller")
    assert left == [True]


async def test_an_error_comes_late_as_well(gate: Gate) -> None:
    late, error = Late(), KeyError("late")
    await cancel(partial(gate.pass_through, error), ThreadCall(late))
    gate.open()
    assert await late.come() == (error, "none")


def test_what_comes_after_the_run_is_dropped(gate: Gate) -> None:
    late = Late()
    ended = threading.Event()

    def work() -> None:
        gate.pass_through()
        call.report(late, "after the run")
        ended.set()

    call = ThreadCall(late)
    assert trio.run(cancel, work, call) == []
    gate.open()
    assert ended.wait(20)
    assert late.count == 0


async def test_a_thread_that_was_left_behind_reports_to_nobody_and_does_not_notice(gate: Gate) -> None:
    reports: list[str] = []

    def work() -> str:
        gate.pass_through()
        call.report(reports.append, "late report")
        return "ended"

    late = Late()
    call = ThreadCall(late)
    await cancel(work, call)
    gate.open()
    assert await late.come() == ("ended", "none")
    assert not reports


async def test_within_the_ladder_it_may_still_report(gate: Gate) -> None:
    said: list[str] = []

    def work() -> None:
        gate.pass_through()
        call.report(said.append, "on my way")

    call = ThreadCall()
    await cancel(work, call, ladder=20, then=(nothing, gate.open))
    assert said == ["on my way"]


async def test_those_left_behind_take_no_places(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_call, "MOST_THREADS", 2)
    late = Late()
    for _ in range(5):
        await cancel(gate.pass_through, ThreadCall(late))
    with trio.fail_after(20):
        assert await ThreadCall().run(lambda: 1, ladder=1) == 1
    gate.open()
    for _ in range(5):
        await late.come()
    places = thread_call._all_places()
    assert (places.borrowed_tokens, places.total_tokens) == (0, 2)


async def test_one_that_waits_for_a_place_is_cancelled_there(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_call, "MOST_THREADS", 1)
    ran: list[bool] = []
    late = Late()
    async with open_nursery() as nursery:
        nursery.start_soon(partial(ThreadCall().run, gate.pass_through, ladder=0))
        await wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            scope.cancel()
            await ThreadCall(late).run(lambda: ran.append(True), ladder=20)
        assert scope.cancelled_caught
        with trio.move_on_after(0.01) as scope:
            await ThreadCall(late).run(lambda: ran.append(True), ladder=20)
        assert scope.cancelled_caught
        gate.open()
    assert not ran and late.count == 0
