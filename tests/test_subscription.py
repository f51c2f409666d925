"""Subscriptions: readers that are slow, cancelled or gone, and what a burst costs."""

import gc
import weakref
from dataclasses import dataclass

import pytest
import trio
from trio.lowlevel import Task, checkpoint, current_task
from trio.testing import MockClock, wait_all_tasks_blocked

from callboard.runtime.subscription import Publisher, Subscription


class Item:
    """What is published."""


@dataclass(frozen=True)
class Major(Item):
    number: int


@dataclass(frozen=True)
class Minor(Item):
    number: int


@dataclass(frozen=True)
class Gap(Item):
    count: int


def bounded(capacity: float) -> Subscription[Item]:
    """A reader that keeps that many, and gives up minor items first."""
    return Subscription[Item](capacity, Minor, Gap)


async def read_all(subscription: Subscription[Item], read: list[Item]) -> None:
    async for item in subscription:
        read.append(item)


async def rest(subscription: Subscription[Item]) -> list[Item]:
    """All that a reader gets, the publisher being at its end."""
    return [item async for item in subscription]


async def test_a_reader_gets_what_is_published_from_its_making_on_in_order() -> None:
    publisher = Publisher[Item]()
    publisher.publish(Major(0))
    reader = publisher.subscribe(Subscription())
    publisher.publish(Major(1))
    publisher.publish(Major(2))
    publisher.close()
    assert await rest(reader) == [Major(1), Major(2)]


