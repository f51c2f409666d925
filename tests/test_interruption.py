"""Interventions, case by case: who is reached, what is kept, in which order it is recorded."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.receipt import Receipt
from tests.scenarios import (
    FailingCleanUp,
    LateWorker,
    Peer,
    Planner,
    Swallower,
    Teller,
    Trusting,
    Worker,
    the_bell,
)


@asynccontextmanager
async def at_work(root: Actor, *others: Actor, seconds: float = 0.25) -> AsyncIterator[tuple[Conversation, Receipt]]:
    """A conversation in which the round "q" has run for a while, and the receipt of "q"."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(the_bell.ring, [])
        async with open_conversation(root, *others) as conversation:
            started = conversation.communicate("q")
            await trio.sleep(seconds)
            yield conversation, started
            await conversation.wait_idle()
        nursery.cancel_scope.cancel()


def log(conversation: Conversation) -> list[str]:
    """Every post as a line."""
    posts = [post for round_ in conversation.transcript().rounds for post in round_.post_list]
    return [
        f"{post.send_from} > {post.send_to} {post.marks.kind} {post.marks.state} {post.message}".replace(" whole", "")
        for post in posts
    ]


def chain(depth: int) -> Actor:
    """boss, then planners, then the worker."""
    actor: Actor = Worker()
    for number in range(depth - 1, 0, -1):
        actor = Trusting(f"level{number}", actor)
    return actor


async def test_what_was_finished_what_was_half_done_and_the_words_stand_in_this_order(
    autojump_clock: MockClock,
) -> None:
    async with at_work(Trusting("boss", Trusting("planner", Worker()))) as (conversation, started):
        conversation.intervene("only 2025", broadcast_level=2)
        assert (await started.reply()).message.count("only 2025") == 2
    assert log(conversation)[:8] == [
        "User > boss message q",
        "boss > planner message do",
        "planner > worker message do",
        "worker > planner reply partial worker 1.0;worker 1.1;",
        "User > worker intervention only 2025",
        "User > planner intervention only 2025",
        "planner > worker message do",
        "worker > worker note worker 1.0;worker 1.1;worker 1.2;",
    ]


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("level", [1, 2, 3, 10, -1])
async def test_the_words_reach_so_many_levels_up(depth: int, level: int, autojump_clock: MockClock) -> None:
    names = ["worker", *(f"level{number}" for number in range(depth - 1, 0, -1))]
    walked = tuple(names if level < 0 else names[:level])
    async with at_work(chain(depth)) as (conversation, started):
        receipt = conversation.intervene("x", broadcast_level=level)
        assert (receipt.reached, receipt.interrupted) == (walked, walked[-1:])
        assert receipt.recalled == walked[:-1]
        assert await receipt.seen()
        assert (await started.reply()).send_to == "User"


@pytest.mark.parametrize("level", [0, True, 1.0, "1", None])
async def test_a_level_that_is_none_is_refused_and_nothing_stops(level: object, autojump_clock: MockClock) -> None:
    async with at_work(chain(2)) as (conversation, started):
        with pytest.raises(ValueError, match="broadcast_level"):
            conversation.intervene("x", broadcast_level=level)  # type: ignore[arg-type]  # what is refused here
        await started.reply()
    assert not [line for line in log(conversation) if "intervention" in line]


async def test_a_delivery_that_is_none_is_refused(autojump_clock: MockClock) -> None:
    async with at_work(chain(1)) as (conversation, _):
        with pytest.raises(ValueError, match="delivery is 'now', 'after_step' or 'after_turn', not 'later'"):
            conversation.intervene("x", delivery="later")  # type: ignore[arg-type]  # what is refused here
        assert conversation.intervene("y", delivery="now").reached == ("worker",)


async def test_two_in_a_row_are_both_read_in_order(autojump_clock: MockClock) -> None:
    async with at_work(Worker()) as (conversation, started):
        first, second = conversation.intervene("one"), conversation.intervene("two")
        assert (await started.reply()).message == "worker['one', 'two']"
        assert await first.seen() and await second.seen()
    assert [line for line in log(conversation) if "intervention" in line] == [
        "User > worker intervention one",
        "User > worker intervention two",
    ]


async def test_all_active_leaves_are_cut_and_what_is_finished_stands(autojump_clock: MockClock) -> None:
    boss = Trusting("boss", Worker("quick", 1), Worker("a", 4), Worker("b", 4))
    async with at_work(boss) as (conversation, _):
        receipt = conversation.intervene("x")
        assert sorted(receipt.interrupted) == ["a", "b"]
        kept = (await receipt.stopped()).posts
        assert {(post.send_from, post.message) for post in kept} == {("a", "a 1.0;a 1.1;"), ("b", "b 1.0;b 1.1;")}
    assert log(conversation)[-1] == "boss > User reply boss[][\"a['x']\", \"b['x']\", 'quick[]']"


async def test_a_peer_off_the_chain_is_walked_by_who_waits_and_starts_again_once(autojump_clock: MockClock) -> None:
    attempts: list[str] = []

    class CountingPeer(Peer):
        async def receive(self, post: Post, context: TurnContext) -> Post | None:
            attempts.append(f"{context.role} {context.attempt}")
            return await super().receive(post, context)

    boss = CountingPeer("boss", "peer")
    async with at_work(boss, CountingPeer("peer", "outside"), Worker("outside", 4)) as (conversation, _):
        receipt = conversation.intervene("x", broadcast_level=2)
        assert (receipt.reached, receipt.interrupted) == (("outside", "peer"), ("peer",))
    assert attempts == ["boss 1", "peer 1", "peer 2"]


