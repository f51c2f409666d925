"""The nursery: one error leaves as itself, several as a group, cancellations go where they belong."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from callboard.runtime.nursery import open_nursery, raise_failures


async def fail(error: Exception) -> None:
    raise error


async def fail_on_cancel(error: Exception) -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise error


async def test_the_block_ends_when_its_tasks_have(autojump_clock: MockClock) -> None:
    async with open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 3)
    assert trio.current_time() == 3


async def test_a_single_error_of_a_task_leaves_as_itself() -> None:
    error = KeyError("k")
    with pytest.raises(KeyError) as caught:
        async with open_nursery() as nursery:
            nursery.start_soon(fail, error)
            await trio.sleep_forever()
    assert caught.value is error


async def test_a_single_error_in_the_block_cancels_the_tasks_and_leaves_as_itself() -> None:
    error = KeyError("k")
    with pytest.raises(KeyError) as caught:
        async with open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            raise error
    assert caught.value is error


async def test_several_errors_leave_as_one_flat_group() -> None:
    with pytest.raises(ExceptionGroup, match="several failed together") as caught:
        async with open_nursery() as nursery:
            nursery.start_soon(fail_on_cancel, KeyError("k"))
            nursery.start_soon(fail_on_cancel, ValueError("v"))
            await wait_all_tasks_blocked()
            raise TypeError("t")
    assert {type(error) for error in caught.value.exceptions} == {KeyError, ValueError, TypeError}


async def test_a_cancellation_from_outside_goes_on(autojump_clock: MockClock) -> None:
    with trio.move_on_after(1) as scope:
        async with open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            await trio.sleep_forever()
    assert scope.cancelled_caught


async def test_after_a_cancellation_from_outside_the_code_behind_the_block_does_not_run() -> None:
    went_on = False
    with trio.CancelScope() as scope:
        async with open_nursery():
            scope.cancel()
            await trio.sleep_forever()
        went_on = True
    assert (scope.cancelled_caught, went_on) == (True, False)


async def test_a_cancellation_from_outside_goes_on_from_the_end_of_the_block(autojump_clock: MockClock) -> None:
    with trio.move_on_after(1) as scope:
        async with open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
    assert scope.cancelled_caught


async def test_an_error_beside_a_cancellation_from_outside_is_not_lost(autojump_clock: MockClock) -> None:
    with trio.move_on_after(1), pytest.raises(KeyError):
        async with open_nursery() as nursery:
            nursery.start_soon(fail_on_cancel, KeyError("k"))
            await trio.sleep_forever()


async def test_a_nursery_that_cancels_itself_ends_its_block_as_trios_does() -> None:
    try:
        async with open_nursery() as nursery:
            nursery.cancel_scope.cancel()
            await trio.sleep_forever()
    except trio.Cancelled:
        pytest.fail("the nursery's own cancellation left its block")


async def test_a_nursery_that_is_cancelled_at_the_end_of_its_block_just_ends() -> None:
    async with open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        nursery.cancel_scope.cancel()


def test_no_failure_raises_nothing() -> None:
    raise_failures([])


async def test_beside_other_failures_a_cancelled_is_not_raised() -> None:
    failures: list[BaseException] = [KeyError("k")]
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as cancelled:
            failures.insert(0, cancelled)
            with pytest.raises(KeyError):
                raise_failures(failures)
            raise


async def test_only_cancelled_is_raised_as_it_is() -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as cancelled:
            with pytest.raises(trio.Cancelled) as caught:
                raise_failures([cancelled])
            assert caught.value is cancelled
            raise
