"""What a receipt says from the call to the end, in every way that words can go; and nudges."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from trio.testing import MockClock

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import CallboardError, UnknownRole
from callboard.runtime.event import WordsAccepted
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.receipt import Receipt
from callboard.runtime.user_message import UserMessage
from tests.scenarios import (
    Answering,
    Careful,
    FailingCleanUp,
    Peer,
    Planner,
    Streamer,
    Swallower,
    Teller,
    Trusting,
    Worker,
)
from tests.test_interruption import at_work, chain, log

X = UserMessage("x", id="x")


class Deaf(Worker):
    """Reads nothing of what is said to it."""

    async def receive(self, post: Post, context: TurnContext) -> Post:
        await self.work(context)
        return post.reply(self.name)


class Stubborn(Swallower):
    """Reads nothing, and finishes though it is interrupted."""

    async def receive(self, post: Post, context: TurnContext) -> Post:
        await self.work(context)
        return post.reply(self.name)


@dataclass(frozen=True)
class Life:
    """Words, said to a conversation at work."""

    roles: tuple[Actor, ...]
    say: Callable[[Conversation], Receipt]
    first: str
    """What the receipt reads as, in the step of the call."""
    last: str
    """What it reads as when all is done."""
    seen: bool = True
    reply: str = ""
    """The error of the wait for the answer; empty if there is one."""
    seconds: float = 0.25
    """After which it is said."""


def stop_first(conversation: Conversation) -> Conversation:
    conversation.stop("enough")
    return conversation


def then_stop(conversation: Conversation, receipt: Receipt) -> Receipt:
    conversation.stop("enough")
    return receipt


def enqueued(conversation: Conversation) -> Receipt:
    conversation.enqueue(X)
    return conversation.communicate(X)


def withdrawn(conversation: Conversation) -> Receipt:
    receipt = enqueued(conversation)
    conversation.withdraw("x")
    return receipt


LIVES: dict[str, Life] = {
    "level 1": Life(
        (chain(3),),
        lambda conversation: conversation.intervene(X),
        "reached worker, interrupted worker; not seen yet",
        "reached worker, interrupted worker; seen by worker",
    ),
    "level 2": Life(
        (chain(3),),
        lambda conversation: conversation.intervene(X, broadcast_level=2),
        "reached worker and level2, interrupted level2, recalled worker; not seen yet",
        "reached worker and level2, interrupted level2, recalled worker; seen by worker and level2",
    ),
    "all levels": Life(
        (chain(3),),
        lambda conversation: conversation.communicate(X, broadcast_level=-1),
        "reached worker, level2 and level1, interrupted level1, recalled worker and level2; not seen yet",
        "reached worker, level2 and level1, interrupted level1, recalled worker and level2; "
        "seen by worker, level2 and level1",
    ),
    "beside told work": Life(
        (Teller("boss", Worker("background", 6), Worker("w", 4)),),
        lambda conversation: conversation.intervene(X),
        "reached w, interrupted w, left background at other work; not seen yet",
        "reached w, interrupted w, left background at other work; seen by w",
    ),
    "to told work and its idle superior": Life(
        (Teller("boss", Worker("background", 9), Worker("w", 1)),),
        lambda conversation: conversation.intervene(X, role="background", broadcast_level=2),
        "reached background and boss, interrupted background, told boss; not seen yet",
        "reached background and boss, interrupted background, told boss; seen by background",
        reply="Missed",
        seconds=0.45,
    ),
    "to an idle role": Life(
        (Teller("boss", Worker("background", 2), Worker("w", 6)),),
        lambda conversation: conversation.intervene(X, role="background"),
        "told background; not seen yet",
        "told background; not seen before the round ended",
        seen=False,
        seconds=0.35,
    ),
    "after the step": Life(
        (Trusting("boss", Streamer()),),
        lambda conversation: conversation.intervene(X, delivery="after_step"),
        "waiting for the running step to end",
        "reached worker, interrupted worker; seen by worker",
    ),
    "after the turn": Life(
        (Trusting("boss", Worker()),),
        lambda conversation: conversation.intervene(X, delivery="after_turn"),
        "waiting for the turns at work to end",
        "reached boss, interrupted boss; seen by boss",
    ),
    "after the last turn": Life(
        (Worker(),),
        lambda conversation: conversation.intervene(X, delivery="after_turn"),
        "waiting for the turns at work to end",
        "met nobody",
        seen=False,
        reply="Missed",
    ),
    "communicated after the last turn": Life(
        (Worker(),),
        lambda conversation: conversation.communicate(X, delivery="after_turn"),
        "waiting for the turns at work to end",
        "started a round",
    ),
    "into a block that is let finish": Life(
        (Answering("boss", Careful()),),
        lambda conversation: conversation.intervene(X, role="worker"),
        "reached worker, interrupted worker, let worker finish a block first; not seen yet",
        "reached worker, interrupted worker, let worker finish a block first; seen by worker",
        seconds=0.05,
    ),
    "to a role that finishes all the same": Life(
        (Trusting("boss", Swallower()),),
        lambda conversation: conversation.intervene(X),
        "reached worker, interrupted worker; not seen yet",
        "reached worker and boss, interrupted boss, told worker; seen by worker and boss",
    ),
    "to that role alone": Life(
        (Trusting("boss", Stubborn()),),
        lambda conversation: conversation.intervene(X, role="worker"),
        "reached worker, interrupted worker; not seen yet",
        "told worker; not seen before the round ended",
        seen=False,
    ),
    "to a role that reads nothing": Life(
        (Trusting("boss", Deaf()),),
        lambda conversation: conversation.intervene(X),
        "reached worker, interrupted worker; not seen yet",
        "reached worker, interrupted worker; not seen before the round ended",
        seen=False,
    ),
    "then a stop": Life(
        (chain(2),),
        lambda conversation: then_stop(conversation, conversation.intervene(X, broadcast_level=2)),
        "reached worker and level1, interrupted level1, recalled worker; not seen yet",
        "reached worker and level1, interrupted level1, recalled worker; not seen before the round ended",
        seen=False,
        reply="RoundStopped",
    ),
    "waiting, then a stop": Life(
        (chain(2),),
        lambda conversation: then_stop(conversation, conversation.intervene(X, delivery="after_turn")),
        "met nobody",
        "met nobody",
        seen=False,
        reply="RoundStopped",
    ),
    "a stop, then words": Life(
        (chain(2),),
        lambda conversation: stop_first(conversation).intervene(X),
        "met nobody",
        "met nobody",
        seen=False,
        reply="Missed",
    ),
    "a stop, then communicated": Life(
        (chain(2),),
        lambda conversation: stop_first(conversation).communicate(X),
        "waiting in line for its round",
        "started a round",
    ),
    "enqueued": Life(
        (Worker(),),
        enqueued,
        "waiting in line for its round",
        "started a round",
    ),
    "withdrawn": Life(
        (Worker(),), withdrawn, "its round never began", "its round never began", seen=False, reply="RequestRecalled"
    ),
}


@pytest.mark.parametrize("name", LIVES)
async def test_a_receipt_follows_its_words(name: str, autojump_clock: MockClock) -> None:
    life = LIVES[name]
    async with at_work(*life.roles, seconds=life.seconds) as (conversation, _):
        receipt = life.say(conversation)
        assert repr(receipt) == f"<Receipt x: {life.first}>"
        await receipt.recorded()
        assert await receipt.seen() is life.seen
        await conversation.wait_idle()
        assert repr(receipt) == f"<Receipt x: {life.last}>"
        try:
            reply = type(await receipt.reply()).__name__
        except CallboardError as error:
            reply = type(error).__name__
        assert reply == (life.reply or "Post")


async def test_what_was_stopped_is_named_with_what_its_clean_up_raised(autojump_clock: MockClock) -> None:
    async with at_work(Trusting("boss", FailingCleanUp())) as (conversation, _):
        stopped = await conversation.intervene(X, broadcast_level=2).stopped()
        assert [(post.send_from, post.marks.state) for post in stopped.posts] == [("worker", "partial")]
        assert ([str(error) for error in stopped.errors], stopped.abandoned) == (["the clean-up failed"], ())


async def test_words_that_come_now_bring_those_that_wait_for_a_step_along(autojump_clock: MockClock) -> None:
    async with at_work(Trusting("boss", Streamer("a"), Streamer("b"))) as (conversation, _):
        waiting = conversation.intervene("waits for both", delivery="after_step")
        assert waiting.action == "waiting"
        now = conversation.intervene("now", role="a")
        assert (sorted(waiting.interrupted), now.interrupted) == (["a", "b"], ("a",))
    assert [line for line in log(conversation) if "> a intervention" in line] == [
        "User > a intervention waits for both",
        "User > a intervention now",
    ]


async def test_a_nudge_starts_a_turn_again_in_place(autojump_clock: MockClock) -> None:
    async with at_work(chain(3)) as (conversation, started):
        receipt = conversation.nudge()
        assert (receipt.reached, receipt.interrupted, receipt.recalled) == (("worker",), ("worker",), ())
        assert (await started.reply()).message.count("level") == 2
    said = log(conversation)
    assert said[3:5] == ["worker > worker note partial worker 1.0;worker 1.1;", "User > worker nudge Go on."]
    assert [line for line in said if "message do" in line] == [
        "level1 > level2 message do",
        "level2 > worker message do",
    ]


async def test_a_nudge_is_read_like_other_words(autojump_clock: MockClock) -> None:
    class Listening(Worker):
        async def receive(self, post: Post, context: TurnContext) -> Post:
            await self.work(context)
            return post.reply(f"attempt {context.attempt}: {[words.message for words in context.user_words]}")

    async with at_work(Listening()) as (conversation, started):
        receipt = conversation.nudge()
        assert await receipt.seen()
        assert (await started.reply()).message == "attempt 2: ['Go on.']"


async def test_all_active_leaves_are_nudged(autojump_clock: MockClock) -> None:
    async with at_work(Trusting("boss", Worker("a", 4), Worker("b", 4))) as (conversation, _):
        assert sorted(conversation.nudge().interrupted) == ["a", "b"]


async def test_one_role_is_nudged_and_what_it_waits_for_is_recalled(autojump_clock: MockClock) -> None:
    boss = Planner("boss", Peer("a", "w"), Worker("b", 4))
    async with at_work(boss, Worker("w", 4)) as (conversation, _):
        receipt = conversation.nudge("a")
        assert (receipt.reached, receipt.interrupted, receipt.recalled) == (("a",), ("a",), ("w",))
        with pytest.raises(UnknownRole):
            conversation.nudge("nobody")


async def test_a_nudge_that_finds_nobody_is_missed() -> None:
    async with open_conversation(Worker()) as conversation:
        events = conversation.events()
        receipt = conversation.nudge()
        assert (receipt.action, await receipt.seen(), conversation.transcript().rounds) == ("missed", False, ())
        with pytest.raises(UnknownRole):
            conversation.nudge("nobody")
        conversation.begin_closing()
    assert not [event async for event in events if isinstance(event, WordsAccepted)]
