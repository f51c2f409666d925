"""Pauses: while one lasts nothing is begun, no time counts, and afterwards all goes on as if there had been none."""

import math
from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import RoleFailed, RoundStopped
from callboard.runtime.event import Event, Paused, Resumed
from callboard.runtime.limits import Limits
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.subscription import Subscription
from callboard.runtime.testing import Watch, every_interrupt_point
from tests.scenarios import Answering, Careful, Planner, Steady, Streamer, Teller, Trusting, Worker, the_bell
from tests.situations import Boss, Clerk
from tests.test_interruption import at_work, log

PAUSE = 6.0


class Run:
    """What one scenario has come to, in all its runs."""

    def __init__(self, make: Callable[[], Actor], limits: Limits | None = None) -> None:
        self.make = make
        self.options = ConversationOptions(limits=limits or Limits(replies=100))
        self.ends: list[str] = []
        """How each round ended, and at which moment of working time."""
        self.logs: list[list[str]] = []
        self.paused_at = math.inf

    async def scenario(self, watch: Watch) -> None:
        """One round, which somebody may pause; nothing is recorded from one second after that until it goes on."""
        self.paused_at = math.inf
        async with trio.open_nursery() as nursery:
            nursery.start_soon(the_bell.ring, [])
            async with open_conversation(self.make(), options=self.options) as conversation:
                nursery.start_soon(go_on_later, conversation, conversation.events())
                watch(conversation)
                try:
                    end = (await conversation.send("q")).message
                except RoleFailed as error:
                    end = type(innermost(error)).__name__
                stood = min(PAUSE, max(0.0, trio.current_time() - self.paused_at))
                self.ends.append(f"{end} at {trio.current_time() - stood:.1f}")
                await conversation.wait_idle()
                self.logs.append(sorted(log(conversation)))
            nursery.cancel_scope.cancel()

    def pause(self, conversation: Conversation) -> None:
        """The injection."""
        if not conversation.paused and self.paused_at == math.inf:
            self.paused_at = trio.current_time()
        conversation.pause()


async def go_on_later(conversation: Conversation, events: Subscription[Event]) -> None:
    """Ends a pause six seconds after it began."""
    async for event in events:
        if isinstance(event, Paused):
            await trio.sleep(1.01)
            recorded = log(conversation)
            await trio.sleep(PAUSE - 1.01)
            assert log(conversation) == recorded
            conversation.resume()


