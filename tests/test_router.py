"""The router, through conversations: asks, tells, requests that are handed on, circles, and posts nobody takes."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import AskCycle, CallboardError, NoReply, RequestRecalled, RoleFailed, UnknownRole
from callboard.runtime.event import DeadLetter
from callboard.runtime.nursery import open_nursery
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.testing import Watch, every_interrupt_point, interrupt

Work = Callable[[Post, TurnContext], Awaitable[Post | None]]
ONE = ConversationOptions(mailbox=1)


class Role(Actor):
    """Does what its function says."""

    def __init__(self, name: str, work: Work, *subordinates: Actor) -> None:
        self.name = name
        self.subordinates = subordinates
        self.work = work

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        return await self.work(post, context)


async def echo(post: Post, context: TurnContext) -> Post:
    """Answers with its own name and what it was asked."""
    return post.reply(f"{context.role}: {post.message}")


async def works(post: Post, context: TurnContext) -> Post:
    """Answers after a second."""
    await trio.sleep(1)
    return post.reply(f"{context.role}: {post.message}")


async def notes(post: Post, context: TurnContext) -> None:
    """Records what it is told."""
    await trio.sleep(1)
    context.record(post.message)


def asks(name: str) -> Work:
    """Answers what another role answers."""

    async def work(post: Post, context: TurnContext) -> Post:
        return post.reply((await context.ask(name, post.message)).message)

    return work


def tells(name: str, *messages: str) -> Work:
    """Tells another role things, then answers."""

    async def work(post: Post, context: TurnContext) -> Post:
        for message in messages:
            await context.tell(name, message)
        return post.reply("told")

    return work


def forwards(name: str) -> Work:
    """Hands what it is asked on to another role."""

    async def work(post: Post, context: TurnContext) -> Post:
        return post.forward(name)

    return work


def returns(answer: Any) -> Work:
    """Returns that, or what it makes of the post."""

    async def work(post: Post, context: TurnContext) -> Any:
        return answer(post) if callable(answer) else answer

    return work


def lines(conversation: Conversation) -> list[str]:
    """All posts recorded, one line each."""
    posts = [post for round_ in conversation.transcript().rounds for post in round_.post_list]
    return [f"{post.send_from} > {post.send_to}: {post.message} ({post.marks.kind})" for post in posts]


async def answer(*roles: Actor, options: ConversationOptions | None = None) -> str:
    """The reply to "go"; raises what caused it to fail."""
    async with open_conversation(*roles, options=options) as conversation:
        try:
            with trio.fail_after(10):
                return (await conversation.send("go")).message
        except RoleFailed as failure:
            cause = failure.__cause__
    assert isinstance(cause, Exception)
    raise cause


async def test_an_ask_returns_the_reply() -> None:
    async with open_conversation(Role("Boss", asks("Clerk")), Role("Clerk", echo)) as conversation:
        assert (await conversation.send("go")).message == "Clerk: go"
        assert lines(conversation) == [
            "User > Boss: go (message)",
            "Boss > Clerk: go (message)",
            "Clerk > Boss: Clerk: go (reply)",
            "Boss > User: Clerk: go (reply)",
        ]


async def test_a_tell_does_not_wait_for_what_is_made_of_it(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("Boss", tells("Clerk", "news")), Role("Clerk", notes)) as conversation:
        assert (await conversation.send("go")).message == "told"
        assert trio.current_time() == 0
        await conversation.wait_idle()
        assert trio.current_time() == 1
        assert lines(conversation)[-1] == "Clerk > Clerk: news (note)"


async def test_told_posts_arrive_in_order(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("Boss", tells("Clerk", *"abc")), Role("Clerk", notes)) as conversation:
        await conversation.send("go")
        await conversation.wait_idle()
        assert lines(conversation)[-3:] == [f"Clerk > Clerk: {letter} (note)" for letter in "abc"]


async def test_the_answer_to_a_told_post_is_recorded_and_delivered_to_nobody(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("Boss", tells("Clerk", "news")), Role("Clerk", works)) as conversation:
        await conversation.send("go")
        await conversation.wait_idle()
        assert lines(conversation)[-1] == "Clerk > Boss: Clerk: news (reply)"
        assert len(conversation.transcript().rounds) == 1


async def test_a_forwarded_request_is_answered_to_the_first_asker() -> None:
    roles = Role("Boss", asks("Clerk")), Role("Clerk", forwards("Expert")), Role("Expert", echo)
    async with open_conversation(*roles) as conversation:
        assert (await conversation.send("go")).message == "Expert: go"
        assert lines(conversation)[2:4] == [
            "Clerk > Expert: go (message)",
            "Expert > Boss: Expert: go (reply)",
        ]


async def test_a_root_may_forward_to_a_role_that_answers_the_user() -> None:
    async with open_conversation(Role("Boss", forwards("Clerk")), Role("Clerk", echo)) as conversation:
        replies = conversation.replies()
        reply = await conversation.send("go")
        assert (reply.send_from, reply.send_to, reply.message) == ("Clerk", "User", "Clerk: go")
        assert await anext(replies) == reply


async def test_a_forwarded_request_may_be_forwarded_again() -> None:
    roles = Role("Boss", asks("A")), Role("A", forwards("B")), Role("B", forwards("C")), Role("C", echo)
    assert await answer(*roles) == "C: go"


async def test_a_role_that_forwarded_is_free_for_the_next_request(autojump_clock: MockClock) -> None:
    async def twice(post: Post, context: TurnContext) -> Post:
        async with open_nursery() as nursery:
            nursery.start_soon(context.ask, "Clerk", "1")
            await context.ask("Clerk", "2")
        return post.reply("done")

    begun: list[float] = []

    async def hand_on(post: Post, context: TurnContext) -> Post:
        begun.append(trio.current_time())
        return post.forward("Expert")

    await answer(Role("Boss", twice), Role("Clerk", hand_on), Role("Expert", works))
    assert begun == [0, 0]


async def test_a_told_role_tells_on_what_it_forwards(autojump_clock: MockClock) -> None:
    roles = Role("Boss", tells("Clerk", "news")), Role("Clerk", forwards("Expert")), Role("Expert", notes)
    async with open_conversation(*roles) as conversation:
        assert (await conversation.send("go")).message == "told"
        await conversation.wait_idle()
        assert lines(conversation)[-1] == "Expert > Expert: news (note)"


async def test_forwarding_to_an_unknown_role_fails_the_forwarder() -> None:
    roles = Role("Boss", asks("Clerk")), Role("Clerk", forwards("Nobody"))
    with pytest.raises(RoleFailed, match="Clerk failed: UnknownRole: no role 'Nobody'") as caught:
        await answer(*roles)
    assert caught.value.role == "Clerk"
    assert isinstance(caught.value.__cause__, UnknownRole)


async def test_a_role_that_was_forwarded_to_cannot_ask_the_first_asker() -> None:
    roles = Role("Boss", asks("Clerk")), Role("Clerk", forwards("Expert")), Role("Expert", asks("Boss"))
    with pytest.raises(RoleFailed) as caught:
        await answer(*roles)
    assert caught.value.role == "Expert"
    assert isinstance(caught.value.__cause__, AskCycle)
    assert caught.value.__cause__.roles == ("Expert", "Boss")


async def test_forwarding_into_a_circle_fails_the_forwarder() -> None:
    roles = Role("Boss", asks("A")), Role("A", asks("B")), Role("B", forwards("Boss"))
    with pytest.raises(RoleFailed) as caught:
        await answer(*roles)
    failure = caught.value.__cause__
    assert isinstance(failure, RoleFailed)
    assert isinstance(failure.__cause__, AskCycle)
    assert (failure.role, failure.__cause__.roles) == ("B", ("A", "Boss"))


async def test_a_recalled_forwarder_starts_nobody(autojump_clock: MockClock) -> None:
    async def hands_on_late(post: Post, context: TurnContext) -> Post:
        with trio.CancelScope(shield=True):
            await trio.sleep(2)
        return post.forward("Expert")

    async def impatient(post: Post, context: TurnContext) -> Post:
        with trio.move_on_after(1):
            await context.ask("Clerk", "do")
        return post.reply("gave up")

    roles = Role("Boss", impatient), Role("Clerk", hands_on_late), Role("Expert", echo)
    async with open_conversation(*roles) as conversation:
        assert (await conversation.send("go")).message == "gave up"
        assert not [line for line in lines(conversation) if "Expert" in line]


CIRCLES = {
    "of itself": ((), ("Boss",)),
    "direct": (("A",), ("A", "Boss")),
    "through a third": (("A", "B"), ("B", "Boss", "A")),
}


@pytest.mark.parametrize(("between", "circle"), CIRCLES.values(), ids=CIRCLES)
async def test_an_ask_that_closes_a_circle_is_refused_with_its_roles(
    between: tuple[str, ...], circle: tuple[str, ...]
) -> None:
    names = ("Boss", *between, "Boss")
    roles = [Role(name, asks(asked)) for name, asked in pairwise(names)]
    with pytest.raises(CallboardError) as caught:
        await answer(*roles)
    error: BaseException | None = caught.value
    while isinstance(error, RoleFailed):
        error = error.__cause__
    assert isinstance(error, AskCycle)
    assert error.roles == circle


async def test_a_circle_through_the_mailbox_of_a_busy_role_is_refused(autojump_clock: MockClock) -> None:
    found: list[tuple[str, ...]] = []

    async def boss(post: Post, context: TurnContext) -> Post:
        async with open_nursery() as nursery:
            nursery.start_soon(context.ask, "A")
            nursery.start_soon(context.ask, "B")
        return post.reply("done")

    def after(seconds: float, asked: str) -> Work:
        async def work(post: Post, context: TurnContext) -> Post:
            if post.send_from == "Boss":
                await trio.sleep(seconds)
                try:
                    await context.ask(asked)
                except AskCycle as error:
                    found.append(error.roles)
            return post.reply(context.role)

        return work

    assert await answer(Role("Boss", boss), Role("A", after(1, "B")), Role("B", after(2, "A"))) == "done"
    assert found == [("B", "A")]


async def test_waiting_behind_another_request_is_no_circle(autojump_clock: MockClock) -> None:
    async def boss(post: Post, context: TurnContext) -> Post:
        async with open_nursery() as nursery:
            nursery.start_soon(context.ask, "A")
            nursery.start_soon(context.ask, "Clerk")
        return post.reply("done")

    assert await answer(Role("Boss", boss), Role("A", asks("Clerk")), Role("Clerk", works)) == "done"
    assert trio.current_time() == 2


async def test_a_role_may_tell_one_that_waits_for_it(autojump_clock: MockClock) -> None:
    async def boss(post: Post, context: TurnContext) -> Post | None:
        return post.reply((await context.ask("Clerk")).message) if post.send_from == "User" else None

    assert await answer(Role("Boss", boss), Role("Clerk", tells("Boss", "hello"))) == "told"


async def test_an_ask_waits_for_room(autojump_clock: MockClock) -> None:
    async def boss(post: Post, context: TurnContext) -> Post:
        replies: list[str] = []

        async def ask(message: str) -> None:
            replies.append((await context.ask("Clerk", message)).message)

        async with open_nursery() as nursery:
            for message in "1234":
                nursery.start_soon(ask, message)
        return post.reply(" ".join(sorted(replies)))

    assert await answer(Role("Boss", boss), Role("Clerk", works), options=ONE) == "Clerk: 1 Clerk: 2 Clerk: 3 Clerk: 4"
    assert trio.current_time() == 4


async def test_a_tell_that_finds_no_room_in_time_is_a_dead_letter(autojump_clock: MockClock) -> None:
    options = ConversationOptions(mailbox=1, tell_timeout=0.25)
    roles = Role("Boss", tells("Clerk", *"abc")), Role("Clerk", notes)
    async with open_conversation(*roles, options=options) as conversation:
        events = conversation.events()
        await conversation.send("go")
        await conversation.wait_idle()
        [letter] = conversation.dead_letters()
        assert (letter.post.message, letter.reason) == ("c", "the mailbox of Clerk was full for 0.25 s")
        assert lines(conversation)[-1] == "Clerk > Clerk: b (note)"
    assert [event async for event in events if isinstance(event, DeadLetter)] == [letter]


async def test_a_tell_that_finds_room_in_time_arrives(autojump_clock: MockClock) -> None:
    async with open_conversation(
        Role("Boss", tells("Clerk", *"abc")), Role("Clerk", notes), options=ONE
    ) as conversation:
        await conversation.send("go")
        await conversation.wait_idle()
        assert lines(conversation)[-1] == "Clerk > Clerk: c (note)"
        assert conversation.dead_letters() == ()


async def test_a_tell_that_is_interrupted_while_it_waits_is_a_dead_letter(autojump_clock: MockClock) -> None:
    async def boss(post: Post, context: TurnContext) -> Post:
        with trio.move_on_after(0.5):
            await tells("Clerk", *"abc")(post, context)
        return post.reply("gave up")

    async with open_conversation(Role("Boss", boss), Role("Clerk", notes), options=ONE) as conversation:
        assert (await conversation.send("go")).message == "gave up"
        await conversation.wait_idle()
        assert [letter.reason for letter in conversation.dead_letters()] == [
            "Boss was interrupted before there was room"
        ]


async def test_none_answers_no_ask() -> None:
    with pytest.raises(NoReply, match="Clerk was asked") as caught:
        await answer(Role("Boss", asks("Clerk")), Role("Clerk", returns(None)))
    assert caught.value.role == "Clerk"


async def test_none_does_not_answer_the_user() -> None:
    async with open_conversation(Role("Boss", returns(None))) as conversation:
        with pytest.raises(NoReply):
            await conversation.send("go")


async def test_none_answers_a_post_that_was_told() -> None:
    async with open_conversation(Role("Boss", tells("Clerk", "news")), Role("Clerk", returns(None))) as conversation:
        await conversation.send("go")
        await conversation.wait_idle()
        assert len(lines(conversation)) == 3


async def test_a_post_to_oneself_answers_no_ask() -> None:
    to_itself = returns(lambda post: Post.create("me", "Clerk", "Clerk"))
    with pytest.raises(NoReply):
        await answer(Role("Boss", asks("Clerk")), Role("Clerk", to_itself))


WRONG = {
    "TypeError: receive of Clerk returned str, not a Post or None": "text",
    "ValueError: Clerk returned a post in the name of 'Boss'": lambda post: Post.create("x", "Boss", "Boss"),
}


@pytest.mark.parametrize(("what", "wrong"), WRONG.items(), ids=["no post", "another's name"])
async def test_a_wrong_answer_fails_its_role(what: str, wrong: Any) -> None:
    with pytest.raises(RoleFailed, match=f"Clerk failed: {what}"):
        await answer(Role("Boss", asks("Clerk")), Role("Clerk", returns(wrong)))


async def test_an_answer_made_by_hand_is_the_reply_to_the_request() -> None:
    by_hand = returns(lambda post: Post.create("mine", "Clerk", "Boss"))
    async with open_conversation(Role("Boss", asks("Clerk")), Role("Clerk", by_hand)) as conversation:
        assert (await conversation.send("go")).message == "mine"
        [round_] = conversation.transcript().rounds
        assert round_.post_list[2].marks.in_reply_to == round_.post_list[1].id


async def test_a_reply_says_what_it_replies_to_also_after_a_forward() -> None:
    roles = Role("Boss", asks("Clerk")), Role("Clerk", forwards("Expert")), Role("Expert", echo)
    async with open_conversation(*roles) as conversation:
        await conversation.send("go")
        posts = conversation.transcript().rounds[0].post_list
    query, request, handed_on, reply, last = posts
    assert [post.marks.in_reply_to for post in posts] == [None, None, request.id, handed_on.id, query.id]
    assert [post.marks.kind for post in posts] == ["message", "message", "message", "reply", "reply"]
    assert (reply.send_to, last.send_to) == ("Boss", "User")


@pytest.mark.parametrize("verb", ["ask", "tell"])
async def test_an_unknown_role_is_refused_with_those_there_are(verb: str) -> None:
    async def boss(post: Post, context: TurnContext) -> Post:
        await getattr(context, verb)("Clark", "do")
        return post.reply("never")

    with pytest.raises(UnknownRole, match="no role 'Clark' in this conversation; there are Boss, Clerk"):
        await answer(Role("Boss", boss), Role("Clerk", echo))


async def test_the_error_of_an_asked_role_can_be_handled_by_its_asker() -> None:
    async def fails(post: Post, context: TurnContext) -> Post:
        raise KeyError(post.message)

    async def boss(post: Post, context: TurnContext) -> Post:
        with suppress(RoleFailed):
            await context.ask("Clerk")
        return post.reply("without the clerk")

    assert await answer(Role("Boss", boss), Role("Clerk", fails)) == "without the clerk"


async def test_an_ask_that_is_cancelled_waits_until_its_work_has_ended(autojump_clock: MockClock) -> None:
    async def cleans_up(post: Post, context: TurnContext) -> Post:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3)
            context.record("cleaned up")

    async def boss(post: Post, context: TurnContext) -> Post:
        with trio.move_on_after(1):
            await context.ask("Clerk", "do")
        return post.reply(f"at {trio.current_time():.0f}")

    async with open_conversation(Role("Boss", boss), Role("Clerk", cleans_up)) as conversation:
        assert (await conversation.send("go")).message == "at 4"
        assert lines(conversation)[2] == "Clerk > Clerk: cleaned up (note)"


async def gives_up_on_the_second(post: Post, context: TurnContext) -> Post:
    """Asks the clerk twice at once, waits half a second for the second answer and longer for the first."""
    async with open_nursery() as nursery:
        nursery.start_soon(context.ask, "Clerk", "first")
        await trio.sleep(0.1)
        with trio.move_on_after(0.5):
            await context.ask("Clerk", "second")
    return post.reply("done")


async def test_a_request_recalled_in_the_mailbox_gets_an_account_and_is_not_begun(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("Boss", gives_up_on_the_second), Role("Clerk", works)) as conversation:
        await conversation.send("go")
        posts = conversation.transcript().rounds[0].post_list
    [account] = [post for post in posts if post.marks.state == "not_started"]
    [request] = [post for post in posts if post.message == "second"]
    assert (account.send_from, account.send_to, account.marks.in_reply_to) == ("Clerk", "Boss", request.id)
    assert "Clerk: second" not in [post.message for post in posts]


async def test_a_request_recalled_while_it_waits_for_room_gets_an_account(autojump_clock: MockClock) -> None:
    async def boss(post: Post, context: TurnContext) -> Post:
        async with open_nursery() as nursery:
            for message in ("first", "second"):
                nursery.start_soon(context.ask, "Clerk", message)
            await trio.sleep(0.1)
            with trio.move_on_after(0.5):
                await context.ask("Clerk", "third")
        return post.reply("done")

    async with open_conversation(Role("Boss", boss), Role("Clerk", works), options=ONE) as conversation:
        await conversation.send("go")
        posts = conversation.transcript().rounds[0].post_list
        assert conversation.statistics().mailboxes["Clerk"].senders_waiting == 0
    assert [post.marks.state for post in posts].count("not_started") == 1
    assert "Clerk: third" not in [post.message for post in posts]


async def test_a_request_to_a_role_that_is_ended_is_recalled(autojump_clock: MockClock) -> None:
    async def boss(post: Post, context: TurnContext) -> Post:
        await context.start_subordinate(Role("Clerk", returns_never))
        async with open_nursery() as nursery:
            nursery.start_soon(ends, context)
            with pytest.raises(RequestRecalled):
                await context.ask("Clerk", "do")
        return post.reply("done")

    async def returns_never(post: Post, context: TurnContext) -> None:
        await trio.sleep_forever()

    async def ends(context: TurnContext) -> None:
        await trio.sleep(1)
        await context.end_subordinate("Clerk")

    assert await answer(Role("Boss", boss)) == "done"


async def more_than_there_is_room_for(watch: Watch) -> None:
    """Three asks at once of a role whose mailbox holds one."""

    async def boss(post: Post, context: TurnContext) -> Post:
        async with open_nursery() as nursery:
            for message in "123":
                nursery.start_soon(context.ask, "Clerk", message)
        return post.reply("done")

    async with open_conversation(Role("Boss", boss, Role("Clerk", works)), options=ONE) as conversation:
        await watch(conversation).send("go")


def test_an_ask_that_gets_room_at_the_tick_of_an_interruption_is_cancelled() -> None:
    every_interrupt_point(more_than_there_is_room_for, interrupt(2), seeds=range(3))


async def test_the_account_of_a_request_that_was_handed_on_goes_to_its_asker(autojump_clock: MockClock) -> None:
    class Desk(Actor):
        name = "Desk"

        async def receive(self, post: Post, context: TurnContext) -> Post:
            return post.forward(to="Clerk")

    class Clerk(Actor):
        name = "Clerk"

        async def receive(self, post: Post, context: TurnContext) -> Post:
            context.draft.write("half")
            await trio.sleep(5)
            raise ValueError("no")

    class Boss(Actor):
        name = "Boss"

        async def receive(self, post: Post, context: TurnContext) -> Post:
            with trio.move_on_after(1):
                await context.ask("Desk", "one")
            with pytest.raises(RoleFailed):
                await context.ask("Desk", "two")
            return post.reply("done")

    async with open_conversation(Boss(), Desk(), Clerk()) as conversation:
        await conversation.send("q")
        answers = [post for post in conversation.rounds("Boss")[0].post_list if post.send_from == "Clerk"]
    assert [(post.marks.kind, post.marks.state, post.message) for post in answers] == [
        ("reply", "partial", "half"),
        ("error", "whole", "Clerk failed: ValueError: no"),
    ]
