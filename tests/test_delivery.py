"""Deliveries: when words with `after_step` and `after_turn` take hold, and what becomes of them if they never do."""

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import Missed, RequestRecalled, RoleFailed, RoundStopped
from callboard.runtime.event import Event, PostRecorded, ToolEnded, WordsAccepted, WordsSettled
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.receipt import Delivery, Receipt
from callboard.runtime.subscription import Subscription
from callboard.runtime.testing import every_interrupt_point
from callboard.runtime.turn import Turn
from tests.injections import INJECTIONS
from tests.roles import Does, asking, at_work, cut_off, log, posts, sleeping, step, stepping
from tests.scenarios import SCENARIOS

DELIVERIES: tuple[Delivery, ...] = ("after_step", "after_turn")


async def test_a_step_ends_before_the_words_take_hold(autojump_clock: MockClock) -> None:
    async with at_work(Does("worker", stepping(1, 1))) as (conversation, started):
        receipt = conversation.intervene("x", delivery="after_step")
        assert (receipt.action, receipt.reached, receipt.interrupted) == ("waiting", (), ())
        await receipt.seen()
        assert trio.current_time() == 1
        assert (receipt.action, receipt.interrupted) == ("intervened", ("worker",))
        assert (await started.reply()).message == "worker['x']"
    assert not cut_off(conversation)
    assert [line for line in log(conversation) if "step" in line or "inter" in line] == [
        "worker > worker note step 0",
        "User > worker intervention x",
        "worker > worker note step 0",
        "worker > worker note step 1",
    ]


@pytest.mark.parametrize(
    "level, top, recalled", [(1, "worker", ()), (2, "planner", ("worker",)), (-1, "boss", ("worker", "planner"))]
)
async def test_after_a_step_the_words_reach_as_far_up_as_now(
    level: int, top: str, recalled: tuple[str, ...], autojump_clock: MockClock
) -> None:
    boss = Does("boss", asking("planner"), Does("planner", asking("worker"), Does("worker", stepping(1, 1))))
    async with at_work(boss) as (conversation, _):
        receipt = conversation.intervene("x", broadcast_level=level, delivery="after_step")
        await receipt.seen()
        assert (receipt.interrupted, receipt.recalled) == ((top,), recalled)
    assert not cut_off(conversation)


async def test_a_long_step_of_one_leaf_holds_the_others_at_their_boundary(autojump_clock: MockClock) -> None:
    boss = Does("boss", asking("a", "b"), Does("a", stepping(1, 1, 1)), Does("b", stepping(5, 1)))
    async with at_work(boss) as (conversation, _):
        receipt = conversation.intervene("x", delivery="after_step")
        await trio.sleep(4)
        assert [line for line in log(conversation) if "note" in line] == ["a > a note step 0"]
        await receipt.seen()
        assert trio.current_time() == 5
        assert sorted(receipt.interrupted) == ["a", "b"]
    assert not cut_off(conversation)


async def test_a_held_turn_begins_no_step_when_the_words_take_hold(autojump_clock: MockClock) -> None:
    begun: list[float] = []

    async def work(post: Post, context: TurnContext) -> str:
        for _ in range(3):
            async with context.step():
                begun.append(trio.current_time())
                await trio.sleep(1)
        return "a"

    boss = Does("boss", asking("a", "b"), Does("a", work), Does("b", stepping(5)))
    async with at_work(boss) as (conversation, _):
        conversation.intervene("x", broadcast_level=2, delivery="after_step")
    assert begun == [0, 5, 6, 7]


async def test_a_role_named_is_waited_for_and_nobody_else(autojump_clock: MockClock) -> None:
    boss = Does("boss", asking("a", "b"), Does("a", stepping(1, 1, 1)), Does("b", stepping(5, 1)))
    async with at_work(boss) as (conversation, _):
        receipt = conversation.intervene("x", role="a", delivery="after_step")
        await receipt.seen()
        assert (trio.current_time(), receipt.interrupted) == (1, ("a",))
    assert not cut_off(conversation)


