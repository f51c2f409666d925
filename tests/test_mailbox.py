"""Mailboxes: order, recall, waiting for room, and no item lost or doubled whatever is cancelled."""

from contextlib import suppress
from random import Random

import pytest
import trio
from trio._core import _run
from trio.lowlevel import checkpoint
from trio.testing import MockClock, assert_checkpoints, assert_no_checkpoints, wait_all_tasks_blocked

from callboard.runtime.mailbox import Mailbox, MailboxStatistics

SEEDS = 150


def filled(*keys: str, capacity: float = 10) -> Mailbox[str]:
    """A mailbox that holds each key as its own item."""
    mailbox: Mailbox[str] = Mailbox(capacity)
    for key in keys:
        mailbox.put_nowait(key, key)
    return mailbox


def drained(mailbox: Mailbox[str]) -> list[str]:
    """All that a mailbox would still give its receiver."""
    return [mailbox.get_nowait() for _ in range(len(mailbox))]


async def take_one(mailbox: Mailbox[str], taken: list[str]) -> None:
    taken.append(await mailbox.get())


async def test_items_come_out_in_the_order_in_which_they_were_put() -> None:
    mailbox = filled("a", "b")
    await mailbox.put("c", "c")
    assert [await mailbox.get(), mailbox.get_nowait(), await mailbox.get()] == ["a", "b", "c"]


async def test_a_parked_receiver_is_woken_by_a_put(nursery: trio.Nursery) -> None:
    mailbox, taken = filled(), list[str]()
    nursery.start_soon(take_one, mailbox, taken)
    await wait_all_tasks_blocked()
    mailbox.put_nowait("a", "a")
    await wait_all_tasks_blocked()
    assert taken == ["a"]


def test_an_empty_mailbox_has_nothing_to_take_at_once() -> None:
    with pytest.raises(trio.WouldBlock):
        filled().get_nowait()


def test_a_waiting_item_is_recalled_once() -> None:
    mailbox = filled("a", "b", "c")
    assert mailbox.recall("b")
    assert not mailbox.recall("b")
    assert drained(mailbox) == ["a", "c"]


def test_an_item_that_was_taken_or_never_came_is_not_recalled() -> None:
    mailbox = filled("a")
    mailbox.get_nowait()
    assert not mailbox.recall("a")
    assert not mailbox.recall("b")


async def test_the_item_of_a_sender_in_line_is_recalled_and_its_put_returns(nursery: trio.Nursery) -> None:
    mailbox = filled("a", capacity=1)
    nursery.start_soon(mailbox.put, "b", "b")
    nursery.start_soon(mailbox.put, "c", "c")
    await wait_all_tasks_blocked()
    assert mailbox.recall("b")
    await wait_all_tasks_blocked()
    assert mailbox.statistics().senders_waiting == 1
    assert [mailbox.get_nowait(), mailbox.get_nowait()] == ["a", "c"]


async def test_a_recall_frees_the_place_for_the_first_in_line(nursery: trio.Nursery) -> None:
    mailbox = filled("a", capacity=1)
    nursery.start_soon(mailbox.put, "b", "b")
    await wait_all_tasks_blocked()
    assert mailbox.recall("a")
    assert drained(mailbox) == ["b"]


async def test_an_item_is_recalled_at_the_tick_of_its_put_to_a_parked_receiver(nursery: trio.Nursery) -> None:
    mailbox, taken = filled(), list[str]()
    nursery.start_soon(take_one, mailbox, taken)
    await wait_all_tasks_blocked()
    mailbox.put_nowait("a", "a")
    assert mailbox.recall("a")
    await wait_all_tasks_blocked()
    assert taken == []
    mailbox.put_nowait("b", "b")
    await wait_all_tasks_blocked()
    assert taken == ["b"]


@pytest.mark.parametrize("cancelled_first", [False, True])
async def test_a_receiver_cancelled_at_the_tick_of_a_put_loses_nothing(
    nursery: trio.Nursery, cancelled_first: bool
) -> None:
    mailbox, taken = filled(), list[str]()
    nursery.start_soon(take_one, mailbox, taken)
    await wait_all_tasks_blocked()
    if cancelled_first:
        nursery.cancel_scope.cancel()
    mailbox.put_nowait("a", "a")
    nursery.cancel_scope.cancel()
    with trio.CancelScope(shield=True):
        await wait_all_tasks_blocked()
    assert taken + drained(mailbox) == ["a"]