async def test_a_parked_reader_gets_each_item_as_it_comes(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    subscription, read = bounded(5), list[Item]()
    nursery.start_soon(read_all, subscription, read)
    for number in range(3):
        await wait_all_tasks_blocked()
        subscription.put(Major(number))
    subscription.close()
    await wait_all_tasks_blocked()
    assert read == [Major(0), Major(1), Major(2)]


async def test_a_full_buffer_drops_the_oldest_minor_item_first() -> None:
    subscription = bounded(3)
    for item in (Major(1), Minor(2), Minor(3), Major(4), Major(5)):
        subscription.put(item)
    subscription.close()
    assert await rest(subscription) == [Gap(2), Major(1), Major(4), Major(5)]


async def test_a_full_buffer_without_minor_items_drops_the_oldest() -> None:
    subscription = bounded(2)
    for number in range(4):
        subscription.put(Major(number))
    subscription.close()
    assert await rest(subscription) == [Gap(2), Major(2), Major(3)]


async def test_a_reader_that_knows_no_gap_just_misses_items() -> None:
    subscription = Subscription[Item](1)
    subscription.put(Major(1))
    subscription.put(Major(2))
    subscription.close()
    assert await rest(subscription) == [Major(2)]


@pytest.mark.parametrize("capacity", [1, 2, 7])
async def test_the_gaps_count_exactly_what_was_lost(autojump_clock: MockClock, capacity: int) -> None:
    subscription, read = bounded(capacity), list[Item]()
    for number in range(60):
        subscription.put(Minor(number) if number % 3 else Major(number))
        if number % 5 == 0:
            read.append(await anext(subscription))
    subscription.close()
    read += await rest(subscription)
    lost = sum(item.count for item in read if isinstance(item, Gap))
    assert lost == 60 - sum(not isinstance(item, Gap) for item in read) > 0


async def test_a_slow_reader_slows_nobody_down(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    publisher, read = Publisher[Item](), list[Item]()
    slow = publisher.subscribe(bounded(1))
    fast = publisher.subscribe(bounded(1))
    nursery.start_soon(read_all, fast, read)
    for number in range(3):
        await wait_all_tasks_blocked()
        publisher.publish(Major(number))
    publisher.close()
    await wait_all_tasks_blocked()
    assert read == [Major(0), Major(1), Major(2)]
    assert await rest(slow) == [Gap(2), Major(2)]


def test_a_reader_that_is_dropped_is_forgotten() -> None:
    publisher = Publisher[Item]()
    assert not publisher.wanted
    reader = publisher.subscribe(bounded(1))
    gone = weakref.ref(reader)
    assert publisher.wanted
    del reader
    gc.collect()
    assert gone() is None
    assert not publisher.wanted
    publisher.publish(Major(1))


def test_a_publisher_is_wanted_while_one_reader_is_left() -> None:
    publisher = Publisher[Item]()
    first, second = publisher.subscribe(bounded(1)), publisher.subscribe(bounded(1))
    del first
    gc.collect()
    assert publisher.wanted
    assert second is not None


async def test_closing_ends_a_parked_reader(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    publisher, ends = Publisher[Item](), list[str]()

    async def read() -> None:
        await read_all(publisher.subscribe(Subscription()), [])
        ends.append("reader")

    nursery.start_soon(read)
    await wait_all_tasks_blocked()
    publisher.close()
    await wait_all_tasks_blocked()
    assert ends == ["reader"]


async def test_who_subscribes_after_the_end_reads_nothing() -> None:
    publisher = Publisher[Item]()
    publisher.close()
    assert await rest(publisher.subscribe(Subscription())) == []


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("buffered", [[], [Major(1)]])
async def test_a_step_is_a_point_of_cancellation_and_takes_nothing(closed: bool, buffered: list[Item]) -> None:
    subscription = bounded(3)
    for item in buffered:
        subscription.put(item)
    if closed:
        subscription.close()
    with trio.CancelScope() as scope:
        scope.cancel()
        await anext(subscription)
    assert scope.cancelled_caught
    subscription.close()
    assert await rest(subscription) == buffered


async def test_a_reader_who_causes_what_it_reads_starves_nobody(nursery: trio.Nursery) -> None:
    subscription, ran = Subscription[Item](), trio.Event()

    async def run() -> None:
        ran.set()

    nursery.start_soon(run)
    subscription.put(Major(0))
    for number in range(1000):
        await anext(subscription)
        subscription.put(Major(number))
        if ran.is_set():
            return
    raise AssertionError("the other task never ran")


@pytest.mark.parametrize("cancelled_first", [False, True])
async def test_a_reader_cancelled_at_the_tick_of_a_put_loses_nothing(
    autojump_clock: MockClock, nursery: trio.Nursery, cancelled_first: bool
) -> None:
    subscription, read = bounded(3), list[Item]()
    with trio.CancelScope(shield=True):
        nursery.start_soon(read_all, subscription, read)
        await wait_all_tasks_blocked()
        if cancelled_first:
            nursery.cancel_scope.cancel()
        subscription.put(Major(1))
        nursery.cancel_scope.cancel()
        await wait_all_tasks_blocked()
        subscription.close()
        assert read + await rest(subscription) == [Major(1)]


async def test_two_tasks_cannot_read_one_subscription(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    subscription = bounded(3)
    nursery.start_soon(read_all, subscription, [])
    await wait_all_tasks_blocked()
    with pytest.raises(RuntimeError, match="two tasks read one subscription; make one for each"):
        await anext(subscription)
    subscription.close()


class Steps(trio.abc.Instrument):
    """Counts the steps of one task."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.count = 0

    def before_task_step(self, task: Task) -> None:
        self.count += task is self.task


async def test_a_burst_wakes_its_reader_seldom() -> None:
    subscription = Subscription[Item]()
    steps = Steps(current_task())

    async def burst() -> None:
        for number in range(1000):
            subscription.put(Major(number))
            await checkpoint()
        subscription.close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(burst)
        trio.lowlevel.add_instrument(steps)
        assert len(await rest(subscription)) == 1000
        trio.lowlevel.remove_instrument(steps)
    assert steps.count < 500


async def test_items_come_though_a_clock_that_a_test_moves_stands_still(
    mock_clock: MockClock, nursery: trio.Nursery
) -> None:
    subscription, read = bounded(5), list[Item]()
    nursery.start_soon(read_all, subscription, read)
    for number in range(3):
        await wait_all_tasks_blocked()
        subscription.put(Major(number))
    await wait_all_tasks_blocked()
    assert (len(read), mock_clock.current_time()) == (3, 0)
    subscription.close()
