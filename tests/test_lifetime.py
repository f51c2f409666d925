"""Lifetimes: when `live` is entered and left, what it outlives, and how it is opened anew when it breaks."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from callboard.runtime.actor import Actor
from callboard.runtime.context import LiveContext, TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import ConversationClosed, RoleFailed
from callboard.runtime.event import ActorEnded, ActorRestarted
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post

from .test_conversation import Role, Work, answers, asks, cleans_up, in_order, posts, sends, takes, tells

Live = Callable[["Lasting"], AbstractAsyncContextManager[object]]


@asynccontextmanager
async def plainly(role: "Lasting") -> AsyncIterator[object]:
    """Writes down when it is entered and left; its value counts the openings."""
    role.log.append(f"{role.name} in")
    role.opened += 1
    try:
        yield role.opened
    finally:
        role.log.append(f"{role.name} out")


async def reports(post: Post, context: TurnContext) -> Post:
    """Answers with its state."""
    return post.reply(str(context.state))


class Lasting(Role):
    """A role with a lifetime of its own."""

    def __init__(self, name: str, work: Work = reports, live: Live = plainly, *subordinates: Actor) -> None:
        super().__init__(name, work, *subordinates)
        self.lives = live
        self.log: list[str] = []
        self.opened = 0
        self.nursery: trio.Nursery | None = None
        """Where `with_a_nursery` runs its tasks."""

    def live(self, context: LiveContext) -> AbstractAsyncContextManager[object]:
        self.log.append(f"asked for {context.role}")
        return self.lives(self)


@asynccontextmanager
async def with_a_nursery(role: Lasting) -> AsyncIterator[object]:
    """Has a nursery in which something may crash."""
    async with plainly(role) as state, trio.open_nursery() as role.nursery:
        yield state
        role.nursery.cancel_scope.cancel()


@asynccontextmanager
async def never_opens(role: Lasting) -> AsyncIterator[object]:
    """Raises when it is entered."""
    role.opened += 1
    raise ConnectionError("no server")
    yield


def leaves_in(seconds: float) -> Live:
    """Takes its time when it is left in order."""

    @asynccontextmanager
    async def live(role: Lasting) -> AsyncIterator[object]:
        async with plainly(role) as state:
            yield state
            await trio.sleep(seconds)

    return live


@asynccontextmanager
async def leaves_slowly(role: Lasting) -> AsyncIterator[object]:
    """Takes three seconds when it is left, after a crash too."""
    try:
        async with with_a_nursery(role) as state:
            yield state
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep(3)


@asynccontextmanager
async def opens_slowly(role: Lasting) -> AsyncIterator[object]:
    """Takes two seconds to enter."""
    await trio.sleep(2)
    async with plainly(role) as state:
        yield state


@asynccontextmanager
async def raises_when_left(role: Lasting) -> AsyncIterator[object]:
    """Raises at the end."""
    yield None
    raise OSError("not left in order")


async def crash(error: Exception) -> None:
    """Raises, as a task in a role's own nursery."""
    raise error


class Crashing(Lasting):
    """Has a task of its lifetime crash while its turn goes on, if the post says so; else answers with its state."""

    def __init__(self, name: str = "root", live: Live = with_a_nursery) -> None:
        super().__init__(name, self.crash, live)

    async def crash(self, post: Post, context: TurnContext) -> Post:
        if post.message == "crash":
            context.draft.write("so far")
            assert self.nursery is not None
            self.nursery.start_soon(crash, OSError("kernel died"))
            await trio.sleep(9)
        return post.reply(str(context.state))


async def outcome(conversation: Conversation, message: str) -> str:
    """The reply's text, or the type of the error and of its cause."""
    try:
        return (await conversation.send(message)).message
    except RoleFailed as error:
        return f"{type(error).__name__} by {type(error.__cause__).__name__}"