async def test_a_cancelled_get_takes_nothing() -> None:
    mailbox = filled("a")
    with trio.CancelScope() as scope:
        scope.cancel()
        await mailbox.get()
    assert drained(mailbox) == ["a"]


async def test_a_cancelled_put_was_not_put(autojump_clock: MockClock) -> None:
    mailbox = filled("a", capacity=1)
    with trio.move_on_after(1):
        await mailbox.put("b", "b")
    assert drained(mailbox) == ["a"]


async def test_a_put_that_was_cancelled_before_it_began_was_not_put() -> None:
    mailbox = filled()
    with trio.CancelScope() as scope:
        scope.cancel()
        await mailbox.put("a", "a")
    assert len(mailbox) == 0


async def test_nobody_overtakes_the_senders_in_line(nursery: trio.Nursery) -> None:
    mailbox = filled("a", capacity=1)
    nursery.start_soon(mailbox.put, "b", "b")
    await wait_all_tasks_blocked()
    assert mailbox.get_nowait() == "a"
    with pytest.raises(trio.WouldBlock):
        mailbox.put_nowait("c", "c")
    assert await mailbox.get() == "b"
    mailbox.put_nowait("c", "c")


def test_a_full_mailbox_refuses_what_cannot_wait() -> None:
    with pytest.raises(trio.WouldBlock):
        filled("a", capacity=1).put_nowait("b", "b")


async def test_what_was_promised_room_is_admitted_beyond_the_capacity(nursery: trio.Nursery) -> None:
    mailbox = filled("a", capacity=1)
    nursery.start_soon(mailbox.put, "c", "c")
    await wait_all_tasks_blocked()
    mailbox.admit("b", "b")
    assert mailbox.get_nowait() == "a"
    assert mailbox.statistics().senders_waiting == 1
    assert [mailbox.get_nowait(), mailbox.get_nowait()] == ["b", "c"]


async def test_closing_hands_over_what_is_left_and_ends_the_receiver() -> None:
    mailbox = filled("a", "b")
    assert mailbox.close() == ("a", "b")
    assert mailbox.close() == ()
    with pytest.raises(trio.EndOfChannel):
        await mailbox.get()


async def test_closing_wakes_a_parked_receiver(nursery: trio.Nursery) -> None:
    mailbox, ends = filled(), list[str]()

    async def receive() -> None:
        with pytest.raises(trio.EndOfChannel):
            await mailbox.get()
        ends.append("receiver")

    nursery.start_soon(receive)
    await wait_all_tasks_blocked()
    mailbox.close()
    await wait_all_tasks_blocked()
    assert ends == ["receiver"]


async def test_a_closed_mailbox_takes_nothing() -> None:
    mailbox = filled(capacity=1)
    mailbox.close()
    for put in (mailbox.put_nowait, mailbox.admit):
        with pytest.raises(trio.ClosedResourceError):
            put("a", "a")
    with pytest.raises(trio.ClosedResourceError):
        await mailbox.put("a", "a")


async def test_closing_turns_the_senders_in_line_away(nursery: trio.Nursery) -> None:
    mailbox, ends = filled("a", capacity=1), list[str]()

    async def send() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await mailbox.put("b", "b")
        ends.append("sender")

    nursery.start_soon(send)
    await wait_all_tasks_blocked()
    assert mailbox.close() == ("a",)
    await wait_all_tasks_blocked()
    assert ends == ["sender"]


async def test_an_item_that_moved_in_at_the_tick_of_closing_counts_as_put(nursery: trio.Nursery) -> None:
    mailbox, put = filled("a", capacity=1), list[str]()

    async def send() -> None:
        await mailbox.put("b", "b")
        put.append("b")

    nursery.start_soon(send)
    await wait_all_tasks_blocked()
    mailbox.get_nowait()
    assert mailbox.close() == ("b",)
    await wait_all_tasks_blocked()
    assert put == ["b"]


