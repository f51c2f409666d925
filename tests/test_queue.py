"""Rounds put in line for later: seen, edited and withdrawn until they begin, held by a stop, ended by a closing."""

from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import ConversationClosed, RequestRecalled, RoleFailed, RoundStopped
from callboard.runtime.event import Event, QueueChanged, RoundBegan
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.queued import Queued
from callboard.runtime.subscription import Subscription
from callboard.runtime.user_message import UserMessage
from tests.situations import Clerk, rounds


def said(conversation: Conversation) -> list[str]:
    """What stands in line for later."""
    return [queued.message.message for queued in conversation.queued()]


async def test_what_is_enqueued_runs_after_what_stands_in_line_in_the_order_of_the_calls(
    autojump_clock: MockClock,
) -> None:
    async with open_conversation(Clerk()) as conversation, trio.open_nursery() as nursery:
        nursery.start_soon(conversation.send, "1")
        await trio.sleep(0.1)
        second = conversation.enqueue("2")
        nursery.start_soon(conversation.send, "3")
        await trio.sleep(0.1)
        fourth = conversation.enqueue("4")
        assert (said(conversation), second.position, fourth.position) == (["2", "4"], 0, 2)
        assert (await fourth.reply()).message == "4"
        assert [second.position, fourth.position, second.state, fourth.state] == [None, None, "over", "over"]
        assert rounds(conversation) == "1, 2, 3, 4"


async def test_it_begins_at_once_where_nothing_runs(autojump_clock: MockClock) -> None:
    async with open_conversation(Clerk()) as conversation:
        queued = conversation.enqueue("q")
        assert (queued.state, conversation.queued(), rounds(conversation)) == ("begun", (), "q open")
        assert (await queued.reply()).message == "q"


By = Callable[[Conversation, Queued], bool]
EDITS: dict[str, By] = {
    "by its handle": lambda conversation, queued: queued.edit("changed"),
    "by its id": lambda conversation, queued: conversation.edit(queued.id, "changed"),
}
WITHDRAWALS: dict[str, By] = {
    "by its handle": lambda conversation, queued: queued.withdraw(),
    "by its id": lambda conversation, queued: conversation.withdraw(queued.id),
}


@pytest.mark.parametrize("way", EDITS)
async def test_it_is_edited_in_its_place_until_it_begins(way: str, autojump_clock: MockClock) -> None:
    async with open_conversation(Clerk()) as conversation:
        started = conversation.communicate("q")
        queued, last = conversation.enqueue("first"), conversation.enqueue("last")
        name = queued.id
        assert EDITS[way](conversation, queued)
        assert (said(conversation), queued.id) == (["changed", "last"], name)
        await started.reply()
        assert not EDITS[way](conversation, queued)
        assert (await queued.reply()).message == "changed"
        assert not EDITS[way](conversation, queued)
        await last.reply()
        assert rounds(conversation) == "q, changed, last"


async def test_an_edit_of_the_text_keeps_the_rest_and_a_message_replaces_all_but_the_id(
    autojump_clock: MockClock,
) -> None:
    file = Attachment.create(AttachmentType.reply_content, "a,b")
    async with open_conversation(Clerk()) as conversation:
        conversation.communicate("q")
        queued = conversation.enqueue(UserMessage("first", (file,), id="mine"))
        assert conversation.edit("mine", "second")
        assert queued.message == UserMessage("second", (file,), id="mine")
        assert conversation.edit("mine", UserMessage("third", id="yours"))
        assert queued.message == UserMessage("third", id="mine")
        assert not conversation.edit("yours", "fourth")
        with pytest.raises(TypeError):
            queued.edit(4)  # type: ignore[arg-type]  # what is refused here
        await queued.reply()
        assert conversation.transcript().rounds[-1].post_list[0].marks.words == "mine"


