"""Working time: it stands still in a pause and while a person is waited for, and no deadline passes meanwhile."""

import math

import pytest
import trio
import trio.lowlevel
from trio.testing import MockClock, wait_all_tasks_blocked

from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import LimitReached, NobodyToAsk, RoleFailed, RoundStopped
from callboard.runtime.limits import Limits
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.testing import every_interrupt_point, interrupt
from callboard.runtime.working_time import WorkingTime

from .scenarios import Curious, Trusting, later, scenario
from .test_conversation import Role, Work, answers, asks, posts, takes

# The clock


async def test_time_goes_on_as_trios_does_but_where_it_stands(autojump_clock: MockClock) -> None:
    time = WorkingTime()
    await trio.sleep(1)
    assert time.now() == trio.current_time()
    time.stand_still()
    await trio.sleep(5)
    assert time.now() == 1
    time.go_on()
    await trio.sleep(2)
    assert time.now() == 3


async def test_of_nested_holds_only_the_last_lets_it_go_on(autojump_clock: MockClock) -> None:
    time = WorkingTime()
    time.stand_still()
    await trio.sleep(1)
    with time.standing_still():
        await trio.sleep(1)
    assert time.now() == 0
    await trio.sleep(1)
    time.go_on()
    assert time.now() == 0
    await trio.sleep(1)
    assert time.now() == 1


async def test_a_scope_ends_later_by_all_that_it_stood_still(autojump_clock: MockClock) -> None:
    time = WorkingTime()
    with trio.CancelScope() as scope:
        time.limit(scope, 4)
        for _ in range(3):
            await trio.sleep(1)
            time.stand_still()
            await trio.sleep(10)
            time.go_on()
        await trio.sleep_forever()
    assert scope.cancelled_caught and trio.current_time() == 34


async def test_a_scope_begun_while_it_stands_still_ends_by_working_time(autojump_clock: MockClock) -> None:
    time = WorkingTime()
    time.stand_still()
    async with trio.open_nursery() as nursery:

        async def limited() -> None:
            with trio.CancelScope() as scope:
                time.limit(scope, 2)
                await trio.sleep_forever()
            assert scope.cancelled_caught

        nursery.start_soon(limited)
        await trio.sleep(10)
        time.go_on()
    assert trio.current_time() == 12


async def test_a_scope_that_ends_while_it_stands_still_is_left_alone(autojump_clock: MockClock) -> None:
    time = WorkingTime()
    scope = trio.CancelScope()
    with time.standing_still():
        time.limit(scope, 2)
        time.forget(scope)
    assert scope.deadline == math.inf and not time._scopes
    time.forget(scope)


async def test_a_time_without_end_costs_nothing() -> None:
    time = WorkingTime()
    scope = trio.CancelScope()
    time.limit(scope, math.inf)
    with time.standing_still():
        assert not time._scopes
    assert scope.deadline == math.inf


async def test_it_goes_on_if_what_waited_for_a_person_fails(autojump_clock: MockClock) -> None:
    time = WorkingTime()
    with pytest.raises(OSError), time.standing_still():
        await trio.sleep(3)
        raise OSError
    await trio.sleep(1)
    assert time.now() == 1


async def test_a_block_says_whether_its_time_came_first(autojump_clock: MockClock) -> None:
    time = WorkingTime()
    with time.move_on_at(2) as scope:
        await trio.sleep(1)
    assert not scope.cancelled_caught
    with time.move_on_at(2) as scope:
        await trio.sleep_forever()
    assert scope.cancelled_caught
    assert trio.current_time() == 2 and not time._scopes


async def test_what_a_scope_was_cancelled_by_has_passed_whatever_the_fractions(autojump_clock: MockClock) -> None:
    for number in range(1, 60):
        time = WorkingTime()
        with time.standing_still():
            assert not time.passed(0)
            await trio.sleep(number / 7)
        deadline = time.now() + number / 3
        assert not time.passed(deadline)
        with time.move_on_at(deadline) as scope:
            await trio.sleep_forever()
        assert scope.cancelled_caught
        assert time.passed(deadline)


# Pauses


def limited(**limits: float) -> ConversationOptions:
    """A round with so many seconds."""
    return ConversationOptions(limits=Limits(seconds=limits["seconds"]))


async def works_in_steps(post: Post, context: TurnContext) -> Post:
    """Asks four times for a second of work."""
    for _ in range(4):
        await context.ask("worker")
    return post.reply("done")


async def test_a_pause_takes_nothing_of_a_rounds_time(autojump_clock: MockClock) -> None:
    root = Role("root", works_in_steps, Role("worker", takes(1)))
    async with open_conversation(root, options=limited(seconds=5)) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(2.5)
        conversation.pause()
        await trio.sleep(100)
        conversation.resume()
        assert (await started.reply()).message == "done"
        assert trio.current_time() == pytest.approx(103.5, abs=0.01)


async def test_after_a_pause_the_round_has_what_it_had_left(autojump_clock: MockClock) -> None:
    root = Role("root", works_in_steps, Role("worker", takes(2)))
    async with open_conversation(root, options=limited(seconds=5)) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        conversation.pause()
        conversation.pause()
        await trio.sleep(100)
        conversation.resume()
        with pytest.raises(RoleFailed) as caught:
            await started.reply()
        assert isinstance(caught.value.__cause__, LimitReached)
        # The step that ran when it was paused went on and ended; the time that it took then is not counted.
        assert trio.current_time() == 105