async def test_live_is_entered_before_the_first_post_and_not_before() -> None:
    worker = Lasting("worker")
    async with open_conversation(Role("root", asks("worker"), worker)) as conversation:
        await wait_all_tasks_blocked()
        assert worker.log == []
        assert (await conversation.send("a")).message == "1"
        assert worker.log == ["asked for worker", "worker in"]
        assert (await conversation.send("b")).message == "1"
    assert worker.log == ["asked for worker", "worker in", "worker out"]


async def test_live_is_told_whose_lifetime_it_opens() -> None:
    class Curious(Role):
        @asynccontextmanager
        async def live(self, context: LiveContext) -> AsyncIterator[object]:
            yield (context.conversation, context.role, context.superior)

    options = ConversationOptions(id="conv-1")
    root = Role("root", asks("worker"), Curious("worker", reports))
    async with open_conversation(root, options=options) as conversation:
        assert (await conversation.send("a")).message == "('conv-1', 'worker', 'root')"


async def test_a_role_without_live_has_no_state() -> None:
    async with open_conversation(Role("root", reports)) as conversation:
        assert (await conversation.send("a")).message == "None"


async def test_an_interruption_never_cancels_live(autojump_clock: MockClock) -> None:
    root = Lasting("root", takes(1))
    async with open_conversation(root) as conversation:
        conversation.communicate("a")
        await trio.sleep(0.5)
        conversation.intervene("b")
        with trio.move_on_after(0.5):
            await conversation.send("c")
        assert root.log == ["asked for root", "root in"]


async def test_an_interruption_while_live_is_entered_lets_it_go_on(autojump_clock: MockClock) -> None:
    worker = Lasting("worker", reports, opens_slowly)
    async with open_conversation(Role("root", asks("worker"), worker)) as conversation:
        started = conversation.communicate("a")
        await trio.sleep(1)
        conversation.intervene("b", broadcast_level=2)
        assert (await started.reply()).message == "1"
        assert trio.current_time() == 2


async def test_lifetimes_are_left_in_reverse_order_of_starting() -> None:
    log: list[str] = []
    workers = [Lasting(name) for name in ("one", "two")]

    async def ask_both(post: Post, context: TurnContext) -> Post:
        for name in ("two", "one"):
            await context.ask(name)
        return post.reply()

    root = Lasting("root", ask_both, plainly, *workers)
    for role in (root, *workers):
        role.log = log
    async with open_conversation(root) as conversation:
        await conversation.send("a")
    assert [entry for entry in log if entry.endswith("out")] == ["two out", "one out", "root out"]


async def test_a_lifetime_is_left_after_the_last_turn_has_ended(autojump_clock: MockClock) -> None:
    async def cleans(post: Post, context: TurnContext) -> Post | None:
        try:
            return await cleans_up(3)(post, context)
        finally:
            worker.log.append("turn over")

    worker = Lasting("worker", cleans)
    async with open_conversation(Role("root", asks("worker"), worker)) as conversation:
        conversation.communicate("a")
        await trio.sleep(1)
    assert worker.log[-2:] == ["turn over", "worker out"]


async def test_a_lifetime_that_takes_too_long_to_leave_is_cancelled(autojump_clock: MockClock) -> None:
    slow, next_to_it = Lasting("root", reports, leaves_in(60)), Lasting("other")
    options = ConversationOptions(closing=5)
    async with open_conversation(slow, next_to_it, options=options) as conversation:
        await conversation.send("a")
    assert trio.current_time() == 5
    assert slow.log[-1] == "root out"


async def test_the_time_for_closing_begins_when_all_turns_have_ended(autojump_clock: MockClock) -> None:
    root = Lasting("root", cleans_up(9), leaves_in(3))
    async with open_conversation(root, options=ConversationOptions(closing=5)) as conversation:
        conversation.communicate("a")
        await trio.sleep(1)
    assert trio.current_time() == 13


