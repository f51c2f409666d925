"""Blocks and tools that an interruption lets finish: for how long, what goes on in them, what does not come after."""

import math

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.context import TurnContext
from callboard.runtime.errors import LimitReached, RequestRecalled, RoleFailed, RoundStopped, ToolFailed
from callboard.runtime.limits import Limits
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.tool import Tool
from tests.roles import Does, Work, asking, at_work, log, posts, sleeping, step


def blocked(seconds: float, grace: float | None) -> Work:
    """Sleeps in a block that is let finish, and records when it is done, and behind it."""

    async def work(post: Post, context: TurnContext) -> str:
        words = [said.message for said in context.user_words]
        if words:
            return f"{context.role}{words}"
        async with context.uninterruptible(grace=grace):
            await trio.sleep(seconds)
            context.record("block done")
        context.record("behind")
        return f"{context.role} undisturbed"

    return work


def asking_in_a_block(name: str, grace: float) -> Work:
    """Asks a role in a block that is let finish."""

    async def work(post: Post, context: TurnContext) -> str:
        if context.attempt > 1:
            return "again"
        async with context.uninterruptible(grace=grace):
            answer = await context.ask(name, "do")
            context.record(f"block done with {answer.message}")
        return "undisturbed"

    return work


def notes(log: list[str]) -> list[str]:
    """The lines of notes."""
    return [line for line in log if " note " in line]


async def test_a_block_that_is_longer_than_its_grace_is_cancelled_when_that_is_over(autojump_clock: MockClock) -> None:
    async with at_work(Does("worker", blocked(50, 5)), seconds=2) as (conversation, started):
        receipt = conversation.intervene("x")
        assert (receipt.interrupted, receipt.spared) == (("worker",), ("worker",))
        await receipt.stopped()
        assert trio.current_time() == 7.0
        assert (await started.reply()).message == "worker['x']"
    assert not notes(log(conversation))


async def test_a_block_that_is_shorter_finishes_and_what_is_behind_it_does_not_run(autojump_clock: MockClock) -> None:
    async with at_work(Does("worker", blocked(4, 5)), seconds=2) as (conversation, started):
        receipt = conversation.intervene("x")
        await receipt.stopped()
        assert trio.current_time() == 4
        assert (await started.reply()).message == "worker['x']"
    assert log(conversation)[1:3] == ["worker > worker note block done", "User > worker intervention x"]
    assert len(notes(log(conversation))) == 1


async def test_the_grace_runs_from_the_interruption_on(autojump_clock: MockClock) -> None:
    async with at_work(Does("worker", blocked(50, 5)), seconds=49) as (conversation, _):
        conversation.intervene("x")
    assert notes(log(conversation)) == ["worker > worker note block done"]


async def test_without_an_interruption_a_block_takes_as_long_as_it_takes(autojump_clock: MockClock) -> None:
    async with at_work(Does("worker", blocked(50, 0))) as (_, started):
        assert (await started.reply()).message == "worker undisturbed"


async def test_a_second_intervention_does_not_prolong_the_grace(autojump_clock: MockClock) -> None:
    async with at_work(Does("worker", blocked(50, 5)), seconds=2) as (conversation, started):
        conversation.intervene("x")
        await trio.sleep(3)
        receipt = conversation.intervene("y")
        await receipt.stopped()
        assert trio.current_time() == 7
        assert (await started.reply()).message == "worker['x', 'y']"


async def test_the_conversation_has_a_grace_for_blocks_that_name_none(autojump_clock: MockClock) -> None:
    async with at_work(Does("worker", blocked(50, None)), seconds=2, grace=3) as (conversation, _):
        await conversation.intervene("x").stopped()
        assert trio.current_time() == 5


@pytest.mark.parametrize("grace", [-1, math.inf, math.nan, True, "5"])
async def test_a_grace_that_is_no_number_of_seconds_is_refused(grace: float, autojump_clock: MockClock) -> None:
    async with at_work(Does("worker", blocked(1, grace))) as (_, started):
        with pytest.raises(RoleFailed) as failure:
            await started.reply()
    assert isinstance(failure.value.__cause__, ValueError)


@pytest.mark.parametrize("times", [1, 2])
async def test_what_a_block_asks_is_not_recalled_while_it_goes_on(times: int, autojump_clock: MockClock) -> None:
    planner = Does("planner", asking("worker"), Does("worker", asking_in_a_block("helper", 9)))
    async with at_work(planner, Does("helper", sleeping(4))) as (conversation, _):
        for _ in range(times):
            receipt = conversation.intervene("x", broadcast_level=3)
        assert (receipt.recalled, receipt.spared) == (("worker",), ("worker",))
        await receipt.stopped()
        assert trio.current_time() == 4
    assert notes(log(conversation))[0] == "worker > worker note block done with helper[]"


