"""Limits: what a round, or one request, may use; interruptions give nothing back, and no limit hangs or harms."""

import math
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, ClassVar

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import LimitReached, ModelError, RoleFailed, RoundStopped
from callboard.runtime.limits import Budget, Limits
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.testing import every_interrupt_point
from callboard.runtime.tool import Tool
from callboard.runtime.usage import Usage

from .injections import INJECTIONS
from .roles import Does, sleeping
from .scenarios import Careful, Forwarder, LateWorker, Trusting, Worker, later, ringing, scenario
from .test_conversation import Role, Work, answers, asks, posts, takes, tells


def limited(**limits: Any) -> ConversationOptions:
    """Options with these limits of a round."""
    return ConversationOptions(limits=Limits(**limits))


def spends(*amounts: int, then: Work = answers) -> Work:
    """Spends so many tokens, one amount after the other, then works."""

    async def work(post: Post, context: TurnContext) -> Post | None:
        for tokens in amounts:
            context.spend(model_calls=1, output_tokens=tokens)
        return await then(post, context)

    return work


def asks_with(name: str, then: Work = answers, **limits: Any) -> Work:
    """Asks another role within limits, then works."""

    async def work(post: Post, context: TurnContext) -> Post | None:
        await context.ask(name, limits=Limits(**limits))
        return await then(post, context)

    return work


def asks_all(*names: str) -> Work:
    """Asks several at once; answers with what each came to."""

    async def work(post: Post, context: TurnContext) -> Post:
        found: dict[str, str] = {}

        async def ask(name: str) -> None:
            try:
                found[name] = (await context.ask(name, "do")).message
            except (RoleFailed, LimitReached) as error:
                found[name] = type(error.__cause__ or error).__name__

        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(ask, name)
        return post.reply(str([found[name] for name in names]))

    return work


def says_what_is_left(*kinds: str) -> Work:
    """Answers with what of its limits is left."""

    async def work(post: Post, context: TurnContext) -> Post:
        return post.reply(str({kind: context.limits.get(kind) for kind in kinds}))

    return work


def reached(error: BaseException | None) -> LimitReached:
    """The LimitReached at the root of a failure."""
    while isinstance(error, RoleFailed):
        error = error.__cause__
    assert isinstance(error, LimitReached), repr(error)
    return error


async def failure(conversation: Conversation, message: str = "go") -> tuple[RoleFailed, LimitReached]:
    """What `send` raises, and the limit that it comes from."""
    with pytest.raises(RoleFailed) as caught:
        await conversation.send(message)
    return caught.value, reached(caught.value)


# What limits and amounts are


@pytest.mark.parametrize("kind", ["replies", "model_calls", "tokens"])
@pytest.mark.parametrize("limit", [0, -1, 1.0, "1", True, math.nan])
def test_a_limit_of_a_count_is_a_whole_number_above_0(kind: str, limit: Any) -> None:
    with pytest.raises(ValueError, match=f"{kind} is a whole number above 0, or None, not "):
        Limits(**{kind: limit})


@pytest.mark.parametrize("kind", ["seconds", "cost"])
@pytest.mark.parametrize("limit", [0, -0.1, "1", True, math.nan])
def test_a_limit_of_an_amount_is_a_number_above_0(kind: str, limit: Any) -> None:
    half: dict[str, Any] = {kind: 0.5}
    assert getattr(Limits(**half), kind) == 0.5
    with pytest.raises(ValueError, match=f"{kind} is a number above 0, or None, not "):
        Limits(**{kind: limit})


@pytest.mark.parametrize("limits", [None, 5, {"tokens": 5}])
async def test_limits_that_are_none_are_refused_where_they_are_given(limits: Any) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        with pytest.raises(TypeError, match="limits are Limits, not "):
            await context.ask("worker", limits=wrong)
        return post.reply("refused")

    wrong: Any = limits or 5

    with pytest.raises(TypeError, match="limits are Limits, not "):
        ConversationOptions(limits=limits)
    async with open_conversation(Role("root", work, Role("worker", answers))) as conversation:
        assert (await conversation.send("go")).message == "refused"


