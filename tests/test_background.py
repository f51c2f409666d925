"""Work that nobody waits for: where its report arrives, who reaches it, and what outlives what."""

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import InsideTurn, RequestRecalled, RoleFailed, RoundStopped, UnknownRole
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.receipt import Delivery, Receipt
from callboard.runtime.testing import every_interrupt_point
from tests.injections import INJECTIONS
from tests.roles import Does, Work, asking, at_work, log, posts, sleeping, stepping
from tests.scenarios import SCENARIOS


def starting(seconds: float = 0, *names: str) -> Work:
    """Starts these roles, works for so many seconds; says what it has got when a report comes."""

    async def work(post: Post, context: TurnContext) -> str:
        words = [said.message for said in context.user_words]
        if post.marks.kind in ("reply", "error") or "report" in post.marks.extra:
            return f"{context.role} got {post.message}"
        for name in names or ("worker",):
            context.start_background(name, "do")
        await trio.sleep(seconds)
        return f"{context.role}{words}"

    return work


async def fail(post: Post, context: TurnContext) -> str:
    """Fails after two seconds."""
    await trio.sleep(2)
    raise OSError("no disk")


def asked(conversation: Conversation, role: str) -> list[Post]:
    """The requests to a role."""
    return [post for post in posts(conversation) if post.send_to == role and post.marks.kind == "message"]


def outcomes(conversation: Conversation, role: str) -> list[str]:
    """For each request to a role, how it was answered; all in one list."""
    ids = [post.id for post in asked(conversation, role)]
    answers = [post for post in posts(conversation) if post.marks.in_reply_to in ids and post.send_from != post.send_to]
    return [post.marks.kind if post.marks.state == "whole" else post.marks.state for post in answers]


async def test_a_report_arrives_in_the_starters_mailbox_while_the_round_runs(autojump_clock: MockClock) -> None:
    boss = Does("boss", asking("planner", "w"), Does("planner", starting()), Does("w", sleeping(9)))
    async with at_work(boss, Does("worker", sleeping(3))) as (conversation, started):
        assert (await started.reply()).message == "boss[]['planner[]', 'w[]']"
    assert log(conversation)[3:] == [
        "planner > worker message do",
        "planner > boss reply planner[]",
        "worker > planner reply worker[]",
        "planner > worker reply planner got worker[]",
        "w > boss reply w[]",
        "boss > User reply boss[]['planner[]', 'w[]']",
    ]


