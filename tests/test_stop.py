"""Stopping: the round ends now, its work so far is kept, and the conversation can be used again."""

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import RoundStopped
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from tests.scenarios import LateWorker, Teller, Trusting, Worker
from tests.situations import Clerk
from tests.test_interruption import at_work, chain, log


async def test_the_round_ends_and_what_it_had_is_kept(autojump_clock: MockClock) -> None:
    async with at_work(chain(2)) as (conversation, started):
        conversation.stop("enough")
        with pytest.raises(RoundStopped, match="enough"):
            await started.reply()
    assert conversation.transcript().rounds[0].state == "stopped"
    assert log(conversation)[-2:] == [
        "worker > level1 reply partial worker 1.0;worker 1.1;",
        "level1 > User reply partial ",
    ]


async def test_send_raises_when_all_work_has_ended(autojump_clock: MockClock) -> None:
    async with at_work(Trusting("boss", LateWorker())) as (conversation, started):
        conversation.stop("enough")
        with pytest.raises(RoundStopped):
            await started.reply()
        assert trio.current_time() == 5.25
        assert conversation.statistics().turns == 0


async def test_what_stands_in_line_is_stopped_too(autojump_clock: MockClock) -> None:
    stopped: list[str] = []
    async with at_work(chain(1)) as (conversation, _), trio.open_nursery() as nursery:

        async def send(message: str) -> None:
            try:
                await conversation.send(message)
            except RoundStopped as error:
                stopped.append(f"{message} {error.reason}")

        nursery.start_soon(send, "second")
        nursery.start_soon(send, "third")
        await trio.sleep(0.01)
        conversation.stop("enough")
    assert sorted(stopped) == ["second enough", "third enough"]
    assert len(conversation.transcript().rounds) == 1


async def test_told_work_is_ended_with_the_round(autojump_clock: MockClock) -> None:
    async with at_work(Teller("boss", Worker("background", 9), Worker("w", 9))) as (conversation, _):
        conversation.stop("enough")
        await conversation.wait_idle()
        assert trio.current_time() == 0.25
    assert "background > boss reply partial background 1.0;background 1.1;" in log(conversation)


async def test_of_two_reasons_the_first_stays(autojump_clock: MockClock) -> None:
    async with at_work(Trusting("boss", LateWorker())) as (conversation, started):
        conversation.stop("first")
        await trio.sleep(1)
        conversation.stop("second")
        with pytest.raises(RoundStopped, match="first"):
            await started.reply()


async def test_with_nothing_to_end_it_does_nothing() -> None:
    async with open_conversation(Worker()) as conversation:
        conversation.stop("idle")
    conversation.stop("closed")
    assert conversation.transcript().rounds == ()


async def test_the_conversation_is_usable_afterwards(autojump_clock: MockClock) -> None:
    async with at_work(chain(2)) as (conversation, _):
        conversation.stop("enough")
        assert "worker[]" in (await conversation.send("again")).message
    assert [round_.state for round_ in conversation.transcript().rounds] == ["stopped", "finished"]


async def test_a_role_may_stop_the_round_it_works_in(autojump_clock: MockClock) -> None:
    class Stopper(Actor):
        name = "stopper"

        async def receive(self, post: Post, context: TurnContext) -> Post:
            conversation.stop("the role had seen enough")
            await trio.sleep(1)
            raise AssertionError("it is cancelled at its next checkpoint")

    async with open_conversation(Stopper()) as conversation:
        with pytest.raises(RoundStopped, match="seen enough"):
            await conversation.send("q")


async def test_a_root_that_has_just_finished_stands(autojump_clock: MockClock) -> None:
    done = trio.Event()

    class Waits(Worker):
        async def work(self, context: TurnContext) -> None:
            await done.wait()

    async with at_work(Waits()) as (conversation, started):
        done.set()
        conversation.stop("too late")
        assert (await started.reply()).message == "worker[]"
    assert conversation.transcript().rounds[0].state == "finished"


async def test_words_that_come_while_all_ends_meet_nobody_or_open_the_next_round(autojump_clock: MockClock) -> None:
    async with at_work(Trusting("boss", LateWorker())) as (conversation, _):
        conversation.stop("enough")
        missed = conversation.intervene("x", broadcast_level=-1)
        waiting = conversation.communicate("next")
        assert (missed.action, await missed.seen(), waiting.action) == ("missed", False, "waiting")
        assert (await waiting.reply()).message.startswith("boss[]")


class Told(Actor):
    """Answers at once, and leaves work behind that takes five seconds to end."""

    name = "told"
    subordinates = (Clerk(clean_up=5),)

    async def receive(self, post: Post, context: TurnContext) -> Post:
        if post.message == "q":
            await context.tell("clerk", "in your own time")
        return post.reply(f"{post.message} at {trio.current_time():g}")


async def test_what_is_said_while_told_work_is_being_stopped_waits_for_its_end(autojump_clock: MockClock) -> None:
    async with open_conversation(Told()) as conversation:
        await conversation.send("q")
        await trio.sleep(1.5)
        conversation.stop("enough")
        conversation.pause()
        assert not conversation.paused
        assert conversation.intervene("x", role="clerk").action == "missed"
        waiting = conversation.communicate("next")
        assert waiting.action == "waiting"
        assert (await waiting.reply()).message == "next at 6.5"