def innermost(error: BaseException) -> BaseException:
    """The first cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


SHAPES: dict[str, Callable[[], Actor]] = {
    "three levels": lambda: Trusting("boss", Trusting("planner", Worker())),
    "several leaves": lambda: Planner("boss", Worker("a", 1), Worker("b", 2), Worker("c", 4)),
    "steps": lambda: Trusting("boss", Streamer()),
    "a block that is let finish": lambda: Answering("boss", Careful()),
    "a tool that is let finish": lambda: Trusting("boss", Steady()),
    "told work": lambda: Teller("boss", Worker("background", 4), Worker("w", 1)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_paused_round_records_nothing_and_answers_as_if_it_had_not_been_paused(shape: str) -> None:
    run = Run(SHAPES[shape])
    every_interrupt_point(run.scenario, lambda conversation: None, sample=1)
    every_interrupt_point(run.scenario, run.pause, sample=25)
    assert {end.split(" at ")[0] for end in run.ends} == {run.ends[0].split(" at ")[0]}
    assert all(lines == run.logs[0] for lines in run.logs)


def test_a_deadline_stands_still_while_the_round_is_paused() -> None:
    run = Run(lambda: Boss(Clerk()), Limits(seconds=3.2))
    every_interrupt_point(run.scenario, run.pause, sample=40)
    assert set(run.ends) == {"LimitReached at 3.2"}


async def test_the_deadline_of_one_request_stands_still_too(autojump_clock: MockClock) -> None:
    class Strict(Boss):
        async def receive(self, post: Post, context: TurnContext) -> Post:
            return post.reply((await context.ask("clerk", post.message, limits=Limits(seconds=4.5))).message)

    async with at_work(Strict(Clerk()), seconds=1.5) as (conversation, started):
        conversation.pause()
        await trio.sleep(60)
        conversation.resume()
        assert (await started.reply()).message == "q"


async def test_a_post_that_waits_for_room_is_not_lost_to_a_pause(autojump_clock: MockClock) -> None:
    class Herald(Actor):
        name = "herald"
        subordinates = (Clerk(),)

        async def receive(self, post: Post, context: TurnContext) -> Post:
            for number in range(4):
                await context.tell("clerk", str(number))
            return post.reply("told")

    options = ConversationOptions(mailbox=1)
    async with open_conversation(Herald(), options=options) as conversation:
        started = conversation.communicate("q")
        await trio.sleep(0.5)
        conversation.pause()
        await trio.sleep(60)
        conversation.resume()
        assert (await started.reply()).message == "told"
        await conversation.wait_idle()
        assert conversation.dead_letters() == ()


@pytest.mark.parametrize(("start", "end"), [(1, 20), (1, 59), (1, 62), (29, 45)])
async def test_idle_time_does_not_count_while_paused(start: int, end: int, autojump_clock: MockClock) -> None:
    options = ConversationOptions(idle_after=30)
    async with open_conversation(Worker("worker", 0), options=options) as conversation:
        await conversation.send("q")
        await trio.sleep(start)
        conversation.pause()
        await trio.sleep(end - start)
        conversation.resume()
        await trio.sleep(29.5 - start)
        assert "callboard:worker" in task_names()
        await trio.sleep(31)
        assert "callboard:worker" not in task_names()


def task_names() -> list[str]:
    """All tasks under the one that asks, and beside it."""
    nurseries = trio.lowlevel.current_task().child_nurseries
    return [task.name for nursery in nurseries for task in nursery.child_tasks]


async def test_words_end_a_pause_and_are_read(autojump_clock: MockClock) -> None:
    async with at_work(Boss(Clerk()), seconds=1.5) as (conversation, started):
        conversation.pause()
        await trio.sleep(10)
        receipt = conversation.intervene("x", broadcast_level=2)
        assert not conversation.paused
        assert (receipt.reached, receipt.interrupted, receipt.recalled) == (("clerk", "boss"), ("boss",), ("clerk",))
        assert (await started.reply()).message == "q+x+x@boss"
        assert await receipt.seen()


async def test_no_step_begins_between_the_cut_and_the_end_of_the_pause(autojump_clock: MockClock) -> None:
    begun: list[str] = []

    class Noting(Clerk):
        async def receive(self, post: Post, context: TurnContext) -> Post:
            for number in range(3):
                async with context.step():
                    begun.append(f"{context.attempt}.{number}")
                    await trio.sleep(1)
            return post.reply("done")

    async with at_work(Noting(), seconds=0.5) as (conversation, _):
        conversation.pause()
        await trio.sleep(5)
        conversation.nudge()
    assert begun == ["1.0", "2.0", "2.1", "2.2"]


async def test_a_stop_ends_a_pause_and_the_round(autojump_clock: MockClock) -> None:
    async with at_work(Boss(Clerk()), seconds=1.5) as (conversation, started):
        conversation.pause()
        await trio.sleep(10)
        conversation.stop("enough")
        assert not conversation.paused
        with pytest.raises(RoundStopped, match="enough"):
            await started.reply()
        assert trio.current_time() == 11.5


class Guarded(Actor):
    """Works in a block that is let finish, in two steps and an ask; then in one step more."""

    name = "guarded"
    subordinates = (Worker("helper", 1),)

    async def receive(self, post: Post, context: TurnContext) -> Post:
        async with context.uninterruptible(grace=5):
            for number in range(2):
                async with context.step():
                    await trio.sleep(1)
                context.record(f"step {number} at {trio.current_time():g}")
        async with context.step():
            await trio.sleep(1)
        return post.reply(f"done at {trio.current_time():g}")


async def test_a_block_that_is_let_finish_goes_on_in_a_pause_and_nothing_behind_it(autojump_clock: MockClock) -> None:
    async with at_work(Guarded(), seconds=0.5) as (conversation, started):
        conversation.pause()
        await trio.sleep(10)
        assert [line.split(" ", 4)[-1] for line in log(conversation)[1:]] == ["step 0 at 1", "step 1 at 2"]
        conversation.resume()
        assert (await started.reply()).message == "done at 11.5"


async def test_words_into_such_a_block_in_a_pause_take_hold_at_its_end(autojump_clock: MockClock) -> None:
    async with at_work(Guarded(), seconds=0.5) as (conversation, started):
        conversation.pause()
        receipt = conversation.intervene("x")
        assert (receipt.spared, conversation.paused) == (("guarded",), False)
        assert (await started.reply()).message == "done at 5"
    kept = [line.removeprefix("guarded > guarded note ") for line in log(conversation)[1:4]]
    assert kept == ["step 0 at 1", "step 1 at 2", "User > guarded intervention x"]


async def test_a_pause_and_its_end_are_events_and_said_once(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    async def read(events: Subscription[Event]) -> None:
        seen.extend([type(event).__name__ async for event in events if isinstance(event, Paused | Resumed)])

    async with trio.open_nursery() as nursery, open_conversation(Clerk()) as conversation:
        nursery.start_soon(read, conversation.events())
        for verb in (conversation.pause, conversation.pause, conversation.resume, conversation.resume):
            verb()
        conversation.pause()
        await conversation.send("q")
        conversation.begin_closing()
    assert seen == ["Paused", "Resumed", "Paused", "Resumed"]


async def test_a_role_may_pause_the_round_it_works_in(autojump_clock: MockClock) -> None:
    class Pausing(Actor):
        name = "pausing"

        async def receive(self, post: Post, context: TurnContext) -> Post:
            conversation.pause()
            async with context.step():
                return post.reply(f"at {trio.current_time():g}")

    async with open_conversation(Pausing()) as conversation:
        started = conversation.communicate("q")
        await trio.sleep(10)
        assert conversation.paused
        conversation.resume()
        assert (await started.reply()).message == "at 10"
