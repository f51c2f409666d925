"""Receipts: whom the words reached, what became of them, and the waits on that."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, assert_checkpoints, wait_all_tasks_blocked

from callboard.runtime.errors import Missed
from callboard.runtime.post import Post
from callboard.runtime.receipt import Receipt, Stopped, Words
from callboard.runtime.request import Request
from callboard.runtime.user_message import UserMessage

MESSAGE = UserMessage("use tabs", id="words-1")
REPLY = Post("post-1", "Boss", "User", "done")


def words(**groups: list[str]) -> Words:
    """Words that reached, interrupted, recalled, told or spared those roles."""
    made = Words(MESSAGE)
    for group, names in groups.items():
        getattr(made, group).update(dict.fromkeys(names))
    return made


@pytest.mark.parametrize("level", [1, 2, 10, -1, -3])
def test_a_level_is_any_whole_number_but_zero(level: int) -> None:
    assert Words(MESSAGE, level).level == level


@pytest.mark.parametrize("level", [0, True, False, 1.0, "1", None])
def test_what_is_no_level_is_refused(level: Any) -> None:
    with pytest.raises(ValueError, match="broadcast_level is a whole number other than 0, not "):
        Words(MESSAGE, level)


def test_a_receipt_names_the_roles_innermost_first() -> None:
    made = words(reached=["Worker", "Boss"], interrupted=["Boss"], recalled=["Worker"], told=["Clerk"], spared=["Bot"])
    receipt = made.receipt
    assert (receipt.id, receipt.reached, receipt.interrupted) == ("words-1", ("Worker", "Boss"), ("Boss",))
    assert (receipt.recalled, receipt.told, receipt.spared) == (("Worker",), ("Clerk",), ("Bot",))


def test_a_receipt_reads_as_a_sentence() -> None:
    made = words(reached=["Worker", "Boss"], interrupted=["Boss"], recalled=["Worker"])
    made.action = "intervened"
    assert repr(made.receipt) == (
        "<Receipt words-1: reached Worker and Boss, interrupted Boss, recalled Worker; not seen yet>"
    )


def test_a_receipt_says_at_its_end_what_became_of_the_words() -> None:
    made = words(reached=["Boss"], told=["Boss"])
    made.action = "intervened"
    made.settled = "told"
    assert repr(made.receipt) == "<Receipt words-1: told Boss; not seen before the round ended>"
    made.seen_by.add("Boss")
    assert repr(made.receipt) == "<Receipt words-1: told Boss; seen by Boss>"


def test_words_that_met_nobody_are_missed() -> None:
    made = words()
    assert (made.receipt.action, made.outcome()) == ("missed", "missed")


def test_words_in_somebodys_rounds_are_told_and_then_seen() -> None:
    made = words()
    made.placed.add("Boss")
    assert made.outcome() == "told"
    made.seen_by.add("Boss")
    assert made.outcome() == "seen"


async def seen_into(receipt: Receipt, answers: list[bool]) -> None:
    answers.append(await receipt.seen())


async def test_seen_waits_until_a_role_has_read_the_words(nursery: trio.Nursery) -> None:
    made, answers = words(), list[bool]()
    nursery.start_soon(seen_into, made.receipt, answers)
    made.placed.add("Boss")
    made.changed()
    await wait_all_tasks_blocked()
    assert answers == []
    made.seen_by.add("Boss")
    made.changed()
    await wait_all_tasks_blocked()
    assert answers == [True]


async def test_words_that_nobody_read_by_the_end_were_not_seen(nursery: trio.Nursery) -> None:
    made, answers = words(), list[bool]()
    nursery.start_soon(seen_into, made.receipt, answers)
    await wait_all_tasks_blocked()
    made.settled = "told"
    made.changed()
    await wait_all_tasks_blocked()
    assert answers == [False]


async def test_stopped_waits_until_all_that_was_ended_has_unwound(nursery: trio.Nursery) -> None:
    made, answers, error = words(), list[Stopped](), ValueError("clean-up")
    made.leaving = 1

    async def wait() -> None:
        answers.append(await made.receipt.stopped())

    nursery.start_soon(wait)
    await wait_all_tasks_blocked()
    assert answers == []
    made.leaving, made.kept, made.errors = 0, [REPLY], [error]
    made.changed()
    await wait_all_tasks_blocked()
    assert answers == [Stopped((REPLY,), (), (error,))]


async def test_a_wait_that_is_cancelled_changes_nothing(autojump_clock: MockClock) -> None:
    made = words()
    with trio.move_on_after(1) as scope:
        await made.receipt.seen()
    assert scope.cancelled_caught
    made.seen_by.add("Boss")
    assert await made.receipt.seen()


async def test_the_reply_is_that_of_the_round_that_took_the_words() -> None:
    made = words()
    made.request = Request(MESSAGE)
    made.request.end(REPLY)
    assert await made.receipt.reply() == REPLY


async def test_the_reply_follows_words_that_became_another_round(nursery: trio.Nursery) -> None:
    made, first, second, replies = words(), Request(MESSAGE), Request(MESSAGE), list[Post]()
    made.request = first

    async def wait() -> None:
        replies.append(await made.receipt.reply())

    nursery.start_soon(wait)
    await wait_all_tasks_blocked()
    made.request = second
    first.end(KeyError("not ours"))
    await wait_all_tasks_blocked()
    second.end(REPLY)
    await wait_all_tasks_blocked()
    assert replies == [REPLY]


async def test_words_that_no_round_took_have_no_reply() -> None:
    with pytest.raises(Missed, match="the words words-1 met nobody"):
        await words().receipt.reply()


async def test_every_wait_on_a_receipt_is_a_checkpoint() -> None:
    made = words()
    made.settled = "told"
    made.request = Request(MESSAGE)
    made.request.end(REPLY)
    for wait in (made.receipt.recorded, made.receipt.stopped, made.receipt.seen, made.receipt.reply):
        with assert_checkpoints():
            await wait()
