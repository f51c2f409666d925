"""Conversations: what each verb does and in which order, and how the block of `open_conversation` ends."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import (
    CallboardError,
    ConversationClosed,
    DuplicateName,
    InsideTurn,
    Missed,
    NoReply,
    RequestRecalled,
    RoleFailed,
    UnknownRole,
)
from callboard.runtime.event import DraftGrew, Event, EventsDropped, RoundEnded, WordsSettled
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.user_message import UserMessage

Work = Callable[[Post, TurnContext], Awaitable[Post | None]]


class Role(Actor):
    """Does what its function says."""

    def __init__(self, name: str, work: Work, *subordinates: Actor) -> None:
        self.name = name
        self.subordinates = subordinates
        self.work = work

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        return await self.work(post, context)


def takes(seconds: float) -> Work:
    """Writes a draft, works so long, answers with the words of the post and those that the user said since."""

    async def work(post: Post, context: TurnContext) -> Post:
        context.draft.write("so far")
        await trio.sleep(seconds)
        return post.reply(" ".join([post.message, *(words.message for words in context.user_words)]))

    return work


def cleans_up(seconds: float) -> Work:
    """Works until it is cancelled, and then so long under a shield."""

    async def work(post: Post, context: TurnContext) -> Post:
        context.draft.write("so far")
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(seconds)

    return work


def asks(name: str) -> Work:
    """Answers what another role answers."""

    async def work(post: Post, context: TurnContext) -> Post:
        return post.reply((await context.ask(name, post.message)).message)

    return work


answers = takes(0)


def tells(name: str, then: Work = answers) -> Work:
    """Tells another role, lets it begin, then does its own work."""

    async def work(post: Post, context: TurnContext) -> Post | None:
        await context.tell(name, post.message)
        await wait_all_tasks_blocked()
        return await then(post, context)

    return work


def fails(*errors: Exception) -> Work:
    """Raises the error, or all of them from tasks that run side by side."""

    async def work(post: Post, context: TurnContext) -> Post:
        if len(errors) == 1:
            raise errors[0]
        async with trio.open_nursery() as nursery:
            for error in errors:
                nursery.start_soon(_raise, error)
        raise AssertionError("the tasks raise")

    return work


async def _raise(error: Exception) -> None:
    raise error


async def gather(outcomes: list[Any], call: Callable[[], Awaitable[Any]]) -> None:
    """Adds what an awaited call gives, or the CallboardError that it raises."""
    try:
        outcomes.append(await call())
    except CallboardError as error:
        outcomes.append(error)


async def in_order(nursery: trio.Nursery, *calls: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Starts one task a call, each after the one before has got as far as it can; gives what they will gather."""
    outcomes: list[Any] = []
    for call in calls:
        nursery.start_soon(gather, outcomes, call)
        await wait_all_tasks_blocked()
    return outcomes


def sends(conversation: Conversation, *messages: str | UserMessage) -> list[Callable[[], Awaitable[Post]]]:
    """One call of `send` for each message."""
    return [partial(conversation.send, message) for message in messages]


def posts(conversation: Conversation) -> list[tuple[str, str, str, str]]:
    """All that is recorded: from, to, the message, and of what kind or how much of it it is."""
    recorded = [post for round_ in conversation.transcript().rounds for post in round_.post_list]
    return [
        (post.send_from, post.send_to, post.message, post.marks.kind if post.marks.state == "whole" else "partial")
        for post in recorded
    ]


def states(conversation: Conversation) -> list[tuple[str, str]]:
    """Each round's query and state."""
    return [(round_.user_query, round_.state) for round_ in conversation.transcript().rounds]


async def events_of(conversation: Conversation, into: list[Event]) -> None:
    """Collects events until the conversation ends."""
    async for event in conversation.events():
        into.append(event)


async def test_a_send_returns_the_reply_of_the_root() -> None:
    async with open_conversation(Role("root", asks("worker"), Role("worker", answers))) as conversation:
        reply = await conversation.send("a")
    assert (reply.send_from, reply.send_to, reply.message, reply.marks.kind) == ("root", "User", "a", "reply")
    assert states(conversation) == [("a", "finished")]