@pytest.mark.parametrize("kind", ["model_calls", "input_tokens", "output_tokens", "cost"])
@pytest.mark.parametrize("amount", [-1, math.nan, "1"])
async def test_what_is_no_amount_is_not_spent(kind: str, amount: Any) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        with pytest.raises(ValueError, match=f"{kind} is a .*number from 0 on, not "):
            context.spend(**{kind: amount})
        return post.reply(str(context.limits["tokens"]))

    async with open_conversation(Role("root", work), options=limited(tokens=10)) as conversation:
        assert (await conversation.send("go")).message == "10"
        assert conversation.usage.total == Usage(replies=1)


# Sums over the tree


async def test_what_is_used_counts_on_the_whole_line_before_the_limit_is_raised() -> None:
    line = Budget(Limits(tokens=100)), Limits(tokens=50), Limits(tokens=10)
    middle = Budget(line[1], 0, line[0])
    leaf = Budget(line[2], 0, middle)
    with pytest.raises(LimitReached, match="10 tokens"):
        leaf.spend(Usage(output_tokens=30))
    assert (line[0].left(0), middle.left(0), leaf.left(0)) == ({"tokens": 70}, {"tokens": 20}, {"tokens": -20})


async def test_what_a_subordinate_leaves_is_its_askers_again() -> None:
    root = Role("root", asks_with("worker", says_what_is_left("tokens"), tokens=80), Role("worker", spends(30)))
    async with open_conversation(root, options=limited(tokens=100)) as conversation:
        assert (await conversation.send("go")).message == "{'tokens': 70}"


async def test_a_request_has_the_least_of_what_its_line_has_left() -> None:
    middle = Role("middle", asks_with("leaf", tokens=1000), Role("leaf", spends(40, 1)))
    async with open_conversation(
        Role("root", asks_with("middle", tokens=40), middle), options=limited(tokens=500)
    ) as conversation:
        error, limit = await failure(conversation)
        assert (error.role, limit.which, limit.limit) == ("root", "tokens", 40)


async def test_using_up_a_limit_exactly_is_within_it() -> None:
    async with open_conversation(Role("root", spends(60, 40)), options=limited(tokens=100)) as conversation:
        await conversation.send("go")
        assert conversation.usage.total == Usage(replies=1, model_calls=2, output_tokens=100)


async def test_two_that_overdraw_at_one_tick_both_meet_the_limit_and_all_is_counted() -> None:
    a, b = Role("a", spends(60)), Role("b", spends(70))
    async with open_conversation(Role("root", asks_all("a", "b"), a, b), options=limited(tokens=50)) as conversation:
        assert (await conversation.send("go")).message == "['LimitReached', 'LimitReached']"
        assert conversation.usage.total.tokens == 130


async def test_a_new_round_has_the_whole_again() -> None:
    async with open_conversation(Role("root", spends(60)), options=limited(tokens=100)) as conversation:
        await conversation.send("go")
        await conversation.send("go")
        assert conversation.usage.total.tokens == 120


async def test_what_was_used_of_one_kind_is_not_laid_to_another() -> None:
    async def work(post: Post, context: TurnContext) -> Post | None:
        with pytest.raises(LimitReached, match="tokens"):
            context.spend(output_tokens=11)
        context.spend(model_calls=1)
        return post.reply("summed up")

    async with open_conversation(Role("root", work), options=limited(tokens=10, model_calls=2)) as conversation:
        assert (await conversation.send("go")).message == "summed up"


@pytest.mark.parametrize("start", ["told", "in the background"])
async def test_work_that_nobody_waits_for_spends_of_the_rounds_budget(start: str) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        if post.send_from == "worker":
            return post.reply("thanks")
        if start == "told":
            await context.tell("worker", "do")
        else:
            context.start_background("worker", "do")
        await trio.testing.wait_all_tasks_blocked()
        return post.reply(str(context.limits["tokens"]))

    async def asks_within(post: Post, context: TurnContext) -> Post:
        left = (await context.ask("starter", limits=Limits(tokens=5))).message
        return post.reply(f"{left} {context.limits['tokens']}")

    root = Role("root", asks_within, Role("starter", work), Role("worker", spends(30)))
    async with open_conversation(root, options=limited(tokens=100)) as conversation:
        assert (await conversation.send("go")).message == "5 70"