async def test_all_lifetimes_together_have_the_time_for_closing(autojump_clock: MockClock) -> None:
    workers = [Lasting(name, reports, leaves_in(3)) for name in ("one", "two")]
    root = Role("root", asks("one"), *workers)
    async with open_conversation(root) as conversation:
        await conversation.send("a")
        root.work = asks("two")
        await conversation.send("b")
    assert trio.current_time() == 5
    assert [worker.log[-1] for worker in workers] == ["one out", "two out"]


async def test_a_live_that_cannot_be_entered_fails_the_post_that_brought_it_up() -> None:
    worker = Lasting("worker", reports, never_opens)
    async with open_conversation(Role("root", asks("worker"), worker)) as conversation:
        with pytest.raises(RoleFailed) as caught:
            await conversation.send("a")
    inner = caught.value.__cause__
    assert isinstance(inner, RoleFailed)
    assert (inner.role, repr(inner.__cause__)) == ("worker", "ConnectionError('no server')")


async def test_a_live_that_opens_at_the_second_try_serves_the_second_post() -> None:
    @asynccontextmanager
    async def late(role: Lasting) -> AsyncIterator[object]:
        role.opened += 1
        if role.opened == 1:
            raise ConnectionError
        yield role.opened

    async with open_conversation(Lasting("root", reports, late)) as conversation:
        assert await outcome(conversation, "a") == "RoleFailed by ConnectionError"
        assert await outcome(conversation, "b") == "2"


async def test_a_lifetime_whose_task_crashes_fails_its_turn_and_is_opened_anew(autojump_clock: MockClock) -> None:
    async with open_conversation(Crashing()) as conversation:
        events = conversation.events()
        assert await outcome(conversation, "crash") == "RoleFailed by OSError"
        assert await outcome(conversation, "b") == "2"
    assert [event async for event in events if isinstance(event, ActorRestarted)] == [
        ActorRestarted("root", "OSError: kernel died")
    ]
    assert posts(conversation)[1:3] == [
        ("root", "root", "so far", "partial"),
        ("root", "User", "root failed: OSError: kernel died", "error"),
    ]
    assert [round_.state for round_ in conversation.transcript().rounds] == ["failed", "finished"]


async def test_a_lifetime_that_cancels_itself_fails_its_turn_and_is_opened_anew(autojump_clock: MockClock) -> None:
    scopes: list[trio.CancelScope] = []

    @asynccontextmanager
    async def cancellable(role: Lasting) -> AsyncIterator[object]:
        with trio.CancelScope() as scope:
            scopes.append(scope)
            async with plainly(role) as state:
                yield state

    async def cancels(post: Post, context: TurnContext) -> Post:
        if post.message == "cancel":
            scopes[-1].cancel()
            await trio.sleep(1)
        return post.reply(str(context.state))

    async with open_conversation(Lasting("root", cancels, cancellable)) as conversation:
        assert await outcome(conversation, "cancel") == "RoleFailed by RuntimeError"
        assert await outcome(conversation, "b") == "2"


async def test_what_a_crashed_turn_had_asked_for_is_recalled_and_joined(autojump_clock: MockClock) -> None:
    role = Lasting("root", asks("worker"), with_a_nursery, Role("worker", cleans_up(5)))
    async with open_conversation(role) as conversation, trio.open_nursery() as nursery:
        outcomes = await in_order(nursery, *sends(conversation, "a"))
        assert role.nursery is not None
        role.nursery.start_soon(crash, OSError())
        await conversation.wait_idle()
        assert trio.current_time() == 5
    assert [type(outcome) for outcome in outcomes] == [RoleFailed]


async def test_a_told_turn_that_its_lifetime_takes_down_fails_the_round(autojump_clock: MockClock) -> None:
    root = Role("root", tells("worker", takes(9)), Crashing("worker"))
    async with open_conversation(root) as conversation:
        with pytest.raises(RoleFailed, match="worker failed: OSError") as caught:
            await conversation.send("crash")
    assert caught.value.role == "worker"