async def test_what_a_block_asks_is_recalled_when_the_grace_is_over(autojump_clock: MockClock) -> None:
    worker, helper = Does("worker", asking_in_a_block("helper", 5)), Does("helper", sleeping(50))
    async with at_work(worker, helper) as (conversation, _):
        await conversation.intervene("x", role="worker").stopped()
        assert trio.current_time() == 5.5
    assert log(conversation)[2:4] == ["helper > worker reply partial helper began;", "User > worker intervention x"]


async def test_what_is_asked_beside_a_block_is_recalled_at_once(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(asking_in_a_block("inside", 9), post, context)
            nursery.start_soon(context.ask, "beside", "do")
        return "worker"

    others = Does("inside", sleeping(4)), Does("beside", sleeping(9))
    async with at_work(Does("worker", work), *others) as (conversation, _):
        receipt = conversation.intervene("x", role="worker")
        assert (receipt.recalled, receipt.spared) == (("beside",), ("worker",))
        kept = (await receipt.stopped()).posts
        assert trio.current_time() == 4
        assert [post.message for post in kept] == ["beside began;"]
    assert notes(log(conversation))[0] == "worker > worker note block done with inside[]"


async def test_a_block_that_asks_its_superior_is_answered_while_that_one_waits(autojump_clock: MockClock) -> None:
    async def answer(post: Post, context: TurnContext) -> str:
        await trio.sleep(3)
        return "2025"

    async def work(post: Post, context: TurnContext) -> str:
        async with context.uninterruptible(grace=9):
            context.record((await context.ask_superior("Which year?")).message)
        return "worker"

    boss = Does("boss", asking("worker"), Does("worker", work), answers=answer)
    async with at_work(boss) as (conversation, _):
        receipt = conversation.intervene("x", role="worker")
        await receipt.stopped()
        assert (trio.current_time(), receipt.recalled) == (3, ())
    assert notes(log(conversation))[0] == "worker > worker note 2025"


@pytest.mark.parametrize("asks_at", [0.0, 2.0])
async def test_a_block_whose_superior_starts_again_gets_no_answer(asks_at: float, autojump_clock: MockClock) -> None:
    ended: list[float] = []

    async def work(post: Post, context: TurnContext) -> str:
        async with context.uninterruptible(grace=9):
            await trio.sleep(asks_at)
            try:
                await context.ask_superior("Which year?")
            except RequestRecalled:
                ended.append(trio.current_time())
        return "worker"

    async def answer(post: Post, context: TurnContext) -> str:
        await trio.sleep(5)
        return "2025"

    boss = Does("boss", asking("worker"), Does("worker", work), answers=answer)
    async with at_work(boss) as (conversation, _):
        await conversation.intervene("x", role="boss").stopped()
        assert ended == [max(asks_at, 0.5)]


async def test_stop_waits_for_a_block_no_longer_than_its_grace(autojump_clock: MockClock) -> None:
    boss = Does("boss", asking("worker"), Does("worker", blocked(50, 5)))
    async with at_work(boss, seconds=2) as (conversation, started):
        conversation.stop("enough")
        with pytest.raises(RoundStopped):
            await started.reply()
        assert trio.current_time() == 7


async def test_leaving_waits_for_a_block_no_longer_than_its_grace(autojump_clock: MockClock) -> None:
    async with open_conversation(Does("worker", blocked(4, 5))) as conversation:
        conversation.communicate("q")
        await trio.sleep(2)
    assert trio.current_time() == 4
    assert notes(log(conversation)) == ["worker > worker note block done"]


@pytest.mark.parametrize("own, ended", [(3, 5), (None, 9)])
async def test_a_tool_that_is_let_finish_has_its_own_grace_or_the_conversations(
    own: float | None, ended: float, autojump_clock: MockClock
) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        tool = Tool(trio.sleep, name="nap", interruptible=False, grace=own)
        await context.call(tool, {"seconds": 50 if context.attempt == 1 else 0})
        return "worker"

    async with at_work(Does("worker", work), seconds=2, grace=7) as (conversation, _):
        receipt = conversation.intervene("x")
        assert receipt.spared == ("worker",)
        await receipt.stopped()
        assert trio.current_time() == ended
    outcomes = [post.attachment_list[0].content for post in posts(conversation) if post.attachment_list]
    assert ['"interrupted"' in str(one) for one in outcomes] == [False, True, False, False]


async def test_a_tool_that_is_let_finish_is_done_and_read_by_the_new_attempt(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        if context.attempt == 1:
            await context.call(Tool(trio.sleep, name="nap", interruptible=False, grace=9), {"seconds": 4})
            context.record("behind")
        return "worker"

    async with at_work(Does("worker", work), seconds=2) as (conversation, _):
        await conversation.intervene("x").stopped()
        assert trio.current_time() == 4
    assert '"done"' in str(posts(conversation)[2].attachment_list[0].content)
    assert "worker > worker note behind" not in log(conversation)


@pytest.mark.parametrize("inner, outer, ended", [(50, 5, 7), (5, 50, 7)])
async def test_of_blocks_in_one_another_the_shorter_grace_holds(
    inner: float, outer: float, ended: float, autojump_clock: MockClock
) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        if context.attempt == 1:
            async with context.uninterruptible(grace=outer), context.uninterruptible(grace=inner):
                await trio.sleep(99)
        return "worker"

    async with at_work(Does("worker", work), seconds=2) as (conversation, _):
        await conversation.intervene("x").stopped()
        assert trio.current_time() == ended


async def test_the_end_of_an_inner_block_does_not_let_the_interruption_in(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        if context.attempt == 1:
            async with context.uninterruptible(grace=9):
                async with context.uninterruptible(grace=9):
                    await trio.sleep(3)
                await trio.sleep(1)
                context.record("outer block done")
        return "worker"

    async with at_work(Does("worker", work), seconds=2) as (conversation, _):
        await conversation.intervene("x").stopped()
        assert trio.current_time() == 4
    assert notes(log(conversation)) == ["worker > worker note outer block done"]


async def test_what_a_block_asks_when_an_inner_one_has_ended_is_not_recalled(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        if context.attempt == 1:
            async with context.uninterruptible(grace=9):
                async with context.uninterruptible(grace=9):
                    await trio.sleep(1)
                context.record((await context.ask("helper", "do")).message)
        return "worker"

    async with at_work(Does("worker", work), Does("helper", sleeping(3)), seconds=2) as (conversation, _):
        assert conversation.intervene("x", role="worker").recalled == ()
    assert "worker > worker note helper[]" in log(conversation)


async def test_in_a_pause_a_block_goes_on_and_what_is_beside_it_stops(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        async def block() -> None:
            async with context.uninterruptible():
                await step(context, "first", 1)
                await step(context, "second", 9)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(block)
            await step(context, "beside", 1)
            await step(context, "beside too", 1)
        return "worker"

    async with at_work(Does("worker", work)) as (conversation, _):
        conversation.pause()
        await trio.sleep(20)
        assert {post.message for post in posts(conversation)} == {"q", "first", "second", "beside"}
        conversation.resume()


async def test_a_block_that_is_entered_by_a_clean_up_has_its_grace_from_then_on(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        try:
            await trio.sleep(50 if context.attempt == 1 else 0)
        finally:
            async with context.uninterruptible(grace=3):
                await trio.sleep(2 if context.attempt == 1 else 0)
                context.record("cleaned up")
                await trio.sleep(50 if context.attempt == 1 else 0)
        return "worker"

    async with at_work(Does("worker", work), seconds=2) as (conversation, _):
        await conversation.intervene("x").stopped()
        assert trio.current_time() == 5
    assert log(conversation)[1] == "worker > worker note cleaned up"


async def test_a_deadline_that_passes_in_a_block_lets_it_finish_within_its_grace(autojump_clock: MockClock) -> None:
    async def ask(post: Post, context: TurnContext) -> str:
        with pytest.raises(RoleFailed) as failure:
            await context.ask("worker", "do", limits=Limits(seconds=2))
        assert isinstance(failure.value.__cause__, LimitReached)
        return f"failed after {trio.current_time()} s"

    for seconds, ended in ((3, 3.0), (50, 7.0)):
        boss = Does("boss", ask, Does("worker", blocked(seconds, 5)))
        began = trio.current_time()
        async with at_work(boss) as (conversation, started):
            assert (await started.reply()).message == f"failed after {began + ended} s"
        assert notes(log(conversation)) == (["worker > worker note block done"] if seconds == 3 else [])


async def test_the_rounds_deadline_passes_the_same_way(autojump_clock: MockClock) -> None:
    boss = Does("boss", asking("worker"), Does("worker", blocked(50, 5)))
    async with at_work(boss, limits=Limits(seconds=2)) as (_, started):
        with pytest.raises(RoleFailed):
            await started.reply()
        assert trio.current_time() == 7


async def test_a_block_ends_a_failing_tool_as_any_other(autojump_clock: MockClock) -> None:
    async def fail() -> None:
        raise OSError("no disk")

    async def work(post: Post, context: TurnContext) -> str:
        with pytest.raises(ToolFailed):
            await context.call(Tool(fail, interruptible=False), {})
        await trio.sleep(2)
        return f"worker{[said.message for said in context.user_words]}"

    async with at_work(Does("worker", work)) as (conversation, _):
        receipt = conversation.intervene("x")
        assert receipt.spared == ()
        assert await receipt.seen()