async def test_a_root_may_hand_the_round_on() -> None:
    async def hands_on(post: Post, context: TurnContext) -> Post:
        return post.forward("worker")

    async with open_conversation(Role("root", hands_on, Role("worker", answers))) as conversation:
        replies = conversation.replies()
        reply = await conversation.send("a")
        assert (reply.send_from, reply.send_to, reply.message) == ("worker", "User", "a")
        assert (await conversation.send("b")).message == "b"
    assert [reply.message async for reply in replies] == ["a", "b"]


async def test_sends_run_one_after_another_in_the_order_of_their_calls(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", takes(1))) as conversation, trio.open_nursery() as nursery:
        replies = await in_order(nursery, *sends(conversation, "a", "b", "c"))
    assert trio.current_time() == 3
    assert [reply.message for reply in replies] == ["a", "b", "c"]
    rounds = conversation.transcript().rounds
    assert [[post.message for post in round_.post_list] for round_ in rounds] == [["a", "a"], ["b", "b"], ["c", "c"]]
    assert [round_.id for round_ in rounds] == sorted({round_.id for round_ in rounds})


async def test_a_round_in_line_is_not_recorded_before_it_begins(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", takes(1))) as conversation, trio.open_nursery() as nursery:
        await in_order(nursery, *sends(conversation, "a", "b"))
        assert states(conversation) == [("a", "created")]
        assert conversation.statistics().turns == 1


async def test_a_cancelled_send_returns_when_its_work_has_ended(autojump_clock: MockClock) -> None:
    root = Role("root", asks("worker"), Role("worker", cleans_up(5)))
    async with open_conversation(root) as conversation:
        with trio.move_on_after(1) as scope:
            await conversation.send("a")
        assert trio.current_time() == 6
        assert scope.cancelled_caught
        assert conversation.statistics().turns == 0
    assert states(conversation) == [("a", "stopped")]
    assert ("worker", "root", "so far", "partial") in posts(conversation)


async def test_a_send_cancelled_in_line_leaves_the_line(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", takes(2))) as conversation, trio.open_nursery() as nursery:
        await in_order(nursery, *sends(conversation, "a"))
        with trio.move_on_after(1):
            await conversation.send("b")
        assert trio.current_time() == 1
        await conversation.send("c")
    assert states(conversation) == [("a", "finished"), ("c", "finished")]


async def test_a_message_sent_again_waits_for_the_same_reply(autojump_clock: MockClock) -> None:
    message = UserMessage("a", id="words-1")
    async with open_conversation(Role("root", takes(1))) as conversation, trio.open_nursery() as nursery:
        replies = await in_order(nursery, *sends(conversation, message, message))
        await wait_all_tasks_blocked()
        with trio.move_on_after(0.5):
            await conversation.send(message)
        assert states(conversation) == [("a", "created")]
    assert replies[0] is replies[1] is await conversation.send(message)
    assert states(conversation) == [("a", "finished")]


async def test_a_message_sent_again_after_a_cancelled_send_was_recalled(autojump_clock: MockClock) -> None:
    message = UserMessage("a", id="words-1")
    async with open_conversation(Role("root", takes(2))) as conversation:
        with trio.move_on_after(1):
            await conversation.send(message)
        with pytest.raises(RequestRecalled):
            await conversation.send(message)


async def test_a_message_sent_again_after_it_left_the_line_was_recalled(autojump_clock: MockClock) -> None:
    message = UserMessage("b", id="words-1")
    async with open_conversation(Role("root", takes(2))) as conversation, trio.open_nursery() as nursery:
        await in_order(nursery, *sends(conversation, "a"))
        with trio.move_on_after(1):
            await conversation.send(message)
        (outcome,) = await in_order(nursery, *sends(conversation, message))
        assert type(outcome) is RequestRecalled


async def test_a_message_said_again_gives_the_first_receipt(autojump_clock: MockClock) -> None:
    first, second = UserMessage("a", id="words-1"), UserMessage("b", id="words-2")
    async with open_conversation(Role("root", takes(1))) as conversation:
        started = conversation.communicate(first)
        await trio.sleep(0.5)
        intervened = conversation.intervene(second)
        assert conversation.communicate(first) is conversation.intervene(first) is started
        assert conversation.communicate(second) is conversation.intervene(second) is intervened
        assert await conversation.send(second) is await started.reply()
    assert [message for _, _, message, kind in posts(conversation) if kind == "intervention"] == ["b"]


async def test_communicate_starts_a_round_when_idle_and_intervenes_when_one_runs(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", takes(1))) as conversation:
        started = conversation.communicate("a")
        await trio.sleep(0.5)
        intervened = conversation.communicate("b")
        assert (started.action, intervened.action) == ("started", "intervened")
        assert (await started.reply()) is (await intervened.reply())
        assert trio.current_time() == 1.5
    assert states(conversation) == [("a", "finished")]
    assert posts(conversation)[-1] == ("root", "User", "a b", "reply")


async def test_what_a_cut_attempt_had_stands_before_the_words_that_cut_it(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", takes(1))) as conversation:
        conversation.communicate("a")
        await trio.sleep(0.5)
        receipt = conversation.intervene("b")
        await receipt.recorded()
        stopped = await receipt.stopped()
        assert await receipt.seen()
    assert [post.message for post in stopped.posts] == ["so far"]
    assert stopped.errors == ()
    assert [post[2:] for post in posts(conversation)[:3]] == [
        ("a", "message"),
        ("so far", "partial"),
        ("b", "intervention"),
    ]


async def test_a_receipt_names_whom_the_words_reached(autojump_clock: MockClock) -> None:
    root = Role("root", asks("worker"), Role("worker", takes(1)))
    async with open_conversation(root) as conversation:
        conversation.communicate("a")
        await trio.sleep(0.5)
        receipt = conversation.intervene("b", broadcast_level=2)
        assert (receipt.reached, receipt.interrupted) == (("worker", "root"), ("root",))
        assert (receipt.recalled, receipt.told, receipt.spared) == (("worker",), (), ())


async def test_words_that_wait_for_a_round_to_end_say_so(autojump_clock: MockClock) -> None:
    root = Role("root", tells("worker", fails(ValueError())), Role("worker", cleans_up(5)))
    async with open_conversation(root) as conversation:
        conversation.communicate("a")
        await trio.sleep(1)
        receipt = conversation.communicate("b")
        assert (receipt.action, states(conversation)) == ("waiting", [("a", "created")])
        await trio.sleep(5)
        assert receipt.action == "started"
        assert states(conversation)[0] == ("a", "failed")


async def test_words_that_come_as_the_round_ends_become_the_next(autojump_clock: MockClock) -> None:
    finish = trio.Event()

    async def work(post: Post, context: TurnContext) -> Post:
        await finish.wait()
        return post.reply(post.message)

    async with open_conversation(Role("root", work)) as conversation, trio.open_nursery() as nursery:
        await in_order(nursery, *sends(conversation, "a"))
        finish.set()
        receipt = conversation.communicate("b")
        assert (await receipt.reply()).message == "b"
        assert (receipt.action, await receipt.seen()) == ("started", True)
    assert states(conversation) == [("a", "finished"), ("b", "finished")]


async def test_an_intervention_that_meets_nobody_stores_nothing() -> None:
    async with open_conversation(Role("root", answers)) as conversation:
        receipt = conversation.intervene("a")
        assert (receipt.action, receipt.reached, await receipt.seen()) == ("missed", (), False)
        with pytest.raises(Missed):
            await receipt.reply()
    assert conversation.transcript().rounds == ()


async def test_an_intervention_that_comes_as_the_round_ends_is_missed(autojump_clock: MockClock) -> None:
    finish = trio.Event()

    async def work(post: Post, context: TurnContext) -> Post:
        await finish.wait()
        return post.reply("done")

    async with open_conversation(Role("root", work)) as conversation, trio.open_nursery() as nursery:
        replies = await in_order(nursery, *sends(conversation, "a"))
        finish.set()
        receipt = conversation.intervene("b")
        assert not await receipt.seen()
        assert receipt.action == "missed"
        with pytest.raises(Missed):
            await receipt.reply()
    assert [reply.message for reply in replies] == ["done"]
    assert [kind for *_, kind in posts(conversation)] == ["message", "reply"]


async def test_words_to_an_idle_role_of_a_running_round_are_told(autojump_clock: MockClock) -> None:
    root = Role("root", takes(1), Role("idle", takes(1)))
    async with open_conversation(root) as conversation:
        started = conversation.communicate("a")
        receipt = conversation.intervene("b", role="idle")
        assert (receipt.reached, receipt.told, receipt.interrupted) == (("idle",), ("idle",), ())
        await started.reply()
        assert trio.current_time() == 1
        assert not await receipt.seen()
    assert ("User", "idle", "b", "intervention") in posts(conversation)


async def test_words_to_an_unknown_role_are_refused_and_not_kept() -> None:
    message = UserMessage("b", id="words-1")
    async with open_conversation(Role("root", answers)) as conversation:
        with pytest.raises(UnknownRole):
            conversation.intervene(message, role="nobody")
        assert (await conversation.send(message)).message == "b"


@pytest.mark.parametrize("level", [0, True, 1.0])
@pytest.mark.parametrize("running", [False, True])
async def test_a_level_that_is_none_is_refused_and_nothing_kept(
    autojump_clock: MockClock, level: Any, running: bool
) -> None:
    message = UserMessage("b", id="words-1")
    async with open_conversation(Role("root", takes(1))) as conversation, trio.open_nursery() as nursery:
        await in_order(nursery, *sends(conversation, "a")[: int(running)])
        for verb in (conversation.communicate, conversation.intervene):
            with pytest.raises(ValueError, match="broadcast_level"):
                verb(message, broadcast_level=level)
        assert (await conversation.send(message)).message == "b"
    assert len(states(conversation)) == 1 + running


async def test_the_end_of_a_round_settles_the_words_that_started_it(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", takes(1))) as conversation:
        receipt = conversation.communicate("a")
        await receipt.reply()
        with trio.fail_after(1):
            assert await receipt.seen()


async def test_closing_settles_the_words_that_wait_in_line(autojump_clock: MockClock) -> None:
    root = Role("root", tells("worker", fails(ValueError())), Role("worker", cleans_up(5)))
    async with open_conversation(root) as conversation:
        conversation.communicate("a")
        await trio.sleep(1)
        receipt = conversation.communicate("b")
        assert receipt.action == "waiting"
    with pytest.raises(ConversationClosed):
        await receipt.reply()
    with trio.fail_after(1):
        assert not await receipt.seen()


async def test_words_that_left_the_line_are_settled(autojump_clock: MockClock) -> None:
    message = UserMessage("b", id="words-1")
    async with open_conversation(Role("root", takes(2))) as conversation, trio.open_nursery() as nursery:
        await in_order(nursery, *sends(conversation, "a"))
        with trio.move_on_after(1):
            await conversation.send(message)
        with trio.fail_after(1):
            assert not await conversation.communicate(message).seen()


async def test_the_receipt_of_a_message_that_was_sent_says_that_it_waits(autojump_clock: MockClock) -> None:
    message = UserMessage("b", id="words-1")
    async with open_conversation(Role("root", takes(1))) as conversation, trio.open_nursery() as nursery:
        await in_order(nursery, *sends(conversation, "a", message))
        assert conversation.communicate(message).action == "waiting"


async def test_replies_come_from_the_call_on_errors_too_until_the_end() -> None:
    async def work(post: Post, context: TurnContext) -> Post | None:
        return None if post.message == "none" else post.reply(post.message)

    async with open_conversation(Role("root", work)) as conversation:
        await conversation.send("before")
        replies = conversation.replies()
        await conversation.send("a")
        with pytest.raises(NoReply):
            await conversation.send("none")
    assert [(reply.message[:4], reply.marks.kind) async for reply in replies] == [("a", "reply"), ("root", "error")]
    assert [reply async for reply in conversation.replies()] == []


async def test_the_events_of_a_plain_round_come_in_the_order_of_what_happened() -> None:
    async with open_conversation(Role("root", asks("worker"), Role("worker", answers))) as conversation:
        events = conversation.events()
        await conversation.send("a")
    assert [type(event).__name__ async for event in events] == [
        "RoundBegan",
        "PostRecorded",
        "AttemptBegan",
        "PostRecorded",
        "AttemptBegan",
        "DraftGrew",
        "PostRecorded",
        "PostRecorded",
        "RoundEnded",
    ]


async def test_the_events_of_an_interrupted_round_tell_of_the_cut_and_both_attempts(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", takes(1))) as conversation:
        conversation.communicate("a")
        await trio.sleep(0.5)
        events = conversation.events()
        conversation.intervene("b")
        await conversation.wait_idle()
    found = [event async for event in events]
    assert [type(event).__name__ for event in found] == [
        "WordsAccepted",
        "AttemptCut",
        "PostRecorded",
        "PostRecorded",
        "AttemptBegan",
        "DraftGrew",
        "PostRecorded",
        "WordsSettled",
        "WordsSettled",
        "RoundEnded",
    ]
    assert [event.outcome for event in found if isinstance(event, WordsSettled)] == ["seen", "seen"]


async def test_a_reader_that_is_too_slow_loses_growth_first_and_is_told() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        for number in range(20):
            context.draft.write(str(number))
        return post.reply("done")

    async with open_conversation(Role("root", work)) as conversation:
        events = conversation.events(buffer=6)
        await conversation.send("a")
    found = [event async for event in events]
    assert found[0] == EventsDropped(19)
    assert [type(event) for event in found].count(DraftGrew) == 1
    assert isinstance(found[-1], RoundEnded)


async def test_a_buffer_holds_at_least_one_event() -> None:
    async with open_conversation(Role("root", answers)) as conversation:
        with pytest.raises(ValueError, match="at least one"):
            conversation.events(0)


async def test_the_error_of_a_reader_is_the_readers() -> None:
    async def read(conversation: Conversation) -> None:
        with pytest.raises(ZeroDivisionError):
            async for _ in conversation.events():
                raise ZeroDivisionError

    async with open_conversation(Role("root", answers)) as conversation, trio.open_nursery() as nursery:
        nursery.start_soon(read, conversation)
        await wait_all_tasks_blocked()
        assert (await conversation.send("a")).message == "a"


async def test_wait_idle_waits_for_told_work(autojump_clock: MockClock) -> None:
    root = Role("root", tells("worker"), Role("worker", takes(5)))
    async with open_conversation(root) as conversation:
        await conversation.send("a")
        assert (trio.current_time(), repr(conversation)[-8:]) == (0, "running>")
        with trio.move_on_after(1):
            await conversation.wait_idle()
        await conversation.wait_idle()
        assert (trio.current_time(), repr(conversation)[-5:]) == (5, "idle>")
    assert posts(conversation)[-1] == ("worker", "root", "a", "reply")


async def test_a_told_role_that_fails_ends_the_round_with_its_error(autojump_clock: MockClock) -> None:
    root = Role("root", tells("worker", takes(9)), Role("worker", fails(ValueError("why"))))
    async with open_conversation(root) as conversation:
        with pytest.raises(RoleFailed) as caught:
            await conversation.send("a")
        assert trio.current_time() == 0
    assert (caught.value.role, str(caught.value.__cause__)) == ("worker", "why")
    assert states(conversation) == [("a", "failed")]
    assert posts(conversation)[-1] == ("root", "User", "", "partial")


async def test_a_failed_round_ends_when_told_work_has_unwound(autojump_clock: MockClock) -> None:
    root = Role("root", tells("worker", fails(ValueError())), Role("worker", cleans_up(5)))
    async with open_conversation(root) as conversation:
        with pytest.raises(RoleFailed, match="root failed"):
            await conversation.send("a")
        assert trio.current_time() == 5


VERBS: dict[str, Callable[[Conversation], Any]] = {
    "send": lambda conversation: conversation.send("b"),
    "communicate": lambda conversation: conversation.communicate("b"),
    "intervene": lambda conversation: conversation.intervene("b"),
    "wait_idle": lambda conversation: conversation.wait_idle(),
}


class Reentrant(Role):
    """Calls a verb of a conversation from inside its turn, in one way or another."""

    def __init__(self, verb: str, way: str) -> None:
        super().__init__("root", self.call)
        self.verb = verb
        self.way = way
        self.caught: list[str] = []
        self.conversation: Conversation | None = None

    async def call(self, post: Post, context: TurnContext) -> Post:
        await getattr(self, self.way)()
        return post.reply("done")

    async def directly(self) -> None:
        assert self.conversation is not None
        with pytest.raises(InsideTurn) as caught:
            result = VERBS[self.verb](self.conversation)
            if self.verb in ("send", "wait_idle"):
                await result
        self.caught.append(f"{caught.value.verb} in {caught.value.role}")

    async def from_a_child_task(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.directly)

    async def from_a_thread(self) -> None:
        await trio.to_thread.run_sync(partial(trio.from_thread.run, self.directly))

    async def from_another_conversation(self) -> None:
        async def call(post: Post, context: TurnContext) -> Post:
            await self.directly()
            return post.reply()

        async with open_conversation(Role("inner", asks("worker"), Role("worker", call))) as inner:
            await inner.send("nested")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("way", ["directly", "from_a_child_task", "from_a_thread", "from_another_conversation"])
async def test_a_verb_from_inside_a_turn_is_refused(verb: str, way: str) -> None:
    root = Reentrant(verb, way)
    async with open_conversation(root) as root.conversation:
        assert (await root.conversation.send("a")).message == "done"
    assert root.caught == [f"{verb} in root"]


async def test_a_turn_may_send_to_another_conversation() -> None:
    async with open_conversation(Role("other", answers)) as other:

        async def work(post: Post, context: TurnContext) -> Post:
            return post.reply((await other.send("b")).message)

        async with open_conversation(Role("root", work)) as conversation:
            assert (await conversation.send("a")).message == "b"


async def test_leaving_the_block_answers_all_who_wait_outside(autojump_clock: MockClock) -> None:
    root = Role("root", asks("worker"), Role("worker", takes(9)))
    async with trio.open_nursery() as hosts, open_conversation(root) as conversation:
        outcomes = await in_order(hosts, *sends(conversation, "a", "b"))
        receipt = conversation.intervene("c", broadcast_level=2)
        hosts.start_soon(gather, outcomes, receipt.reply)
        await trio.sleep(1)
    assert [type(outcome) for outcome in outcomes] == [ConversationClosed] * 3
    assert states(conversation) == [("a", "stopped")]
    assert posts(conversation)[-2:] == [("worker", "root", "so far", "partial"), ("root", "User", "", "partial")]


async def test_a_conversation_that_was_left_refuses_new_work() -> None:
    async with open_conversation(Role("root", answers)) as conversation:
        pass
    with pytest.raises(ConversationClosed):
        await conversation.send("a")
    with pytest.raises(ConversationClosed):
        conversation.communicate("a")
    assert conversation.intervene("a").action == "missed"
    await conversation.wait_idle()
    conversation.begin_closing()
    assert [event async for event in conversation.events()] == []
    assert (conversation.transcript().rounds, repr(conversation)[-7:]) == ((), "closed>")


async def test_closing_ends_what_runs_and_the_block_goes_on(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", takes(9))) as conversation, trio.open_nursery() as nursery:
        outcomes = await in_order(nursery, *sends(conversation, "a", "b"))
        conversation.begin_closing()
        conversation.begin_closing()
        await conversation.wait_idle()
        await wait_all_tasks_blocked()
        assert [type(outcome) for outcome in outcomes] == [ConversationClosed] * 2
        assert trio.current_time() == 0


async def test_an_error_in_the_block_leaves_as_itself(autojump_clock: MockClock) -> None:
    with pytest.raises(ValueError, match="mine"):
        async with open_conversation(Role("root", cleans_up(5))) as conversation:
            conversation.communicate("a")
            await trio.sleep(1)
            raise ValueError("mine")
    assert trio.current_time() == 6
    assert states(conversation) == [("a", "stopped")]


async def test_names_that_clash_are_refused_at_the_opening() -> None:
    with pytest.raises(DuplicateName):
        async with open_conversation(Role("root", answers), Role("root", answers)):
            raise AssertionError("the block is not entered")


async def test_a_cancellation_from_outside_ends_all_and_goes_on(autojump_clock: MockClock) -> None:
    root = Role("root", asks("worker"), Role("worker", cleans_up(5)))
    with trio.move_on_after(1) as scope:
        async with open_conversation(root) as conversation:
            await conversation.send("a")
        raise AssertionError("the cancellation was swallowed")
    assert scope.cancelled_caught
    assert trio.current_time() == 6
    assert states(conversation) == [("a", "stopped")]


async def test_a_cancellation_from_outside_is_seen_though_the_host_shields_itself(autojump_clock: MockClock) -> None:
    with trio.move_on_after(1):
        async with open_conversation(Role("root", takes(9))) as conversation:
            with trio.CancelScope(shield=True), pytest.raises(ConversationClosed):
                await conversation.send("a")
            assert trio.current_time() == 1


async def test_a_single_error_of_parallel_tasks_is_the_cause_itself() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_raise, KeyError("only"))
        raise AssertionError("the task raises")

    async with open_conversation(Role("root", asks("worker"), Role("worker", work))) as conversation:
        with pytest.raises(RoleFailed) as caught:
            await conversation.send("a")
    inner = caught.value.__cause__
    assert isinstance(inner, RoleFailed)
    assert repr(inner.__cause__) == "KeyError('only')"


async def test_several_errors_of_parallel_tasks_are_the_cause_as_a_group() -> None:
    async with open_conversation(Role("root", fails(KeyError(), ValueError()))) as conversation:
        with pytest.raises(RoleFailed) as caught:
            await conversation.send("a")
    assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert {type(error) for error in caught.value.__cause__.exceptions} == {KeyError, ValueError}


async def test_a_role_that_raises_fails_its_turn_only() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        with pytest.raises(RoleFailed):
            await context.ask("worker", "first")
        return post.reply((await context.ask("worker", "second")).message)

    async def work_second(post: Post, context: TurnContext) -> Post:
        if post.message == "first":
            raise ValueError
        return post.reply(post.message)

    async with open_conversation(Role("root", work, Role("worker", work_second))) as conversation:
        assert (await conversation.send("a")).message == "second"
    assert states(conversation) == [("a", "finished")]


host: ContextVar[str] = ContextVar("host", default="nobody")


@asynccontextmanager
async def named(name: str) -> AsyncIterator[None]:
    """Sets the host's name for the block."""
    token = host.set(name)
    yield
    host.reset(token)


async def test_the_context_variables_of_each_host_reach_the_roles() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        return post.reply(host.get())

    async with open_conversation(Role("root", asks("worker"), Role("worker", work))) as conversation:
        replies = []
        for name in ("ann", "bob"):
            async with named(name):
                replies.append((await conversation.send("who?")).message)
    assert replies == ["ann", "bob"]


async def test_what_a_conversation_does_and_did_can_be_read_at_any_time(autojump_clock: MockClock) -> None:
    root = Role("root", asks("worker"), Role("worker", takes(1)))
    async with open_conversation(root) as conversation:
        conversation.communicate("a")
        await trio.sleep(0.5)
        statistics = conversation.statistics()
        assert (statistics.turns, list(statistics.mailboxes)) == (2, ["root", "worker"])
        assert [post.send_to for post in conversation.rounds("worker")[0].post_list] == ["worker"]
        assert conversation.transcript().roles == ("User", "root", "worker")
        assert conversation.dead_letters() == ()


async def test_a_told_post_that_is_recalled_unread_is_a_dead_letter(autojump_clock: MockClock) -> None:
    async def tell_twice(post: Post, context: TurnContext) -> Post:
        await context.tell("worker", "first")
        await context.tell("worker", "second")
        await wait_all_tasks_blocked()
        return post.reply()

    async with open_conversation(Role("root", tell_twice, Role("worker", takes(9)))) as conversation:
        await conversation.send("a")
    (letter,) = conversation.dead_letters()
    assert (letter.post.message, letter.reason) == ("second", "recalled before it was begun")