async def test_a_request_that_is_handed_on_keeps_its_budget() -> None:
    async def hands_on(post: Post, context: TurnContext) -> Post:
        context.spend(output_tokens=6)
        return post.forward("clerk")

    root = Role("root", asks_with("desk", tokens=10), Role("desk", hands_on))
    async with open_conversation(root, Role("clerk", spends(4, 1))) as conversation:
        error, limit = await failure(conversation)
        assert (limit.which, limit.limit) == ("tokens", 10)
        assert isinstance(error.__cause__, RoleFailed) and error.__cause__.role == "clerk"


# Replies


def asks_so_often(times: int, name: str = "worker", swallow: bool = False) -> Work:
    """Asks so many times in a row, then answers with how often it got an answer."""

    async def work(post: Post, context: TurnContext) -> Post:
        got = 0
        for _ in range(times):
            try:
                await context.ask(name, "do")
                got += 1
            except LimitReached:
                if not swallow:
                    raise
        return post.reply(str(got))

    return work


async def test_the_reply_that_reaches_the_limit_is_kept_and_the_round_fails_saying_how_to_raise_it() -> None:
    async with open_conversation(Role("root", asks_so_often(20), Role("worker", answers))) as conversation:
        error, limit = await failure(conversation)
        assert (limit.which, limit.limit) == ("replies", 10)
        assert "set limits=Limits(replies=...) in the conversation's options" in str(error)
        assert error.__cause__ is limit
        assert [way[:2] for way in posts(conversation)].count(("worker", "root")) == 10
        assert posts(conversation)[-2][:2] == ("worker", "root")
        assert conversation.transcript().rounds[0].state == "failed"


async def test_the_conversation_is_usable_after_a_round_that_reached_its_limit() -> None:
    root = Role("root", asks_so_often(20), Role("worker", answers))
    async with open_conversation(root, options=limited(replies=3)) as conversation:
        await failure(conversation)
        await failure(conversation, "again")
        root.work = answers
        assert (await conversation.send("once more")).message == "once more"


async def test_nine_answers_and_the_rounds_own_are_within_ten() -> None:
    async with open_conversation(Role("root", asks_so_often(9), Role("worker", answers))) as conversation:
        assert (await conversation.send("go")).message == "9"
        assert conversation.usage.total.replies == 10


async def test_an_asker_that_swallows_the_limit_cannot_go_on_asking_but_may_answer() -> None:
    root = Role("root", asks_so_often(20, swallow=True), Role("worker", answers))
    async with open_conversation(root, options=limited(replies=4)) as conversation:
        assert (await conversation.send("go")).message == "3"
        assert conversation.usage.by_role["worker"].replies == 4


async def test_a_role_that_asks_a_failing_one_again_and_again_comes_to_an_end() -> None:
    failures: list[str] = []

    async def fails(post: Post, context: TurnContext) -> Post:
        raise OSError("no disk")

    async def insists(post: Post, context: TurnContext) -> Post:
        while True:
            try:
                await context.ask("worker", "do")
            except RoleFailed as failed:
                failures.append(str(failed))

    async with open_conversation(Role("root", insists, Role("worker", fails)), options=limited(replies=5)) as talk:
        _, limit = await failure(talk)
        assert limit.which == "replies"
        assert failures == ["worker failed: OSError: no disk"] * 5


async def test_an_asker_that_swallows_the_limit_cannot_start_background_work() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        with pytest.raises(LimitReached):
            await context.ask("worker")
        with pytest.raises(LimitReached):
            context.start_background("worker")
        return post.reply("gave up")

    async with open_conversation(
        Role("root", work, Role("worker", answers)), options=limited(replies=1)
    ) as conversation:
        assert (await conversation.send("go")).message == "gave up"


async def test_the_limit_of_one_request_counts_what_is_below_it_alone() -> None:
    middle = Role("middle", asks_so_often(5, "leaf"), Role("leaf", answers))
    async with open_conversation(
        Role("root", asks_with("middle", replies=3), middle), options=limited(replies=100)
    ) as conversation:
        error, limit = await failure(conversation)
        assert (limit.which, limit.limit) == ("replies", 3)
        assert error.role == "root" and isinstance(error.__cause__, RoleFailed) and error.__cause__.role == "middle"