@pytest.mark.parametrize("way", WITHDRAWALS)
async def test_it_is_withdrawn_until_it_begins(way: str, autojump_clock: MockClock) -> None:
    async with open_conversation(Clerk()) as conversation:
        started = conversation.communicate("q")
        queued, last = conversation.enqueue("first"), conversation.enqueue("last")
        assert WITHDRAWALS[way](conversation, queued)
        assert (said(conversation), queued.state, last.position) == (["last"], "over", 0)
        with pytest.raises(RequestRecalled):
            await queued.reply()
        assert not WITHDRAWALS[way](conversation, queued)
        await started.reply()
        assert not WITHDRAWALS[way](conversation, last)
        assert (await last.reply()).message == "last"
        assert rounds(conversation) == "q, last"


async def test_an_id_that_nobody_enqueued_is_neither_edited_nor_withdrawn(autojump_clock: MockClock) -> None:
    async with open_conversation(Clerk()) as conversation:
        conversation.communicate(UserMessage("q", id="running"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(conversation.send, UserMessage("s", id="sent"))
            await trio.sleep(0.1)
            for name in ("running", "sent", "nobody's"):
                assert not conversation.edit(name, "x")
                assert not conversation.withdraw(name)
        assert rounds(conversation) == "q, s"


async def stopped_over(conversation: Conversation) -> Queued:
    """A round that was put in line before a stop, when all has ended."""
    conversation.communicate("q")
    queued = conversation.enqueue("e")
    conversation.stop("enough")
    await conversation.wait_idle()
    return queued


async def test_a_stop_holds_it_for_as_long_as_nobody_speaks(autojump_clock: MockClock) -> None:
    async with open_conversation(Clerk()) as conversation:
        queued = await stopped_over(conversation)
        await trio.sleep(1000)
        conversation.stop("again")
        assert (said(conversation), queued.state, queued.position) == (["e"], "waiting", 0)
        assert queued.edit("changed")
        conversation.resume()
        assert (await queued.reply()).message == "changed"


async def test_what_is_withdrawn_from_a_line_that_is_held_is_gone(autojump_clock: MockClock) -> None:
    async with open_conversation(Clerk()) as conversation:
        queued = await stopped_over(conversation)
        assert queued.withdraw()
        assert (await conversation.send("next")).message == "next"
        assert rounds(conversation) == "q stopped, next"


async def test_sends_in_line_are_stopped_between_what_is_held(autojump_clock: MockClock) -> None:
    async with open_conversation(Clerk()) as conversation, trio.open_nursery() as nursery:
        conversation.communicate("q")
        conversation.enqueue("1")

        async def send() -> None:
            with pytest.raises(RoundStopped):
                await conversation.send("2")

        nursery.start_soon(send)
        await trio.sleep(0.1)
        conversation.enqueue("3")
        conversation.stop("enough")
        assert said(conversation) == ["1", "3"]
        await conversation.wait_idle()
        assert (await conversation.enqueue("4").reply()).message == "4"
        assert rounds(conversation) == "q stopped, 1, 3, 4"


async def test_a_round_that_fails_does_not_hold_the_line(autojump_clock: MockClock) -> None:
    class Failing(Clerk):
        async def receive(self, post: Post, context: TurnContext) -> Post:
            if post.message == "bad":
                raise ValueError("no such supplier")
            return await super().receive(post, context)

    async with open_conversation(Failing()) as conversation:
        conversation.communicate("q")
        bad, good = conversation.enqueue("bad"), conversation.enqueue("good")
        with pytest.raises(RoleFailed):
            await bad.reply()
        assert (await good.reply()).message == "good"


@pytest.mark.parametrize("shut", ["closed", "left"])
async def test_closing_ends_what_stands_in_line(shut: str, autojump_clock: MockClock) -> None:
    async with open_conversation(Clerk()) as conversation:
        conversation.communicate("q")
        queued, held = conversation.enqueue("e"), conversation.enqueue("f")
        if shut == "closed":
            conversation.begin_closing()
    assert (conversation.queued(), queued.state, held.position) == ((), "over", None)
    for late in (queued, held):
        assert not late.edit("x") and not late.withdraw() and not conversation.withdraw(late.id)
        with pytest.raises(ConversationClosed):
            await late.reply()
    with pytest.raises(ConversationClosed):
        conversation.enqueue("late")


async def test_closing_ends_what_is_held(autojump_clock: MockClock) -> None:
    async with open_conversation(Clerk()) as conversation:
        queued = await stopped_over(conversation)
    with pytest.raises(ConversationClosed):
        await queued.reply()


async def test_a_message_enqueued_again_is_the_first(autojump_clock: MockClock) -> None:
    once, changed = UserMessage("once", id="same"), UserMessage("twice", id="same")
    async with open_conversation(Clerk()) as conversation:
        conversation.communicate("q")
        first = conversation.enqueue(once)
        assert conversation.enqueue(changed) is first
        actions = [(receipt := conversation.communicate(changed)).action]
        assert (await conversation.send(changed)).message == "once"
        assert [*actions, receipt.action] == ["waiting", "started"]
        again = conversation.enqueue(changed)
        assert (again.id, again.state, (await again.reply()).message) == ("same", "over", "once")
        assert rounds(conversation) == "q, once"


async def test_a_message_enqueued_again_after_it_was_withdrawn_stays_withdrawn(autojump_clock: MockClock) -> None:
    once = UserMessage("once", id="same")
    async with open_conversation(Clerk()) as conversation:
        conversation.communicate("q")
        conversation.enqueue(once).withdraw()
        with pytest.raises(RequestRecalled):
            await conversation.enqueue(once).reply()
        await conversation.wait_idle()
        assert rounds(conversation) == "q"


async def test_words_that_were_said_into_a_round_are_not_asked_again(autojump_clock: MockClock) -> None:
    once = UserMessage("x", id="same")
    async with open_conversation(Clerk()) as conversation:
        conversation.communicate("q")
        conversation.communicate(once)
        assert (await conversation.enqueue(once).reply()).message == "q+x"
        assert rounds(conversation) == "q"


async def test_every_change_of_the_line_is_an_event(autojump_clock: MockClock) -> None:
    seen: list[tuple[str, ...] | str] = []

    async def read(events: Subscription[Event]) -> None:
        async for event in events:
            if isinstance(event, QueueChanged):
                seen.append(event.waiting)
            elif isinstance(event, RoundBegan):
                seen.append(event.user_query)

    async with trio.open_nursery() as nursery, open_conversation(Clerk()) as conversation:
        nursery.start_soon(read, conversation.events())
        await conversation.send("q")
        conversation.enqueue(UserMessage("1", id="a"))
        conversation.enqueue(UserMessage("2", id="b"))
        conversation.enqueue(UserMessage("3", id="c"))
        conversation.edit("c", "4")
        conversation.withdraw("b")
        await conversation.wait_idle()
        conversation.begin_closing()
    assert seen == ["q", ("a",), (), "1", ("b",), ("b", "c"), ("b", "c"), ("c",), (), "4"]


async def test_the_wait_for_a_reply_is_the_waiters_alone(autojump_clock: MockClock) -> None:
    async with open_conversation(Clerk()) as conversation:
        conversation.communicate("q")
        queued = conversation.enqueue("e")
        for seconds in (1, 5):
            with trio.move_on_after(seconds) as scope:
                await queued.reply()
            assert scope.cancelled_caught
        assert (await queued.reply()).message == "e"


async def test_a_cancelled_send_lets_the_line_go_on(autojump_clock: MockClock) -> None:
    async with open_conversation(Clerk()) as conversation:
        with trio.move_on_after(1.5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(conversation.send, "q")
                await trio.sleep(0.1)
                queued = conversation.enqueue("e")
        assert (await queued.reply()).message == "e"
        assert trio.current_time() == 5.5


async def test_a_queue_reads_as_what_it_is(autojump_clock: MockClock) -> None:
    async with open_conversation(Clerk()) as conversation:
        conversation.communicate("q")
        queued = conversation.enqueue(UserMessage("e", id="mine"))
        assert repr(queued) == "<Queued mine: waiting>"