async def test_a_role_without_steps_is_always_at_a_boundary(autojump_clock: MockClock) -> None:
    async with at_work(Does("worker", sleeping(2))) as (conversation, _):
        receipt = conversation.intervene("x", delivery="after_step")
        assert (receipt.action, receipt.interrupted) == ("intervened", ("worker",))


async def test_a_step_within_a_step_ends_with_the_outer_one(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        async with context.step():
            await step(context, "inner 0", 1)
            await step(context, "inner 1", 1)
        await step(context, "behind", 1)
        return "worker"

    async with at_work(Does("worker", work)) as (conversation, _):
        receipt = conversation.intervene("x", delivery="after_step")
        await receipt.stopped()
        assert (trio.current_time(), receipt.interrupted) == (2, ("worker",))
    assert not cut_off(conversation)


async def test_what_is_asked_within_a_step_is_part_of_it(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        async with context.step():
            await trio.sleep(1)
            await context.ask("helper", "do")
        await step(context, "behind", 1)
        return f"worker{[words.message for words in context.user_words]}"

    async with at_work(Does("worker", work, Does("helper", stepping(1)))) as (conversation, _):
        receipt = conversation.intervene("x", delivery="after_step")
        await receipt.stopped()
        assert (trio.current_time(), receipt.interrupted) == (2, ("worker",))
    assert not cut_off(conversation)


async def test_steps_in_a_block_that_is_let_finish_go_on(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        async with context.uninterruptible(grace=9):
            await step(context, "first", 1)
            await step(context, "second", 1)
        context.record("behind")
        return "worker"

    async with at_work(Does("worker", work)) as (conversation, _):
        receipt = conversation.intervene("x", delivery="after_step")
        await trio.sleep(0.6)
        assert (receipt.action, receipt.spared) == ("intervened", ("worker",))
        await receipt.stopped()
        assert trio.current_time() == 2
        assert [post.message for post in posts(conversation)] == ["q", "first", "second", "x"]
    assert not cut_off(conversation)


async def test_a_role_that_becomes_reached_while_the_words_wait_is_waited_for_too(autojump_clock: MockClock) -> None:
    async def plan(post: Post, context: TurnContext) -> str:
        answer = await context.ask("a", "do")
        await step(context, "summing up", 9)
        return answer.message

    planner = Does("planner", plan, Does("a", stepping(1)))
    async with at_work(Does("boss", asking("planner", "b"), planner, Does("b", stepping(5, 1)))) as (conversation, _):
        receipt = conversation.intervene("x", delivery="after_step")
        await receipt.seen()
        assert trio.current_time() == 5
        assert sorted(receipt.interrupted) == ["b", "planner"]
    assert not cut_off(conversation)


async def test_a_leaf_that_begins_while_the_words_wait_is_waited_for_too(autojump_clock: MockClock) -> None:
    async def one_by_one(post: Post, context: TurnContext) -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(context.ask, "long", "do")
            for _ in range(4):
                await context.ask("short", "do")
        return "planner"

    planner = Does("planner", one_by_one, Does("long", stepping(2.5)), Does("short", stepping(1)))
    async with at_work(planner) as (conversation, _):
        receipt = conversation.intervene("x", delivery="after_step")
        await receipt.seen()
        assert trio.current_time() == 2.5
    assert not cut_off(conversation)


async def test_a_turn_that_ends_with_its_step_stands_as_finished_and_the_words_go_on_up(
    autojump_clock: MockClock,
) -> None:
    async with at_work(Does("boss", asking("worker"), Does("worker", stepping(1)))) as (conversation, started):
        receipt = conversation.intervene("x", delivery="after_step")
        assert (await started.reply()).message == "boss['x']['worker[]']"
        assert (receipt.reached, receipt.interrupted, receipt.told) == (("worker", "boss"), ("boss",), ("worker",))
    replies = [line for line in log(conversation) if line.startswith("worker > boss")]
    assert replies[0] == "worker > boss reply worker[]"


async def test_a_step_of_a_role_above_the_words_does_not_free_those_below(autojump_clock: MockClock) -> None:
    async def plan(post: Post, context: TurnContext) -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(context.ask, "a", "do")
            nursery.start_soon(step, context, "thinking", 9)
        return "planner"

    planner = Does("planner", plan, Does("a", stepping(1, 1, 1)))
    async with at_work(Does("boss", asking("planner", "b"), planner, Does("b", stepping(5)))) as (conversation, _):
        conversation.intervene("x", delivery="after_step")
        await trio.sleep(4)
        assert [line for line in log(conversation) if "note" in line] == ["a > a note step 0"]


async def test_who_was_held_and_is_not_reached_in_the_end_goes_on(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        async def ask() -> None:
            async with context.uninterruptible(grace=9):
                await trio.sleep(1)
                await context.ask("helper", "do")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(1)
            await step(context, "beside", 1)
        return "worker"

    boss = Does(
        "boss", asking("worker", "b"), Does("worker", work, Does("helper", sleeping(9))), Does("b", stepping(5))
    )
    async with at_work(boss) as (conversation, _):
        receipt = conversation.intervene("x", delivery="after_step")
        await receipt.stopped()
        assert (trio.current_time(), "worker" in receipt.reached) == (5, False)
        await trio.sleep(1.5)
        assert "worker > worker note beside" in log(conversation)


async def test_after_a_turn_the_words_reach_who_got_its_reply(autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", asking("worker"), Does("worker", stepping(1, 1)))) as (conversation, started):
        receipt = conversation.intervene("x", delivery="after_turn")
        assert receipt.action == "waiting"
        await receipt.stopped()
        await receipt.seen()
        assert (trio.current_time(), receipt.reached, receipt.interrupted) == (2, ("boss",), ("boss",))
        assert (await started.reply()).message == "boss['x']['worker[]']"
    assert not cut_off(conversation)


async def test_after_a_turn_waits_for_all_leaves_of_the_moment_and_for_no_other(autojump_clock: MockClock) -> None:
    async def plan(post: Post, context: TurnContext) -> str:
        await context.ask("a", "do")
        await context.ask("c", "do")
        return "planner"

    planner = Does("planner", plan, Does("a", sleeping(1)), Does("c", sleeping(9)))
    async with at_work(Does("boss", asking("planner", "b"), planner, Does("b", sleeping(3)))) as (conversation, _):
        receipt = conversation.intervene("x", delivery="after_turn")
        await receipt.stopped()
        assert (trio.current_time(), receipt.interrupted) == (3, ("c",))
        assert cut_off(conversation) == ["c began;"]


async def test_after_a_turn_waits_for_whom_the_request_was_handed_on_to(autojump_clock: MockClock) -> None:
    async def hand_on(post: Post, context: TurnContext) -> Post:
        await trio.sleep(1)
        return post.forward(to="clerk")

    boss = Does("boss", asking("desk"), Does("desk", hand_on), Does("clerk", sleeping(2)))
    async with at_work(boss) as (conversation, _):
        receipt = conversation.intervene("x", delivery="after_turn")
        await receipt.stopped()
        assert (trio.current_time(), receipt.interrupted) == (3, ("boss",))
    assert not cut_off(conversation)


async def test_after_a_turn_of_a_role_it_is_told(autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", asking("worker"), Does("worker", sleeping(2)))) as (conversation, _):
        receipt = conversation.intervene("x", role="worker", delivery="after_turn")
        assert not await receipt.seen()
        assert (receipt.reached, receipt.told, receipt.interrupted) == (("worker",), ("worker",), ())


@pytest.mark.parametrize("level", [1, 2, -1])
async def test_after_the_last_turn_the_words_are_missed_and_those_that_were_communicated_open_a_round(
    level: int, autojump_clock: MockClock
) -> None:
    async with at_work(Does("boss", sleeping(1))) as (conversation, started):
        missed = conversation.intervene("x", broadcast_level=level, delivery="after_turn")
        round_ = conversation.communicate("y", broadcast_level=level, delivery="after_turn")
        assert (missed.action, round_.action) == ("waiting", "waiting")
        assert (await started.reply()).message == "boss[]"
        with pytest.raises(Missed):
            await missed.reply()
        assert (await round_.reply()).message == "boss[]"
        assert (missed.action, round_.action) == ("missed", "started")
        await round_.stopped()
    assert [post.message for post in posts(conversation)] == ["q", "boss[]", "y", "boss[]"]


async def test_a_later_now_delivers_what_waits_for_a_step_before_itself(autojump_clock: MockClock) -> None:
    async with at_work(Does("worker", stepping(2, 2))) as (conversation, _):
        waiting = conversation.intervene("first", delivery="after_step")
        now = conversation.intervene("second")
        assert waiting.action == now.action == "intervened"
        await now.stopped()
        assert trio.current_time() == 0.5
        assert cut_off(conversation) == ["step 0"]
    assert [line for line in log(conversation) if "inter" in line] == [
        "User > worker intervention first",
        "User > worker intervention second",
    ]


async def test_what_waits_for_a_turn_waits_on_when_words_come_now(autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", asking("worker"), Does("worker", sleeping(2)))) as (conversation, _):
        waiting = conversation.intervene("first", delivery="after_turn")
        conversation.intervene("second")
        assert (waiting.action, waiting.interrupted) == ("waiting", ())
        await waiting.stopped()
        assert (trio.current_time(), waiting.interrupted) == (2.5, ("boss",))
    assert [line for line in log(conversation) if "inter" in line] == [
        "User > worker intervention second",
        "User > boss intervention first",
    ]


async def test_what_waits_for_a_turn_that_is_recalled_comes_with_the_words_that_did_it(
    autojump_clock: MockClock,
) -> None:
    async with at_work(Does("boss", asking("worker"), Does("worker", sleeping(2)))) as (conversation, started):
        waiting = conversation.intervene("first", delivery="after_turn")
        conversation.intervene("second", broadcast_level=2)
        await waiting.stopped()
        assert (trio.current_time(), waiting.action) == (0.5, "intervened")
        assert (await started.reply()).message.startswith("boss['first', 'second']")
    assert [line for line in log(conversation) if "boss inter" in line] == [
        "User > boss intervention first",
        "User > boss intervention second",
    ]


@pytest.mark.parametrize("levels", [(1, 1), (1, 2), (2, 1), (2, 3)])
async def test_two_in_one_step_wait_together_and_are_recorded_in_order(
    levels: tuple[int, int], autojump_clock: MockClock
) -> None:
    boss = Does("boss", asking("planner"), Does("planner", asking("worker"), Does("worker", stepping(1, 1))))
    async with at_work(boss) as (conversation, _):
        receipts = [
            conversation.intervene(f"words {level}.{number}", broadcast_level=level, delivery="after_step")
            for number, level in enumerate(levels)
        ]
        for receipt in receipts:
            await receipt.stopped()
        assert trio.current_time() == 1
        assert len(receipts[0].reached) >= levels[0] and receipts[1].interrupted
    assert not cut_off(conversation)
    for role in ("worker", "planner", "boss"):
        placed = [line for line in log(conversation) if f"> {role} inter" in line]
        assert placed == sorted(placed, key=lambda line: line[-1])
        assert len(placed) == sum(role in receipt.reached for receipt in receipts)


async def test_two_that_wait_for_turns_in_common_each_wait_for_their_own(autojump_clock: MockClock) -> None:
    boss = Does("boss", asking("a", "b"), Does("a", stepping(1, 1, 1)), Does("b", stepping(5, 1)))
    async with at_work(boss) as (conversation, _):
        all_leaves = conversation.intervene("x", delivery="after_step")
        one = conversation.intervene("y", role="a", delivery="after_step")
        await one.stopped()
        assert (trio.current_time(), one.interrupted, all_leaves.action) == (1, ("a",), "waiting")
        await all_leaves.stopped()
        assert (trio.current_time(), sorted(all_leaves.interrupted)) == (5, ["a", "b"])
    assert not cut_off(conversation)


@pytest.mark.parametrize("delivery", DELIVERIES)
async def test_words_are_accepted_in_the_call_and_settled_once(delivery: Delivery, autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", asking("worker"), Does("worker", stepping(1, 1)))) as (conversation, _):
        events = conversation.events()
        receipt = conversation.intervene("x", delivery=delivery)
        first = await anext(events)
        assert isinstance(first, WordsAccepted) and first.words.message == "x"
        await receipt.stopped()
        await conversation.wait_idle()
    seen = [event async for event in events if isinstance(event, WordsSettled)]
    assert [event.outcome for event in seen if event.words == receipt.id] == ["seen"]


@pytest.mark.parametrize("delivery", DELIVERIES)
async def test_words_that_wait_when_the_round_is_stopped_are_missed(
    delivery: Delivery, autojump_clock: MockClock
) -> None:
    async with at_work(Does("worker", stepping(1, 1))) as (conversation, started):
        receipts = [
            conversation.intervene("x", delivery=delivery),
            conversation.communicate("y", delivery=delivery),
        ]
        conversation.stop("enough")
        assert [receipt.action for receipt in receipts] == ["missed", "missed"]
        with pytest.raises(RoundStopped):
            await started.reply()
        for receipt in receipts:
            assert not (await receipt.stopped()).posts and not await receipt.seen()
    assert not [line for line in log(conversation) if "inter" in line]


async def test_a_turn_that_was_held_begins_no_step_when_the_round_is_stopped(autojump_clock: MockClock) -> None:
    begun: list[float] = []

    async def work(post: Post, context: TurnContext) -> str:
        for _ in range(3):
            async with context.step():
                begun.append(trio.current_time())
                await trio.sleep(1)
        return "a"

    boss = Does("boss", asking("a", "b"), Does("a", work), Does("b", stepping(5)))
    async with at_work(boss) as (conversation, _):
        conversation.intervene("x", delivery="after_step")
        await trio.sleep(2)
        conversation.stop("enough")
    assert begun == [0]


async def test_words_that_wait_when_the_conversation_closes_are_missed(autojump_clock: MockClock) -> None:
    async with open_conversation(Does("worker", stepping(1, 1))) as conversation:
        conversation.communicate("q")
        await trio.sleep(0.5)
        receipts = [conversation.intervene("x", delivery=delivery) for delivery in DELIVERIES]
    assert [receipt.action for receipt in receipts] == ["missed", "missed"]


@pytest.mark.parametrize("delivery", DELIVERIES)
async def test_words_that_wait_when_the_round_fails_open_a_round_if_they_may(
    delivery: Delivery, autojump_clock: MockClock
) -> None:
    async def fail_once(post: Post, context: TurnContext) -> str:
        if post.message == "q":
            async with context.step():
                await trio.sleep(1)
                raise OSError("no disk")
        return "boss"

    async with at_work(Does("boss", fail_once)) as (conversation, started):
        missed = conversation.intervene("x", delivery=delivery)
        round_ = conversation.communicate("y", delivery=delivery)
        with pytest.raises(RoleFailed):
            await started.reply()
        assert missed.action == "missed"
        assert (await round_.reply()).message == "boss"


@pytest.mark.parametrize("delivery", DELIVERIES)
async def test_words_that_wait_when_told_work_fails_open_a_round_if_they_may(
    delivery: Delivery, autojump_clock: MockClock
) -> None:
    async def fail(post: Post, context: TurnContext) -> None:
        await trio.sleep(1)
        raise OSError("no disk")

    async def tell(post: Post, context: TurnContext) -> str:
        if post.message == "q":
            await context.tell("background", "do")
            await context.ask("worker", "do")
        return "boss"

    boss = Does("boss", tell, Does("background", fail), Does("worker", stepping(3)))
    async with at_work(boss) as (conversation, started):
        missed = conversation.intervene("x", delivery=delivery)
        round_ = conversation.communicate("y", delivery=delivery)
        with pytest.raises(RoleFailed):
            await started.reply()
        assert missed.action == "missed"
        assert (await round_.reply()).message == "boss"
    assert not [line for line in log(conversation) if "inter" in line]


async def test_in_a_pause_the_running_step_ends_and_the_words_are_there_when_it_is_over(
    autojump_clock: MockClock,
) -> None:
    async with at_work(Does("worker", stepping(1, 1))) as (conversation, started):
        receipt = conversation.intervene("x", delivery="after_step")
        conversation.pause()
        await receipt.stopped()
        assert (trio.current_time(), receipt.action, conversation.paused) == (1, "intervened", True)
        await trio.sleep(9)
        assert log(conversation)[-1] == "User > worker intervention x"
        conversation.resume()
        assert (await started.reply()).message == "worker['x']"
    assert not cut_off(conversation)


async def test_words_that_wait_end_a_pause(autojump_clock: MockClock) -> None:
    async with at_work(Does("worker", stepping(1, 1))) as (conversation, _):
        conversation.pause()
        conversation.intervene("x", delivery="after_turn")
        assert not conversation.paused


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("delivery", DELIVERIES)
async def test_words_for_a_role_that_is_ended_while_they_wait_do_no_harm(
    level: int, delivery: Delivery, autojump_clock: MockClock
) -> None:
    async def start(post: Post, context: TurnContext) -> str:
        name = await context.start_subordinate(Does("started", stepping(9)))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, name, context)
            await trio.sleep(1)
            await context.end_subordinate(name)
        return "boss"

    async def ask(name: str, context: TurnContext) -> None:
        with pytest.raises(RequestRecalled):
            await context.ask(name, "do")

    async with at_work(Does("boss", start)) as (conversation, started):
        receipt = conversation.intervene("x", role="started", broadcast_level=level, delivery=delivery)
        assert (await started.reply()).message == "boss"
        assert receipt.action == ("missed" if delivery == "after_turn" else "intervened")
        assert not await receipt.seen()


@pytest.mark.parametrize("name", ["steps", "several leaves", "a block that is let finish", "background"])
@pytest.mark.parametrize("injection", ["after step, 2", "after turn", "after step, then now"])
def test_no_turn_stays_held_wherever_the_words_came(name: str, injection: str, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[Turn] = []
    begin = Turn.begin

    def remember(self: Turn) -> trio.CancelScope:
        turns.append(self)
        return begin(self)

    monkeypatch.setattr(Turn, "begin", remember)
    every_interrupt_point(SCENARIOS[name], INJECTIONS[injection], sample=12)
    assert turns and not [turn for turn in turns if turn.holds]


def test_no_step_is_ever_cut_by_words_that_wait_for_it() -> None:
    def inject(conversation: Conversation) -> Receipt:
        cuts.append(Cuts())
        conversation._router.events.subscribe(cuts[-1])
        return conversation.intervene("x", broadcast_level=levels[len(cuts) % 3], delivery="after_step")

    cuts: list[Cuts] = []
    levels = (1, 2, -1)
    every_interrupt_point(SCENARIOS["steps"], inject, sample=60)
    assert len(cuts) > 50
    assert {outcome for cut in cuts for outcome in cut.outcomes} <= {"done", "not_started"}
    assert not [text for cut in cuts for text in cut.partial]


class Cuts(Subscription[Event]):
    """How the calls of tools ended, and what was left in drafts."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[str] = []
        self.partial: list[str] = []

    def put(self, item: Event) -> None:
        match item:
            case ToolEnded(outcome=outcome):
                self.outcomes.append(outcome)
            case PostRecorded(post) if post.marks.state == "partial" and post.message:
                self.partial.append(post.message)