async def test_a_report_that_comes_when_no_round_runs_opens_one_for_the_user(autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", starting(), Does("worker", sleeping(3)))) as (conversation, started):
        replies = conversation.replies()
        assert (await started.reply()).message == "boss[]"
        assert (await anext(replies)).message == "boss got worker[]"
        assert trio.current_time() == 3
    assert [round_.state for round_ in conversation.transcript().rounds] == ["finished", "finished"]
    assert [round_.user_query for round_ in conversation.transcript().rounds] == ["q", "worker[]"]


async def test_a_report_that_was_not_taken_when_the_round_ended_opens_one(autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", starting(5), Does("worker", sleeping(3)))) as (conversation, started):
        replies = conversation.replies()
        assert (await anext(replies)).message == "boss[]"
        assert (await anext(replies)).message == "boss got worker[]"
        assert trio.current_time() == 5
        await started.reply()
    assert [len(round_.post_list) for round_ in conversation.transcript().rounds] == [4, 2]


async def test_two_reports_that_were_not_taken_open_two_rounds(autojump_clock: MockClock) -> None:
    boss = Does("boss", starting(5, "a", "b"), Does("a", sleeping(2)), Does("b", sleeping(3)))
    async with at_work(boss) as (conversation, _):
        replies = conversation.replies()
        assert [(await anext(replies)).message for _ in range(3)] == ["boss[]", "boss got a[]", "boss got b[]"]


async def test_a_new_attempt_finds_it_and_starts_no_second_one(autojump_clock: MockClock) -> None:
    started_posts: list[str] = []

    async def work(post: Post, context: TurnContext) -> str:
        if post.send_from == "User":
            started_posts.append(context.start_background("worker", "do").id)
            started_posts.append(context.start_background("worker", "do").id)
            await trio.sleep(1)
        return "boss"

    async with at_work(Does("boss", work, Does("worker", sleeping(3)))) as (conversation, _):
        conversation.intervene("x")
        await conversation.wait_idle()
    assert len(started_posts) == 4 and len(set(started_posts)) == 1
    assert outcomes(conversation, "worker") == ["reply"]


async def test_when_its_report_was_taken_another_can_be_started(autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", starting(), Does("worker", sleeping(1))), seconds=2) as (conversation, _):
        await conversation.send("again")
    assert outcomes(conversation, "worker") == ["reply", "reply"]


async def test_when_its_report_was_taken_in_the_round_another_can_be_started(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        if post.marks.kind == "message" or not post.message.endswith("2"):
            context.start_background("worker", "do")
        return "planner"

    async def count(post: Post, context: TurnContext) -> str:
        await trio.sleep(1)
        counted.append(post.id)
        return f"worker {len(counted)}"

    counted: list[str] = []
    boss = Does("boss", asking("planner", "w"), Does("planner", work), Does("w", sleeping(9)))
    async with at_work(boss, Does("worker", count)) as (conversation, _):
        await conversation.wait_idle()
    assert outcomes(conversation, "worker") == ["reply", "reply"]


async def test_a_report_of_the_tick_of_a_stop_opens_no_round(autojump_clock: MockClock) -> None:
    done = trio.Event()

    async def wait(post: Post, context: TurnContext) -> str:
        await done.wait()
        return "worker"

    async with at_work(Does("boss", starting(9), Does("worker", wait))) as (conversation, started):
        done.set()  # the worker is awake now, and can no longer be cancelled in this step
        conversation.stop("enough")
        with pytest.raises(RoundStopped):
            await started.reply()
    assert len(conversation.transcript().rounds) == 1
    assert outcomes(conversation, "worker") == ["reply"]


@pytest.mark.parametrize("level", [1, 2, -1])
async def test_words_without_a_role_spare_it(level: int, autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", starting(2), Does("worker", sleeping(3)))) as (conversation, started):
        receipt = conversation.intervene("x", broadcast_level=level)
        assert (receipt.reached, receipt.interrupted, receipt.spared) == (("boss",), ("boss",), ("worker",))
        assert (await started.reply()).message == "boss['x']"
    assert outcomes(conversation, "worker") == ["reply"]
    assert "worker > boss reply worker[]" in log(conversation)


@pytest.mark.parametrize("delivery, at", [("now", 0.5), ("after_step", 1), ("after_turn", 2)])
async def test_words_with_its_name_reach_it(delivery: Delivery, at: float, autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", starting(9), Does("worker", stepping(1, 1)))) as (conversation, _):
        receipt = conversation.intervene("x", role="worker", delivery=delivery)
        await receipt.stopped()
        assert trio.current_time() == at
        assert receipt.interrupted == (() if delivery == "after_turn" else ("worker",))
        assert receipt.reached == ("worker",)


async def test_stop_ends_it(autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", starting(9), Does("worker", sleeping(9)))) as (conversation, started):
        conversation.stop("enough")
        with pytest.raises(RoundStopped):
            await started.reply()
        assert trio.current_time() == 0.5
    assert outcomes(conversation, "worker") == ["partial"]


async def test_stop_ends_it_when_its_round_is_over(autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", starting(), Does("worker", sleeping(9)))) as (conversation, _):
        conversation.stop("enough")
        await conversation.wait_idle()
        assert trio.current_time() == 0.5
        assert (await conversation.send("again")).message == "boss[]"
    assert outcomes(conversation, "worker") == ["partial", "reply"]


async def test_wait_idle_waits_for_it_and_for_what_comes_of_its_report(autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", starting(), Does("worker", sleeping(3)))) as (conversation, _):
        await conversation.wait_idle()
        assert trio.current_time() == 3
        assert log(conversation)[-1] == "boss > User reply boss got worker[]"


async def test_what_it_fails_with_is_its_report_and_ends_no_round(autojump_clock: MockClock) -> None:
    boss = Does("boss", asking("planner", "w"), Does("planner", starting()), Does("w", sleeping(9)))
    async with at_work(boss, Does("worker", fail)) as (conversation, started):
        assert (await started.reply()).message == "boss[]['planner[]', 'w[]']"
    assert "planner > worker reply planner got worker failed: OSError: no disk" in log(conversation)
    assert outcomes(conversation, "worker") == ["error"]


async def test_what_it_fails_with_opens_a_round_when_none_runs(autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", starting(), Does("worker", fail))) as (conversation, _):
        replies = conversation.replies()
        assert (await anext(replies)).message == "boss got worker failed: OSError: no disk"


async def test_background_work_can_start_its_own(autojump_clock: MockClock) -> None:
    worker = Does("worker", starting(1, "helper"), Does("helper", sleeping(3)))
    async with at_work(Does("boss", starting(9), worker)) as (conversation, _):
        receipt = conversation.intervene("x", role="helper", broadcast_level=-1)
        assert receipt.reached == ("helper", "worker", "boss")
    assert outcomes(conversation, "helper") == outcomes(conversation, "worker") == ["reply"]
    assert "worker > helper reply worker got helper['x']" in log(conversation)


async def test_it_may_hand_its_request_on_and_the_last_one_reports(autojump_clock: MockClock) -> None:
    async def hand_on(post: Post, context: TurnContext) -> Post:
        await trio.sleep(1)
        return post.forward(to="clerk")

    boss = Does("boss", starting(), Does("worker", hand_on))
    async with at_work(boss, Does("clerk", sleeping(2))) as (conversation, _):
        await conversation.wait_idle()
    assert log(conversation)[-2:] == ["clerk > boss message clerk[]", "boss > User reply boss got clerk[]"]


async def test_a_report_for_a_role_that_was_ended_is_a_dead_letter(autojump_clock: MockClock) -> None:
    async def start(post: Post, context: TurnContext) -> str:
        name = await context.start_subordinate(Does("starter", starting()))
        await context.ask(name, "do")
        await context.end_subordinate(name)
        return "boss"

    async with at_work(Does("boss", start), Does("worker", sleeping(3))) as (conversation, started):
        assert (await started.reply()).message == "boss"
        await conversation.wait_idle()
        (letter,) = conversation.dead_letters()
        assert (letter.post.message, letter.reason) == ("worker[]", "starter takes no report any more")
    assert outcomes(conversation, "worker") == ["reply"]


async def test_a_busy_starter_takes_the_report_when_it_is_done(autojump_clock: MockClock) -> None:
    boss = Does("boss", asking("planner", "w"), Does("planner", starting(5)), Does("w", sleeping(9)))
    async with at_work(boss, Does("worker", sleeping(2))) as (conversation, _):
        await conversation.wait_idle()
    assert log(conversation)[4:7] == [
        "worker > planner reply worker[]",
        "planner > boss reply planner[]",
        "planner > worker reply planner got worker[]",
    ]


async def test_two_starters_of_one_role_get_a_report_each(autojump_clock: MockClock) -> None:
    boss = Does("boss", asking("a", "b", "w"), Does("a", starting()), Does("b", starting()), Does("w", sleeping(9)))
    async with at_work(boss, Does("worker", sleeping(2))) as (conversation, _):
        await conversation.wait_idle()
    said = log(conversation)
    assert "a > worker reply a got worker[]" in said and "b > worker reply b got worker[]" in said
    assert outcomes(conversation, "worker") == ["reply", "reply"]


async def test_it_outlives_its_round_and_records_into_the_next(autojump_clock: MockClock) -> None:
    worker = Does("worker", stepping(2, 2, 2))
    async with at_work(Does("boss", starting(), worker, Does("other", sleeping(3)))) as (conversation, _):
        await trio.sleep(2)
        await conversation.send("again")
        await conversation.wait_idle()
    rounds = conversation.transcript().rounds
    kept = [[post.message for post in round_.post_list if post.marks.kind == "note"] for round_ in rounds]
    assert kept == [["step 0"], ["step 1", "step 2"], []]


async def test_it_ends_with_the_conversation(autojump_clock: MockClock) -> None:
    async with open_conversation(Does("boss", starting(), Does("worker", sleeping(99)))) as conversation:
        await conversation.send("q")
        await trio.sleep(1)
    assert trio.current_time() == 1
    assert log(conversation)[-1] == "worker > boss reply partial worker began;"


async def test_an_unknown_role_is_refused(autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", starting(0, "stranger"))) as (_, started):
        with pytest.raises(RoleFailed) as failure:
            await started.reply()
    assert isinstance(failure.value.__cause__, UnknownRole)


def steering(
    role: str, *subordinates: Actor, level: int = 1, delivery: Delivery = "now", receipts: list[Receipt] | None = None
) -> Does:
    """boss starts worker, and speaks to a role after a second."""

    async def work(post: Post, context: TurnContext) -> str:
        if post.send_from != "User":
            return "boss took it"
        context.start_background("worker", "do")
        await trio.sleep(1)
        try:
            receipt = context.intervene(role, "x", broadcast_level=level, delivery=delivery)
        except (InsideTurn, UnknownRole) as error:
            return type(error).__name__
        if receipts is not None:
            receipts.append(receipt)
        await trio.sleep(9)
        return "boss"

    return Does("boss", work, *subordinates)


@pytest.mark.parametrize("delivery, at", [("now", 1), ("after_step", 3), ("after_turn", 5)])
async def test_a_role_can_speak_to_its_own_background_work(
    delivery: Delivery, at: float, autojump_clock: MockClock
) -> None:
    receipts: list[Receipt] = []
    boss = steering("worker", Does("worker", stepping(3, 2)), delivery=delivery, receipts=receipts)
    async with at_work(boss, seconds=1.1) as (conversation, started):
        (receipt,) = receipts
        assert receipt.action == ("intervened" if delivery == "now" else "waiting")
        await receipt.stopped()
        assert trio.current_time() == max(at, 1.1)
        assert (receipt.author, receipt.reached, receipt.action) == ("boss", ("worker",), "intervened")
        assert (await started.reply()).message == "boss"
    assert "boss > worker intervention x" in log(conversation)


async def test_a_role_can_speak_to_what_is_under_its_background_work(autojump_clock: MockClock) -> None:
    receipts: list[Receipt] = []
    worker = Does("worker", asking("helper"), Does("helper", sleeping(3)))
    async with at_work(steering("helper", worker, level=2, receipts=receipts)) as (conversation, _):
        await conversation.wait_idle()
        assert (receipts[0].reached, receipts[0].interrupted) == (("helper", "worker"), ("worker",))
    assert [line for line in log(conversation) if "inter" in line] == [
        "boss > helper intervention x",
        "boss > worker intervention x",
    ]


@pytest.mark.parametrize("role, level, error", [("worker", 2, "InsideTurn"), ("other", 1, "UnknownRole")])
async def test_a_role_can_speak_neither_to_strangers_nor_to_itself(
    role: str, level: int, error: str, autojump_clock: MockClock
) -> None:
    boss = steering(role, Does("worker", sleeping(3)), level=level)
    async with at_work(boss, Does("other", sleeping(1))) as (conversation, started):
        assert (await started.reply()).message == error
    assert not [line for line in log(conversation) if "inter" in line]


async def test_words_of_a_role_that_wait_never_cut_its_own_turn(autojump_clock: MockClock) -> None:
    attempts: list[int] = []
    receipts: list[Receipt] = []

    async def work(post: Post, context: TurnContext) -> str:
        if post.send_from == "User":
            attempts.append(context.attempt)
            context.start_background("worker", "do")
            await trio.sleep(1)
            receipts.append(context.intervene("helper", "x", broadcast_level=2, delivery="after_turn"))
            await context.ask("helper", "do")
        return "boss"

    worker = Does("worker", asking("helper"), Does("helper", sleeping(3)))
    async with at_work(Does("boss", work, worker)) as (_, started):
        assert (await started.reply()).message == "boss"
        assert (receipts[0].reached, receipts[0].interrupted) == (("helper",), ())
    assert attempts == [1]


@pytest.mark.parametrize("name", ["background", "background of a leaf"])
def test_every_injection_holds_at_sampled_moments_of_background_work(name: str) -> None:
    for inject in INJECTIONS.values():
        every_interrupt_point(SCENARIOS[name], inject, sample=1, limit=60)


async def test_a_role_that_nobody_waits_for_any_more_starts_nothing(autojump_clock: MockClock) -> None:
    refused: list[str] = []

    async def work(post: Post, context: TurnContext) -> str:
        try:
            await trio.sleep(9)
        except trio.Cancelled:
            try:
                context.start_background("worker", "do")
            except RequestRecalled as error:
                refused.append(error.role)
            raise
        return "done"

    boss = Does("boss", asking("planner"), Does("planner", work), Does("worker", sleeping(60)))
    async with at_work(boss) as (conversation, started):
        conversation.stop("enough")
        with pytest.raises(RoundStopped):
            await started.reply()
        assert trio.current_time() < 1
    assert refused == ["planner"]
    assert asked(conversation, "worker") == []