async def test_a_lifetime_is_opened_anew_three_times_in_a_minute_then_every_ask_raises() -> None:
    root = Crashing()
    async with open_conversation(Role("top", asks("root"), root)) as conversation:
        events = conversation.events()
        for _ in range(4):
            assert await outcome(conversation, "crash") == "RoleFailed by RoleFailed"
        assert root.opened == 4
        assert await outcome(conversation, "b") == "RoleFailed by RoleFailed"
        assert root.opened == 4
    found = [type(event) async for event in events if isinstance(event, ActorRestarted | ActorEnded)]
    assert found == [ActorRestarted] * 3 + [ActorEnded]


async def test_a_root_that_failed_too_often_makes_every_send_raise() -> None:
    async with open_conversation(Crashing()) as conversation, trio.open_nursery() as nursery:
        replies = conversation.replies()
        outcomes = await in_order(nursery, *sends(conversation, *["crash"] * 4))
        outcomes += await in_order(nursery, *sends(conversation, "b", "c"))
        assert [type(outcome) for outcome in outcomes] == [RoleFailed] * 6
        assert {repr(outcome.__cause__) for outcome in outcomes} == {"OSError('kernel died')"}
        await conversation.wait_idle()
    assert [round_.state for round_ in conversation.transcript().rounds] == ["failed"] * 6
    assert [reply.marks.kind async for reply in replies] == ["error"] * 6


async def test_words_that_a_failed_root_cannot_take_are_settled(autojump_clock: MockClock) -> None:
    async with open_conversation(Crashing()) as conversation:
        for _ in range(4):
            await outcome(conversation, "crash")
        receipt = conversation.communicate("b")
        with pytest.raises(RoleFailed):
            await receipt.reply()
        with trio.fail_after(1):
            assert not await receipt.seen()


async def test_posts_that_wait_for_a_role_that_fails_too_often_are_answered(autojump_clock: MockClock) -> None:
    async def ask_all(post: Post, context: TurnContext) -> Post:
        async def ask(name: str) -> None:
            with pytest.raises(RoleFailed):
                await context.ask("worker", "crash")
            answered.append(name)

        async with trio.open_nursery() as nursery:
            for number in range(9):
                nursery.start_soon(ask, str(number))
        return post.reply()

    answered: list[str] = []
    options = ConversationOptions(mailbox=2)
    root = Role("root", ask_all, Crashing("worker"))
    async with open_conversation(root, options=options) as conversation:
        await conversation.send("a")
    assert len(answered) == 9


async def test_restarts_older_than_a_minute_do_not_count(autojump_clock: MockClock) -> None:
    root = Crashing()
    async with open_conversation(root) as conversation:
        for _ in range(6):
            assert await outcome(conversation, "crash") == "RoleFailed by OSError"
            await trio.sleep(21)
        assert await outcome(conversation, "b") == "7"


async def test_an_error_on_leaving_live_leaves_the_conversation_as_itself() -> None:
    with pytest.raises(OSError, match="not left in order"):
        async with open_conversation(Lasting("root", reports, raises_when_left)) as conversation:
            assert (await conversation.send("a")).message == "None"


async def test_an_error_on_leaving_live_stands_beside_that_of_the_block() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        async with open_conversation(Lasting("root", reports, raises_when_left)) as conversation:
            await conversation.send("a")
            raise ValueError
    assert [type(error) for error in caught.value.exceptions] == [ValueError, OSError]


async def test_an_error_of_a_lifetime_that_was_cancelled_at_the_end_is_not_lost(autojump_clock: MockClock) -> None:
    @asynccontextmanager
    async def fails_late(role: Lasting) -> AsyncIterator[object]:
        yield None
        try:
            await trio.sleep(60)
        finally:
            raise OSError("killed the kernel")

    with pytest.raises(OSError, match="killed the kernel"):
        async with open_conversation(Lasting("root", reports, fails_late)) as conversation:
            await conversation.send("a")