async def test_a_round_that_begins_in_a_pause_has_its_time_from_the_resumption(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", takes(9)), options=limited(seconds=2)) as conversation:
        conversation.pause()
        conversation.enqueue("go")
        await trio.sleep(10)
        assert posts(conversation) == [("User", "root", "go", "message")]
        conversation.resume()
        await conversation.wait_idle()
        assert trio.current_time() == 12


@pytest.mark.parametrize("verb", ["stop", "intervene"])
async def test_what_ends_a_pause_lets_time_go_on(autojump_clock: MockClock, verb: str) -> None:
    async with open_conversation(Role("root", takes(9)), options=limited(seconds=5)) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        conversation.pause()
        await trio.sleep(7)
        conversation.stop("enough") if verb == "stop" else conversation.intervene("x")
        with pytest.raises(RoundStopped if verb == "stop" else RoleFailed):
            await started.reply()
        assert trio.current_time() == (8 if verb == "stop" else 12)
        with pytest.raises(RoleFailed):
            await conversation.send("again")
        assert trio.current_time() == (13 if verb == "stop" else 17)


# Questions to a person


async def asks_the_user(post: Post, context: TurnContext) -> Post:
    """Works a second, asks back, works a second, and says how many seconds it has left."""
    await trio.sleep(1)
    answer = await context.ask_superior("which year?")
    await trio.sleep(1)
    return post.reply(f"{answer.message}: {context.limits['seconds']:g}")


async def slow_person(question: Post) -> str:
    """Comes back after an hour."""
    await trio.sleep(3600)
    return "2025"


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_question_to_a_person_takes_nothing_of_a_rounds_time(autojump_clock: MockClock, depth: int) -> None:
    root = Role("root", asks_the_user) if depth == 1 else Role("root", asks("a"), Role("a", asks_the_user))
    options = ConversationOptions(limits=Limits(seconds=5), on_question=slow_person)
    async with open_conversation(root, options=options) as conversation:
        assert (await conversation.send("go")).message == "2025: 3"
        assert trio.current_time() == 3602


async def test_while_two_persons_are_waited_for_and_in_a_pause_time_stands_still(autojump_clock: MockClock) -> None:
    async def person(question: Post) -> str:
        await trio.sleep(100 if question.send_from == "a" else 200)
        return "2025"

    async def asks_both(post: Post, context: TurnContext) -> Post:
        async with trio.open_nursery() as nursery:
            for name in ("a", "b"):
                nursery.start_soon(context.ask, name)
        return post.reply(f"{context.limits['seconds']:g}")

    root = Role("root", asks_both, Role("a", asks_the_user), Role("b", asks_the_user))
    options = ConversationOptions(limits=Limits(seconds=5), on_question=person)
    async with open_conversation(root, options=options) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(150)
        conversation.pause()
        await trio.sleep(100)
        assert conversation._router.time.now() == 1
        conversation.resume()
        # The second halves of both fell into the time for which it stood still, for "b" and then for the pause.
        assert (await started.reply()).message == "4"


@pytest.mark.parametrize("verb", ["stop", "intervene", "leave"])
async def test_a_question_that_is_cut_lets_time_go_on(autojump_clock: MockClock, verb: str) -> None:
    options = ConversationOptions(limits=Limits(seconds=5), on_question=slow_person)
    async with open_conversation(Role("root", asks_the_user), options=options) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(2)
        if verb == "stop":
            conversation.stop("enough")
            with pytest.raises(RoundStopped):
                await started.reply()
        elif verb == "intervene":
            receipt = conversation.intervene("2025")
            await receipt.stopped()
            assert ("User", "root", "", "partial") in posts(conversation)
        await wait_all_tasks_blocked()
        assert conversation._router.time._holds == 0 or verb == "leave"
    assert conversation._router.time._holds == 0 and trio.current_time() == 2


async def test_what_the_persons_handler_raises_fails_the_question_and_time_goes_on(autojump_clock: MockClock) -> None:
    async def breaks(question: Post) -> str:
        await trio.sleep(10)
        raise OSError("no line")

    options = ConversationOptions(limits=Limits(seconds=5), on_question=breaks)
    async with open_conversation(Role("root", asks_the_user), options=options) as conversation:
        with pytest.raises(RoleFailed) as caught:
            await conversation.send("go")
        assert isinstance(caught.value.__cause__, RoleFailed) and caught.value.__cause__.role == "User"
        assert conversation._router.time.now() == 1


async def test_without_a_handler_there_is_nobody_to_ask() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        with pytest.raises(NobodyToAsk):
            await context.ask_superior("which year?")
        return post.reply("decided alone")

    async with open_conversation(Role("root", work)) as conversation:
        assert (await conversation.send("go")).message == "decided alone"


@pytest.mark.parametrize("ends", [answers, takes(9)])
async def test_a_request_that_ends_while_time_stands_still_leaves_no_scope_behind(
    autojump_clock: MockClock, ends: Work
) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        with trio.move_on_after(5):
            await context.ask("a", limits=Limits(seconds=3))
        return post.reply("done")

    async with open_conversation(Role("root", work, Role("a", ends)), options=limited(seconds=20)) as conversation:
        started = conversation.communicate("go")
        conversation.pause()
        await trio.lowlevel.checkpoint()
        conversation.resume()
        await wait_all_tasks_blocked()
        conversation.pause()
        await trio.sleep(50)
        conversation.resume()
        await started.reply()
        assert not conversation._router.time._scopes


def test_at_no_moment_does_an_interruption_leave_the_clock_standing() -> None:
    async def host(conversation: Conversation) -> None:
        await conversation.send("q")
        await conversation.wait_idle()
        assert conversation._router.time._holds == 0 and not conversation._router.time._scopes

    run = scenario(
        lambda: Trusting("boss", Curious("worker", 1)),
        host=host,
        on_question=later,
        limits=Limits(replies=100, seconds=60),
    )
    for level in (1, 2):
        every_interrupt_point(run, interrupt(level), sample=15)