async def test_an_idle_superior_is_told(autojump_clock: MockClock) -> None:
    boss = Teller("boss", Worker("background", 9), Worker("w", 1))
    async with at_work(boss, seconds=0.45) as (conversation, started):
        assert (await started.reply()).message == "boss[]['w[]']"
        receipt = conversation.intervene("x", role="background", broadcast_level=2)
        assert (receipt.reached, receipt.interrupted, receipt.told) == (
            ("background", "boss"),
            ("background",),
            ("boss",),
        )
        assert await receipt.seen()
    assert "User > boss intervention x" in log(conversation)


async def test_told_work_is_spared_and_goes_on(autojump_clock: MockClock) -> None:
    boss = Teller("boss", Worker("background", 6), Worker("w", 4))
    async with at_work(boss) as (conversation, _):
        receipt = conversation.intervene("x", broadcast_level=-1)
        assert (receipt.reached, receipt.spared) == (("w", "boss"), ("background",))
    assert [line for line in log(conversation) if line.startswith("background >")][
        -1
    ] == "background > boss reply background[]"


async def test_the_new_attempt_waits_for_a_clean_up_of_five_seconds(autojump_clock: MockClock) -> None:
    async with at_work(Trusting("boss", LateWorker())) as (conversation, _):
        receipt = conversation.intervene("x", broadcast_level=2)
        stopped = await receipt.stopped()
        assert trio.current_time() == 5.25
        assert [post.message for post in stopped.posts] == ["worker 1.0;worker 1.1;late;"]
    assert log(conversation)[2:6] == [
        "worker > worker note cleaned up",
        "worker > boss reply partial worker 1.0;worker 1.1;late;",
        "User > worker intervention x",
        "User > boss intervention x",
    ]


@pytest.mark.parametrize("level", [1, 2])
async def test_clean_up_that_raises_is_recorded_and_reported(level: int, autojump_clock: MockClock) -> None:
    async with at_work(Trusting("boss", FailingCleanUp())) as (conversation, started):
        receipt = conversation.intervene("x", broadcast_level=level)
        (error,) = (await receipt.stopped()).errors
        assert isinstance(error, OSError)
        assert "worker['x']" in (await started.reply()).message
    assert "worker > worker error OSError: the clean-up failed" in log(conversation)


async def test_a_role_that_swallows_its_cancellation_has_finished_and_the_words_go_on_up(
    autojump_clock: MockClock,
) -> None:
    async with at_work(Trusting("boss", Swallower())) as (conversation, started):
        receipt = conversation.intervene("x")
        assert (await started.reply()).message.startswith("boss['x']")
        assert (receipt.reached, receipt.interrupted, receipt.told) == (("worker", "boss"), ("boss",), ("worker",))


async def test_a_reply_of_the_same_tick_is_delivered_and_the_words_come_after_it(autojump_clock: MockClock) -> None:
    done = trio.Event()

    class Waits(Worker):
        async def work(self, context: TurnContext) -> None:
            await done.wait()

    async with at_work(Trusting("boss", Waits())) as (conversation, started):
        done.set()  # the worker is awake now, and can no longer be cancelled in this step
        receipt = conversation.intervene("x")
        assert "boss['x']" in (await started.reply()).message
    assert receipt.reached == ("worker", "boss")
    assert receipt.interrupted == ("boss",)
    assert log(conversation)[2:5] == [
        "worker > boss reply worker[]",
        "User > worker intervention x",
        "User > boss intervention x",
    ]


async def test_a_shared_worker_is_cut_once_for_two_askers(autojump_clock: MockClock) -> None:
    boss = Trusting("boss", Peer("a", "w"), Peer("b", "w"))
    async with at_work(boss, Worker("w", 4)) as (conversation, _):
        receipt = conversation.intervene("x")
        assert (receipt.reached, receipt.interrupted) == (("w",), ("w",))
        again = conversation.intervene("y", broadcast_level=2)
        assert set(again.interrupted) == {"a", "b"}
    assert [line for line in log(conversation) if "> w intervention" in line] == [
        "User > w intervention x",
        "User > w intervention y",
    ]


async def test_an_account_tells_what_the_recalled_role_had_heard(autojump_clock: MockClock) -> None:
    async with at_work(Trusting("boss", Worker("worker", 9))) as (conversation, _):
        conversation.intervene("first")
        await trio.sleep(0.2)
        receipt = conversation.intervene("second", broadcast_level=2)
        (account,) = [post for post in (await receipt.stopped()).posts if post.send_to == "boss"]
        heard = account.marks.to_dict()["extra"]["user_words"]
        assert [words["message"] for words in heard] == ["first", "second"]


async def test_a_request_that_was_not_begun_is_accounted_for(autojump_clock: MockClock) -> None:
    boss = Planner("boss", Peer("a", "w"), Peer("b", "w"), Worker("w", 4))
    async with at_work(boss) as (conversation, _):
        receipt = conversation.intervene("x", broadcast_level=-1)
        states = sorted(post.marks.state for post in (await receipt.stopped()).posts)
        assert "not_started" in states and "partial" in states