host: ContextVar[str] = ContextVar("host", default="nobody")


@asynccontextmanager
async def sees_the_host(role: Lasting) -> AsyncIterator[object]:
    """Its value is the context variable; it writes down what that is at the end."""
    role.opened += 1
    role.log.append(host.get())
    try:
        async with trio.open_nursery() as role.nursery:
            yield host.get()
    finally:
        role.log.append(host.get())


async def test_live_sees_the_context_variables_of_the_opening() -> None:
    root = Lasting("root", reports, sees_the_host)
    host.set("opening")
    async with open_conversation(root) as conversation:
        host.set("sending")
        assert (await conversation.send("a")).message == "opening"


async def test_live_is_left_in_the_context_variables_of_the_opening() -> None:
    root = Lasting("root", reports, sees_the_host)
    host.set("opening")
    async with open_conversation(root) as conversation:
        host.set("sending")
        await conversation.send("a")
    assert root.log == ["asked for root", "opening", "opening"]


async def test_live_is_opened_anew_in_the_context_variables_of_the_opening(autojump_clock: MockClock) -> None:
    root = Crashing("root", sees_the_host)
    host.set("opening")
    async with open_conversation(root) as conversation:
        host.set("sending")
        await outcome(conversation, "crash")
        assert await outcome(conversation, "b") == "opening"


async def test_live_may_reset_a_context_variable_that_it_set() -> None:
    @asynccontextmanager
    async def sets(role: Lasting) -> AsyncIterator[object]:
        token = host.set("live")
        yield None
        host.reset(token)

    async with open_conversation(Lasting("root", reports, sets)) as conversation:
        await conversation.send("a")


async def test_a_post_asked_while_a_crashed_lifetime_is_left_is_served_by_the_next(autojump_clock: MockClock) -> None:
    role = Crashing("root", leaves_slowly)
    async with open_conversation(role) as conversation, trio.open_nursery() as nursery:
        outcomes = await in_order(nursery, *sends(conversation, "crash", "b"))
        await trio.sleep(1)
        assert outcomes == []
        await trio.sleep(3)
        assert (type(outcomes[0]), outcomes[1].message) == (RoleFailed, "2")


async def test_a_lifetime_that_crashes_idle_fails_no_post_that_comes_later(autojump_clock: MockClock) -> None:
    role = Lasting("root", reports, leaves_slowly)
    async with open_conversation(role) as conversation:
        await conversation.send("a")
        assert role.nursery is not None
        role.nursery.start_soon(crash, OSError())
        await trio.sleep(1)
        assert await outcome(conversation, "b") == "2"


async def test_asking_a_role_whose_lifetime_is_left_at_the_end_is_refused(autojump_clock: MockClock) -> None:
    async def send_late(conversation: Conversation) -> None:
        await trio.sleep(1)
        with pytest.raises(ConversationClosed):
            await conversation.send("b")
        assert trio.current_time() == 1

    root = Lasting("root", reports, leaves_in(3))
    async with trio.open_nursery() as hosts, open_conversation(root) as conversation:
        await conversation.send("a")
        hosts.start_soon(send_late, conversation)
    assert trio.current_time() == 3


async def test_a_lifetime_that_was_never_entered_is_not_left() -> None:
    worker = Lasting("worker")
    async with open_conversation(Role("root", answers, worker)) as conversation:
        await conversation.send("a")
    assert worker.log == []


async def test_leaving_the_block_while_live_is_being_entered_waits_for_it(autojump_clock: MockClock) -> None:
    root = Lasting("root", reports, opens_slowly)
    async with open_conversation(root) as conversation:
        receipt = conversation.communicate("a")
        await trio.sleep(1)
    with pytest.raises(ConversationClosed):
        await receipt.reply()
    assert (trio.current_time(), root.log[1:]) == (2, ["root in", "root out"])