async def test_waiting_verbs_are_checkpoints_and_the_others_are_none() -> None:
    mailbox = filled("a")
    with assert_checkpoints():
        await mailbox.get()
    with assert_checkpoints():
        await mailbox.put("b", "b")
    with assert_no_checkpoints():
        mailbox.put_nowait("c", "c")
        mailbox.recall("b")
        mailbox.get_nowait()


async def test_a_receiver_with_a_full_mailbox_lets_other_tasks_run(nursery: trio.Nursery) -> None:
    mailbox, steps = filled(*map(str, range(100)), capacity=100), list[int]()

    async def count() -> None:
        while len(mailbox):
            steps.append(len(mailbox))
            await checkpoint()

    nursery.start_soon(count)
    while len(mailbox):
        await mailbox.get()
    assert len(steps) > 90


async def test_it_says_what_it_holds(nursery: trio.Nursery) -> None:
    mailbox = filled("a", "b", capacity=2)
    nursery.start_soon(mailbox.put, "c", "c")
    await wait_all_tasks_blocked()
    assert mailbox.statistics() == MailboxStatistics(2, 2, 1, False)
    assert repr(mailbox) == "<Mailbox 2 of 2>"
    mailbox.recall("c")
    mailbox.close()
    assert repr(mailbox) == "<Mailbox 0 of 2 closed>"


async def test_it_says_who_is_parked_in_it(nursery: trio.Nursery) -> None:
    mailbox = filled()
    nursery.start_soon(take_one, mailbox, [])
    await wait_all_tasks_blocked()
    assert mailbox.statistics().receiver_waiting
    assert mailbox.receiver in nursery.child_tasks
    mailbox.put_nowait("a", "a")
    assert mailbox.receiver is None


class Play:
    """One seeded run: senders, a receiver that is cancelled again and again, somebody who recalls."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.mailbox: Mailbox[str] = Mailbox(self.random.randint(1, 3))
        self.called: list[str] = []
        self.put: set[str] = set()
        self.recalled: set[str] = set()
        self.taken: list[str] = []
        self.receiving = trio.CancelScope()

    async def pause(self) -> None:
        for _ in range(self.random.randrange(4)):
            await checkpoint()

    async def send(self, name: str, nursery: trio.Nursery) -> None:
        for number in range(6):
            await self.pause()
            with trio.CancelScope() as scope:
                if self.random.random() < 0.3:
                    nursery.start_soon(self.cancel, scope)
                await self.put_one(f"{name}{number}")

    async def put_one(self, key: str) -> None:
        self.called.append(key)
        if self.random.random() < 0.7:
            await self.mailbox.put(key, key)
            self.put.add(key)
            return
        try:
            self.mailbox.put_nowait(key, key)
            self.put.add(key)
        except trio.WouldBlock:
            await checkpoint()

    async def cancel(self, scope: trio.CancelScope) -> None:
        await self.pause()
        scope.cancel()

    async def receive(self) -> None:
        while not self.mailbox.closed:
            with trio.CancelScope() as self.receiving, suppress(trio.EndOfChannel):
                await take_one(self.mailbox, self.taken)
            await self.pause()

    async def disturb(self) -> None:
        for _ in range(30):
            await self.pause()
            self.receiving.cancel()
            if self.called and self.mailbox.recall(key := self.random.choice(self.called)):
                assert key not in self.recalled
                self.recalled.add(key)

    async def run(self) -> None:
        with trio.fail_after(1):
            async with trio.open_nursery() as outer:
                outer.start_soon(self.receive)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.disturb)
                    for name in "abc":
                        nursery.start_soon(self.send, name, nursery)
                self.taken += self.mailbox.close()
                outer.cancel_scope.cancel()


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_no_order_of_puts_cancels_and_recalls_loses_doubles_or_reorders(
    monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    monkeypatch.setattr(_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
    recalled = 0
    for seed in range(first, first + 50):
        _run._r.seed(seed)
        play = Play(seed)
        trio.run(play.run, clock=MockClock(autojump_threshold=0))
        assert len(play.taken) == len(set(play.taken)), seed
        assert play.taken == [key for key in play.called if key in set(play.taken)], seed
        assert not play.recalled & set(play.taken), seed
        assert play.recalled | set(play.taken) == play.put, seed
        recalled += len(play.recalled)
    assert recalled > 50, "the run recalls too little to show anything"