@pytest.mark.parametrize("replies", [1, 7])
async def test_roles_that_tell_each_other_for_ever_reach_the_limit(autojump_clock: MockClock, replies: int) -> None:
    turns = count()

    def tells_on(name: str) -> Work:
        async def work(post: Post, context: TurnContext) -> Post:
            assert next(turns) < 20, "nothing ends them"
            await context.tell(name, "your turn")
            return post.reply("told on")

        return work

    root = Role("root", tells("a", takes(5)), Role("a", tells_on("b")), Role("b", tells_on("a")))
    async with open_conversation(root, options=limited(replies=replies)) as conversation:
        _, limit = await failure(conversation)
        assert (limit.which, limit.limit) == ("replies", replies)
        assert conversation.usage.total.replies == replies
        root.work = answers
        assert (await conversation.send("again")).message == "again"


# Seconds


async def test_a_round_fails_at_its_deadline_with_what_it_had_kept(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", takes(9)), options=limited(seconds=2)) as conversation:
        error, limit = await failure(conversation)
        assert (error.role, limit.which, limit.limit, trio.current_time()) == ("root", "seconds", 2, 2.0)
        assert posts(conversation)[1:] == [
            ("root", "root", "so far", "partial"),
            ("root", "User", str(error), "error"),
        ]


async def test_at_the_deadline_all_below_is_recalled_and_joined(autojump_clock: MockClock) -> None:
    ended: list[float] = []

    async def slow_to_leave(post: Post, context: TurnContext) -> Post:
        context.draft.write("half")
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
            ended.append(trio.current_time())
        raise AssertionError

    root = Role("root", asks("middle"), Role("middle", asks("leaf"), Role("leaf", slow_to_leave)))
    async with open_conversation(root, options=limited(seconds=2)) as conversation:
        await failure(conversation)
        assert (ended, trio.current_time()) == ([3.0], 3.0)
        assert not conversation.statistics().turns
        assert posts(conversation)[-3:-1] == [("leaf", "middle", "half", "partial"), ("middle", "root", "", "partial")]


async def test_a_deadline_ends_the_tool_that_runs_and_keeps_its_progress(autojump_clock: MockClock) -> None:
    async def dig(report: Callable[[str], None]) -> None:
        report("one shovel")
        await trio.sleep(60)

    async def work(post: Post, context: TurnContext) -> Post:
        return post.reply(await context.call(Tool(dig), {}))

    async with open_conversation(Role("root", work), options=limited(seconds=2)) as conversation:
        await failure(conversation)
        notes = [post.attachment_list[0].content for post in conversation.transcript().rounds[0].post_list[1:-1]]
        assert trio.current_time() == 2 and '"outcome":"interrupted"' in notes[1] and "one shovel" in notes[1]


@pytest.mark.parametrize(("grace", "ends"), [(5, 3.0), (0.5, 2.5)])
async def test_a_block_that_is_let_finish_has_its_grace_beyond_the_deadline(
    autojump_clock: MockClock, grace: float, ends: float
) -> None:
    behind: list[str] = []

    async def work(post: Post, context: TurnContext) -> Post:
        async with context.uninterruptible(grace=grace):
            await trio.sleep(3)
            context.record("block done")
        behind.append("ran on")
        return post.reply("done")

    async with open_conversation(Role("root", work), options=limited(seconds=2)) as conversation:
        await failure(conversation)
        assert (trio.current_time(), behind) == (ends, [])
        assert (("root", "root", "block done", "note") in posts(conversation)) is (ends == 3.0)


async def test_a_subordinate_in_such_a_block_has_its_grace_beyond_its_askers_deadline(
    autojump_clock: MockClock,
) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        async with context.uninterruptible(grace=1.5):
            await trio.sleep_forever()
        return post.reply("done")

    root = Role("root", asks("worker"), Role("worker", work))
    async with open_conversation(root, options=limited(seconds=2)) as conversation:
        await failure(conversation)
        assert trio.current_time() == 3.5


async def test_clean_up_that_raises_at_the_deadline_is_recorded_and_the_deadline_stays_the_cause(
    autojump_clock: MockClock,
) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("the disk is full")

    async with open_conversation(Role("root", work), options=limited(seconds=2)) as conversation:
        _, limit = await failure(conversation)
        assert limit.which == "seconds"
        assert ("root", "root", "OSError: the disk is full", "error") in posts(conversation)


async def test_a_deadline_that_passes_during_clean_up_fails_the_new_attempt_at_once(
    autojump_clock: MockClock,
) -> None:
    attempts: list[int] = []

    async def work(post: Post, context: TurnContext) -> Post:
        attempts.append(context.attempt)
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
        raise AssertionError

    async with open_conversation(Role("root", work), options=limited(seconds=2)) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        receipt = conversation.intervene("x")
        with pytest.raises(RoleFailed) as caught:
            await started.reply()
        assert (reached(caught.value).which, attempts) == ("seconds", [1, 2])
        assert not await receipt.seen()
        assert trio.current_time() == 5.0


async def test_what_finishes_at_the_tick_of_its_deadline_stands(autojump_clock: MockClock) -> None:
    done = trio.Event()

    async def work(post: Post, context: TurnContext) -> Post:
        await done.wait()
        return post.reply("just in time")

    async with open_conversation(Role("root", work), options=limited(seconds=2)) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        done.set()
        autojump_clock.jump(1)
        assert (await started.reply()).message == "just in time"


@pytest.mark.parametrize("early", [0, 1])
async def test_an_intervention_at_the_tick_of_the_deadline_gives_no_time_back(
    autojump_clock: MockClock, early: int
) -> None:
    async with open_conversation(Role("root", takes(9)), options=limited(seconds=2)) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(2 - early)
        autojump_clock.jump(early)
        receipt = conversation.intervene("x")
        with pytest.raises(RoleFailed) as caught:
            await started.reply()
        assert (reached(caught.value).which, trio.current_time()) == ("seconds", 2.0)
        assert not await receipt.seen() and (receipt.interrupted == ("root",) or not early)


async def test_the_deadline_of_one_of_several_requests_ends_that_one_alone(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        found: list[str] = []

        async def ask(name: str, limits: Limits | None) -> None:
            try:
                found.append((await context.ask(name, name, limits=limits)).message)
            except RoleFailed as error:
                found.append(f"{name}: {reached(error).which} at {trio.current_time()}")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "hurried", Limits(seconds=1))
            nursery.start_soon(ask, "calm", None)
        return post.reply("; ".join(found))

    root = Role("root", work, Role("hurried", takes(9)), Role("calm", takes(3)))
    async with open_conversation(root) as conversation:
        assert (await conversation.send("go")).message == "hurried: seconds at 1.0; calm"
        assert ("hurried", "hurried", "so far", "partial") in posts(conversation)


@pytest.mark.parametrize("mailbox", [1, 64])
async def test_a_deadline_ends_a_request_that_was_not_begun(autojump_clock: MockClock, mailbox: int) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        for _ in range(3):
            await context.tell("busy", "do")
        with pytest.raises(RoleFailed) as caught:
            await context.ask("busy", limits=Limits(seconds=1))
        return post.reply(f"{reached(caught.value).which} at {trio.current_time()}")

    options = ConversationOptions(mailbox=mailbox, tell_timeout=0)
    async with open_conversation(Role("root", work, Role("busy", takes(9))), options=options) as conversation:
        assert (await conversation.send("go")).message == "seconds at 1.0"
        await conversation.wait_idle()
        states = [
            post.marks.state for post in conversation.transcript().rounds[0].post_list if post.send_from == "busy"
        ]
        assert states[0] == "not_started"


# Interruptions give nothing back


class Spender(Actor):
    """Asks what is under it, streams and spends; each attempt holds what is left against what was left before."""

    def __init__(self, name: str, *subordinates: Actor) -> None:
        self.name = name
        self.subordinates = subordinates

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        self.look(context)
        for name in context.subordinates:
            await context.ask(name, "do")
        for number in range(2):
            await ringing()
            context.draft.write(f"{number};")
            context.spend(model_calls=1, input_tokens=5, output_tokens=5)
        self.look(context)
        return post.reply("done")

    def look(self, context: TurnContext) -> None:
        left = {**context.limits, "seconds": round(trio.current_time() + context.limits["seconds"], 6)}
        before = self.seen.get(context.round, left)
        gained = [kind for kind in left if left[kind] > before[kind]]
        assert not gained and left["seconds"] == before["seconds"], f"given back: {gained}"
        self.seen[context.round] = left

    seen: ClassVar[dict[str, dict[str, float]]] = {}
    """By round: its deadline, and what was left of the rest."""


TIGHT = Limits(replies=4, seconds=60, model_calls=7, tokens=80)
"""Three replies, six calls and 60 tokens are needed without an interruption."""


async def send_within(conversation: Conversation) -> None:
    """One message, and whatever becomes of it within the limits."""
    Spender.seen.clear()
    with suppress(RoleFailed, RoundStopped):
        await conversation.send("go")
    await conversation.wait_idle()
    for used in conversation.usage.by_round.values():
        assert used.replies <= 4 and used.model_calls <= 7 + 1 and used.tokens <= 80 + 10


def runs_within(injection: str, sample: int | None, seeds: int = 1) -> None:
    """The injection at so many moments, or at every one."""
    run = scenario(lambda: Spender("boss", Spender("planner", Spender("worker"))), host=send_within, limits=TIGHT)
    report = every_interrupt_point(run, INJECTIONS[injection], sample=sample, seeds=range(seeds))
    assert report.outcomes["told"], "no moment at which anything ran"


LEVELS = ["level 1", "level 2", "level -1", "2, 3", "communicate", "after step, 2", "nudge", "2, then stop"]


@pytest.mark.parametrize("injection", LEVELS)
def test_no_interruption_gives_anything_back(injection: str) -> None:
    runs_within(injection, sample=8)


@pytest.mark.slow
@pytest.mark.parametrize("injection", LEVELS)
def test_no_interruption_at_any_moment_gives_anything_back(injection: str) -> None:
    runs_within(injection, sample=None, seeds=3)


# A stalled stream


async def streams(draft: Any, gaps: list[float]) -> None:
    for gap in gaps:
        await trio.sleep(gap)
        draft.write("piece;")


def thinks(*gaps: float, stalled: float | None = None) -> Work:
    """One model call that writes a piece after each of these pauses."""

    async def work(post: Post, context: TurnContext) -> Post:
        async with context.step(stalled) as draft:
            await streams(draft, list(gaps))
        return post.reply(context.draft.take())

    return work


async def test_a_step_into_which_nothing_is_written_for_too_long_raises_a_model_error(
    autojump_clock: MockClock,
) -> None:
    options = ConversationOptions(stalled=10)
    async with open_conversation(Role("root", thinks(3, 60)), options=options) as conversation:
        with pytest.raises(RoleFailed) as caught:
            await conversation.send("go")
        error = caught.value.__cause__
        assert isinstance(error, ModelError) and (error.fault, error.may_retry) == ("server", True)
        assert "nothing has come from the model for 10 s" in str(error)
        assert 13 <= trio.current_time() <= 13 + 10 / 8
        assert posts(conversation)[1] == ("root", "root", "piece;", "partial")


async def test_a_stream_that_never_begins_is_stalled(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", thinks(99, stalled=10))) as conversation:
        with pytest.raises(RoleFailed):
            await conversation.send("go")
        assert trio.current_time() == 10.0


async def test_a_slow_but_steady_stream_is_not_stalled(autojump_clock: MockClock) -> None:
    options = ConversationOptions(stalled=10)
    async with open_conversation(Role("root", thinks(*[9.9] * 12)), options=options) as conversation:
        assert (await conversation.send("go")).message == "piece;" * 12


async def test_a_stream_in_many_small_pieces_that_then_stops_is_stalled(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", thinks(*[0.1] * 50, 99, stalled=10))) as conversation:
        with pytest.raises(RoleFailed):
            await conversation.send("go")
        assert 15 <= trio.current_time() <= 15 + 10 / 8


async def test_a_call_that_does_not_stream_can_say_so(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", thinks(1000, stalled=math.inf))) as conversation:
        assert (await conversation.send("go")).message == "piece;"


async def test_of_several_steps_at_once_each_has_its_own_time(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        async def step(gaps: list[float], stalled: float) -> None:
            try:
                async with context.step(stalled) as draft:
                    await streams(draft, gaps)
                    found.append(f"{stalled:g} done")
            except ModelError:
                found.append(f"{stalled:g} stalled at {trio.current_time():g}")

        found: list[str] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(step, [100.0], 5.0)
            nursery.start_soon(step, [50.0], 80.0)
        return post.reply(", ".join(found))

    async with open_conversation(Role("root", work)) as conversation:
        assert (await conversation.send("go")).message == "5 stalled at 5, 80 done"


async def test_a_role_that_handles_a_stalled_stream_may_call_again(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        try:
            return await thinks(99, stalled=5)(post, context) or post
        except ModelError:
            return await thinks(1, 1, stalled=5)(post, context) or post

    async with open_conversation(Role("root", work)) as conversation:
        assert (await conversation.send("go")).message == "piece;piece;"


async def test_an_intervention_at_the_tick_at_which_a_stream_stalls_is_an_interruption(
    autojump_clock: MockClock,
) -> None:
    async with open_conversation(Role("root", thinks(99, stalled=5))) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(5)
        receipt = conversation.intervene("x")
        with pytest.raises(RoleFailed):
            await started.reply()
        assert receipt.interrupted in ((), ("root",)) and trio.current_time() in (5.0, 10.0)


# Requests with a deadline, interrupted


class Hurried(Trusting):
    """Gives each request a third of a second."""

    async def ask(self, name: str, context: TurnContext) -> str:
        try:
            return (await context.ask(name, "do", limits=Limits(seconds=0.35))).message
        except RoleFailed as error:
            assert isinstance(error.__cause__, LimitReached)
            return "too late"


class HurriedPeer(Hurried):
    """Asks a role that is not under it."""

    def __init__(self, name: str, other: str) -> None:
        super().__init__(name)
        self.other = other

    def asked(self, context: TurnContext) -> list[str]:
        return [self.other]


HURRIED = {
    "in a mailbox": scenario(
        lambda: Trusting("boss", *(HurriedPeer(name, "w") for name in "abc")), Worker("w", 2), mailbox=2
    ),
    "without room": scenario(
        lambda: Trusting("boss", *(HurriedPeer(name, "w") for name in "abc")), Worker("w", 2), mailbox=1
    ),
    "handed on": scenario(
        lambda: Trusting("boss", HurriedPeer("a", "desk"), HurriedPeer("b", "desk"), Forwarder("desk")),
        Worker("clerk", 4),
    ),
    "in a block that is let finish": scenario(lambda: Hurried("boss", Careful()), on_question=later),
    "in a slow clean-up": scenario(lambda: Hurried("boss", LateWorker())),
}


@pytest.mark.parametrize("key", HURRIED)
@pytest.mark.parametrize("injection", ["level 1", "2, 1", "stop"])
def test_an_interruption_of_requests_with_a_deadline_breaks_nothing(key: str, injection: str) -> None:
    every_interrupt_point(HURRIED[key], INJECTIONS[injection], sample=5)


@pytest.mark.slow
@pytest.mark.parametrize("key", HURRIED)
@pytest.mark.parametrize("injection", [*LEVELS, "2, 1", "pause", "role and above"])
def test_an_interruption_at_any_moment_of_requests_with_a_deadline_breaks_nothing(key: str, injection: str) -> None:
    every_interrupt_point(HURRIED[key], INJECTIONS[injection])


async def test_the_error_post_of_a_limit_says_which_it_was(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        with suppress(RoleFailed):
            await context.ask("Worker", limits=Limits(seconds=2))
        return "done"

    async with open_conversation(Does("Boss", work, Does("Worker", sleeping(5)))) as conversation:
        await conversation.send("q")
    (round_,) = conversation.transcript().rounds
    (error,) = (post for post in round_.post_list if post.marks.kind == "error")
    assert error.marks.extra == {"limit": "seconds", "size": 2}
