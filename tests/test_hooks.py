"""Hooks: what a host sees of posts and words, may change or refuse; and what a role does about its interruption."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import (
    CallboardError,
    InsideTurn,
    PostRefused,
    RoleFailed,
    RoundStopped,
)
from callboard.runtime.event import DraftGrew
from callboard.runtime.inspection import Hook
from callboard.runtime.json_value import frozen
from callboard.runtime.limits import Limits
from callboard.runtime.memory import get_role_rounds
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Marks, Post
from callboard.runtime.testing import every_interrupt_point
from callboard.runtime.user_message import UserMessage

from .injections import INJECTIONS
from .scenarios import Answering, Careful, Curious, Starting, Trusting, Worker, ringing, scenario
from .test_conversation import Role, Work, answers, asks, fails, posts, takes, tells

SECRET, CHANGED = "sk-123", "***"


def redact(post: Post) -> Post | None:
    """Changes what holds the secret."""
    message = post.message.replace(SECRET, CHANGED)
    return None if message == post.message else replace(post, message=message)


def refuses(*ways: tuple[str, str], message: str = "") -> Hook:
    """Lets nothing pass from the one to the other, or nothing that says the message."""

    def guard(post: Post) -> None:
        if (post.send_from, post.send_to) in ways or (message and message in post.message):
            raise ValueError("not this one")

    return guard


async def hands_on(post: Post, context: TurnContext) -> Post:
    """To the clerk."""
    return post.forward("clerk")


async def asks_back(post: Post, context: TurnContext) -> Post:
    """Its superior, and answers with the answer."""
    return post.reply((await context.ask_superior("which?")).message)


async def starts(post: Post, context: TurnContext) -> Post:
    """The worker in the background; answers with what it reports."""
    if post.send_from != "worker":
        context.start_background("worker", post.message)
    return post.reply(post.message)


async def ends(name: str, context: TurnContext) -> str:
    """With what an ask of that role ends."""
    try:
        return (await context.ask(name, "do")).message
    except CallboardError as error:
        return f"{type(error).__name__} of {type(error.__cause__).__name__}"


def reports(name: str) -> Work:
    """Answers with how an ask of that role ended."""

    async def work(post: Post, context: TurnContext) -> Post:
        return post.reply(await ends(name, context))

    return work


class Asked(Role):
    """Answers its subordinates' questions."""

    async def on_question(self, post: Post, context: TurnContext) -> Post | None:
        return post.reply("2025")


# on_post: audit


@pytest.mark.parametrize(
    ("root", "others", "seen"),
    [
        (Role("root", asks("a"), Role("a", answers)), [], "User>root root>a a>root root>User"),
        (Role("root", tells("a"), Role("a", answers)), [], "User>root root>a a>root root>User"),
        (
            Role("root", asks("a"), Role("a", hands_on)),
            [Role("clerk", answers)],
            "User>root root>a a>clerk clerk>root root>User",
        ),
        (Asked("root", asks("a"), Role("a", asks_back)), [], "User>root root>a a>root root>a a>root root>User"),
        (Role("root", asks_back), [], "User>root root>User User>root root>User"),
        (Role("root", fails(OSError()), Role("a", answers)), [], "User>root"),
    ],
    ids=["asked", "told", "handed on", "asked back", "asked of the host", "failed"],
)
async def test_every_post_that_travels_is_seen_once_in_its_order(root: Actor, others: list[Actor], seen: str) -> None:
    ways: list[str] = []

    async def on_question(post: Post) -> str:
        return "2025"

    def audit(post: Post) -> None:
        ways.append(f"{post.send_from}>{post.send_to}")

    options = ConversationOptions(on_post=audit, on_question=on_question)
    async with open_conversation(root, *others, options=options) as conversation:
        with suppress(RoleFailed):
            await conversation.send("go")
        await conversation.wait_idle()
    assert " ".join(ways) == seen


async def test_a_report_from_the_background_is_seen_as_a_reply_and_as_the_post_of_its_round() -> None:
    ways: list[str] = []

    def audit(post: Post) -> None:
        ways.append(f"{post.send_from}>{post.send_to}: {post.marks.kind}")

    root = Role("root", starts, Role("worker", answers))
    async with open_conversation(root, options=ConversationOptions(on_post=audit)) as conversation:
        await conversation.send("go")
        await conversation.wait_idle()
        assert conversation.transcript().rounds[-1].post_list[0].send_from == "worker"
    assert ways == [
        "User>root: message",
        "root>worker: message",
        "root>User: reply",
        "worker>root: reply",
        "worker>root: message",
        "root>User: reply",
    ]


# on_post: redact


async def leak(root: Actor, others: list[Actor], message: str = f"my key is {SECRET}") -> tuple[str, str]:
    """The reply to a message with the secret in it; and all that anybody can find of the conversation."""
    found: list[Any] = []

    async def on_question(post: Post) -> str:
        found.append(post)
        return f"host {SECRET}"

    options = ConversationOptions(on_post=redact, on_question=on_question)
    async with open_conversation(root, *others, options=options) as conversation:
        events = conversation.events()
        replies = conversation.replies()
        reply = await conversation.send(message)
        await conversation.wait_idle()
        found += [conversation.transcript(), conversation.rounds("root"), conversation.dead_letters()]
    found += [event async for event in events if not isinstance(event, DraftGrew)] + [post async for post in replies]
    return reply.message, repr(found)


async def says_secret(post: Post, context: TurnContext) -> Post:
    """Answers with what it was asked and the secret, and with what memory holds of itself."""
    rounds = repr(await get_role_rounds(context, context.role))
    assert SECRET not in post.message and SECRET not in rounds
    return post.reply(f"{post.message} {context.role} {SECRET}")


@pytest.mark.parametrize(
    ("root", "others"),
    [
        (Role("root", says_secret), []),
        (Role("root", asks("a"), Role("a", says_secret)), []),
        (Role("root", tells("a", says_secret), Role("a", says_secret)), []),
        (Role("root", asks("a"), Role("a", hands_on)), [Role("clerk", says_secret)]),
        (Asked("root", asks("a"), Role("a", asks_back)), []),
        (Role("root", asks_back), []),
        (Role("root", starts, Role("worker", says_secret)), []),
    ],
    ids=["the round's own", "asked", "told", "handed on", "asked back", "asked of the host", "in the background"],
)
async def test_what_a_hook_changes_is_changed_everywhere(root: Actor, others: list[Actor]) -> None:
    reply, found = await leak(root, others)
    assert SECRET not in reply and SECRET not in found
    assert CHANGED in found


async def test_what_a_hook_changes_keeps_its_id_and_place() -> None:
    root = Role("root", asks("a"), Role("a", says_secret))
    async with open_conversation(root, options=ConversationOptions(on_post=redact)) as conversation:
        reply = await conversation.send(SECRET)
        asked, passed_on, answered, last = conversation.transcript().rounds[0].post_list
        assert (asked.message, passed_on.message) == (CHANGED, CHANGED)
        assert answered.marks.in_reply_to == passed_on.id and last.marks.in_reply_to == asked.id
        assert last is reply
        assert conversation.transcript().rounds[0].user_query == CHANGED


async def test_the_partial_reply_of_a_role_that_is_cut_is_changed_too(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        context.draft.write(f"so far {SECRET}")
        await trio.sleep(9)
        return post.reply("done")

    root = Role("root", asks("a"), Role("a", work))
    async with open_conversation(root, options=ConversationOptions(on_post=redact)) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        receipt = conversation.intervene("x", broadcast_level=2)
        assert [post.message for post in (await receipt.stopped()).posts] == [f"so far {CHANGED}"]
        await started.reply()
        assert SECRET not in repr(conversation.transcript())


async def test_a_request_handed_on_by_a_recalled_role_is_changed_in_its_account(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        try:
            await trio.sleep(9)
        except trio.Cancelled:
            return post.forward("clerk", f"so far {SECRET}")
        return post.reply("done")

    root = Role("root", asks("a"), Role("a", work))
    options = ConversationOptions(on_post=redact)
    async with open_conversation(root, Role("clerk", answers), options=options) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        conversation.intervene("x", broadcast_level=2)
        await started.reply()
        assert ("a", "root", f"so far {CHANGED}", "partial") in posts(conversation)
        assert SECRET not in repr(conversation.transcript())


# on_post: guard


@pytest.mark.parametrize("verb", ["ask", "tell", "start_background"])
async def test_who_asks_or_tells_what_is_refused_gets_post_refused(verb: str) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        with pytest.raises(PostRefused, match="a post from root to a was refused: ValueError: not this one") as caught:
            if verb == "ask":
                await context.ask("a", "do")
            elif verb == "tell":
                await context.tell("a", "do")
            else:
                context.start_background("a", "do")
        assert (caught.value.sender, caught.value.recipient) == ("root", "a")
        assert isinstance(caught.value.__cause__, ValueError)
        return post.reply("refused")

    options = ConversationOptions(on_post=refuses(("root", "a")))
    async with open_conversation(Role("root", work, Role("a", answers)), options=options) as conversation:
        assert (await conversation.send("go")).message == "refused"
        assert [way[:2] for way in posts(conversation)] == [("User", "root"), ("root", "User")]
        assert not conversation.statistics().turns


@pytest.mark.parametrize(
    ("work", "ended"),
    [
        (answers, "RoleFailed of PostRefused"),
        (hands_on, "RoleFailed of PostRefused"),
        (asks_back, "RoleFailed of PostRefused"),
    ],
    ids=["replied", "handed on", "asked back"],
)
async def test_a_role_whose_post_is_refused_fails(work: Work, ended: str) -> None:
    root = Asked("root", reports("a"), Role("a", work))
    options = ConversationOptions(on_post=refuses(("a", "root"), ("a", "clerk")))
    async with open_conversation(root, Role("clerk", answers), options=options) as conversation:
        assert (await conversation.send("go")).message == ended
        assert (await conversation.send("again")).message == ended


async def test_an_answer_to_a_question_that_is_refused_fails_who_asked_back() -> None:
    root = Asked("root", reports("a"), Role("a", asks_back))
    options = ConversationOptions(on_post=refuses(message="2025"))
    async with open_conversation(root, options=options) as conversation:
        assert (await conversation.send("go")).message == "RoleFailed of RoleFailed"


async def test_a_first_post_that_is_refused_fails_the_round_and_stands_nowhere() -> None:
    options = ConversationOptions(on_post=refuses(message="bad"))
    async with open_conversation(Role("root", answers), options=options) as conversation:
        replies = conversation.replies()
        with pytest.raises(PostRefused):
            await conversation.send("bad words")
        receipt = conversation.communicate("bad too")
        with pytest.raises(PostRefused):
            await receipt.reply()
        assert not await receipt.seen() and receipt.action == "missed"
        await conversation.wait_idle()
        assert (await conversation.send("good")).message == "good"
        states = [(round_.state, round_.user_query) for round_ in conversation.transcript().rounds]
        assert states == [("failed", ""), ("failed", ""), ("finished", "good")]
        assert "bad" not in repr(conversation.transcript())
    assert [post.marks.kind async for post in replies] == ["error", "error", "reply"]


async def test_rounds_that_stand_in_line_behind_a_refused_one_begin(autojump_clock: MockClock) -> None:
    options = ConversationOptions(on_post=refuses(message="bad"))
    async with open_conversation(Role("root", takes(1)), options=options) as conversation:
        conversation.communicate("good")
        queued = [conversation.enqueue(message) for message in ("bad", "bad", "better")]
        assert (await queued[2].reply()).message == "better"
        assert [one.state for one in queued] == ["over"] * 3


async def test_the_partial_reply_that_a_hook_refuses_is_empty_and_the_refusal_reported(
    autojump_clock: MockClock,
) -> None:
    options = ConversationOptions(on_post=refuses(message="so far"))
    async with open_conversation(Role("root", asks("a"), Role("a", takes(3))), options=options) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        stopped = await conversation.intervene("x", broadcast_level=2).stopped()
        assert [post.message for post in stopped.posts] == [""]
        assert [type(error) for error in stopped.errors] == [PostRefused]
        assert (await started.reply()).message == "go"


# on_post: hooks that go wrong


def other_id(post: Post) -> Post:
    return replace(post, id="post-x")


def other_sender(post: Post) -> Post:
    return replace(post, send_from="mallory")


def other_recipient(post: Post) -> Post:
    return replace(post, send_to="mallory")


def without_marks(post: Post) -> Post:
    return replace(post, marks=Marks(kind="note"))


def nonsense(post: Post) -> Any:
    return f"{post.message}, changed"


@pytest.mark.parametrize("hook", [other_id, other_sender, other_recipient, without_marks, nonsense])
@pytest.mark.parametrize("where", ["first post", "ask", "reply", "question"])
async def test_a_hook_may_change_only_what_a_post_says(hook: Hook, where: str) -> None:
    ways = {"first post": "User>root", "ask": "root>a", "reply": "a>root", "question": "a>root"}

    def only_there(post: Post) -> Post | None:
        there = f"{post.send_from}>{post.send_to}" == ways[where] and (where == "question") == ("which" in post.message)
        return hook(post) if there else None

    root = Asked("root", reports("a"), Role("a", asks_back if where == "question" else answers))
    async with open_conversation(root, options=ConversationOptions(on_post=only_there)) as conversation:
        if where == "first post":
            with pytest.raises(PostRefused, match=r"the hook (may change what|returned str, not)"):
                await conversation.send("go")
        else:
            failed = {"ask": "PostRefused of"}.get(where, "RoleFailed of PostRefused")
            assert (await conversation.send("go")).message.startswith(failed)


async def test_a_hook_may_change_marks_that_are_the_hosts() -> None:
    def note_who(post: Post) -> Post:
        return replace(post, marks=replace(post.marks, extra=frozen({"seen": True}), system_message=("Be kind.",)))

    async with open_conversation(Role("root", answers), options=ConversationOptions(on_post=note_who)) as conversation:
        reply = await conversation.send("go")
        assert reply.marks.to_dict()["extra"] == {"seen": True}
        assert conversation.transcript().rounds[0].post_list[0].marks.system_message == ("Be kind.",)


@pytest.mark.parametrize("verb", ["intervene", "communicate", "enqueue", "nudge", "resume"])
async def test_a_verb_called_by_a_hook_inside_a_turn_is_refused(verb: str) -> None:
    raised: list[BaseException] = []

    def hook(post: Post) -> None:
        if post.send_from == "User":
            return
        try:
            getattr(conversation, verb)(*(["x"] if verb in ("intervene", "communicate", "enqueue") else []))
        except InsideTurn as error:
            raised.append(error)

    options = ConversationOptions(on_post=hook)
    async with open_conversation(Role("root", asks("a"), Role("a", answers)), options=options) as conversation:
        assert (await conversation.send("go")).message == "go"
    assert len(raised) == 3


async def test_a_hook_may_stop_the_round_it_sees(autojump_clock: MockClock) -> None:
    def hook(post: Post) -> None:
        if post.send_from == "a":
            conversation.stop("seen enough")

    options = ConversationOptions(on_post=hook)
    async with open_conversation(Role("root", asks("a"), Role("a", answers)), options=options) as conversation:
        with pytest.raises(RoundStopped):
            await conversation.send("go")
        await conversation.wait_idle()


@pytest.mark.parametrize("key", ["questions", "background", "handed on", "a block that is let finish"])
@pytest.mark.parametrize("injection", ["level 2", "stop", "after step, then now"])
def test_a_redacting_hook_breaks_no_invariant(key: str, injection: str) -> None:
    run = {
        "questions": scenario(lambda: Answering("boss", Curious("a", 1), Worker("w", 2)), on_post=shout),
        "background": scenario(lambda: Starting("boss", Worker("background", 3), Worker("w", 1)), on_post=shout),
        "handed on": scenario(lambda: Trusting("boss", Role("desk", hands_on)), Worker("clerk", 2), on_post=shout),
        "a block that is let finish": scenario(
            lambda: Answering("boss", Careful()), on_post=shout, on_intervention=shout
        ),
    }[key]
    every_interrupt_point(run, INJECTIONS[injection], sample=6)


def shout(post: Post) -> Post | None:
    """Changes what is whole: of what is not, the referee looks for the very words."""
    return replace(post, message=post.message.upper()) if post.marks.state == "whole" else None


# on_intervention


async def test_words_that_a_hook_changes_are_changed_in_rounds_in_user_words_and_in_accounts(
    autojump_clock: MockClock,
) -> None:
    read: list[str] = []

    async def work(post: Post, context: TurnContext) -> Post:
        read.append(repr((context.user_words, await get_role_rounds(context, context.role))))
        await trio.sleep(2)
        return post.reply(" ".join(words.message for words in context.user_words))

    root = Role("root", asks("a"), Role("a", work))
    options = ConversationOptions(on_intervention=redact)
    async with open_conversation(root, options=options) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        conversation.intervene(f"use {SECRET}")
        await trio.sleep(1)
        conversation.intervene(f"or {SECRET}", broadcast_level=2)
        await started.reply()
        assert SECRET not in repr(conversation.transcript()) and SECRET not in repr(read)
        assert f"use {CHANGED}" in read[1]
        (account,) = [post for post in conversation.transcript().rounds[0].post_list if post.marks.state == "partial"]
        heard = account.marks.to_dict()["extra"]["user_words"]
        assert [words["message"] for words in heard] == [f"use {CHANGED}", f"or {CHANGED}"]


async def test_words_that_no_hook_changes_are_the_users_own(autojump_clock: MockClock) -> None:
    said = UserMessage("x", system_message=("Be brief.",), id="words-1", extra={"reason": "hurry"})
    read: list[UserMessage] = []

    async def work(post: Post, context: TurnContext) -> Post:
        read.extend(context.user_words)
        await trio.sleep(2)
        return post.reply("done")

    options = ConversationOptions(on_intervention=lambda post: None)
    async with open_conversation(Role("root", work), options=options) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        conversation.intervene(said)
        await started.reply()
    assert read == [said] and read[0] is said


async def test_a_hook_sees_the_words_once_for_each_role_that_is_reached(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    def audit(post: Post) -> None:
        seen.append(f"{post.send_from}>{post.send_to} {post.marks.kind} {post.message}")

    root = Role("root", asks("a"), Role("a", takes(2)))
    options = ConversationOptions(on_intervention=audit)
    async with open_conversation(root, options=options) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        conversation.intervene("x", broadcast_level=2)
        await trio.sleep(1)
        conversation.nudge()
        await started.reply()
    assert seen == ["User>a intervention x", "User>root intervention x", "User>a nudge Go on."]


async def test_words_that_a_hook_refuses_stand_as_said_and_the_receipt_has_the_refusal(
    autojump_clock: MockClock,
) -> None:
    options = ConversationOptions(on_intervention=refuses(message="x"))
    async with open_conversation(Role("root", takes(2)), options=options) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        receipt = conversation.intervene("x")
        assert (await started.reply()).message == "go x"
        (error,) = (await receipt.stopped()).errors
        assert isinstance(error, PostRefused) and isinstance(error.__cause__, ValueError)


@pytest.mark.parametrize("speak", ["send", "intervene"])
async def test_extra_fields_and_system_messages_travel_into_the_posts_marks(
    autojump_clock: MockClock, speak: str
) -> None:
    said = UserMessage("x", system_message=("Be brief.",), extra={"reason": "hurry", "priority": 2})
    async with open_conversation(Role("root", takes(2))) as conversation:
        started = conversation.communicate(said if speak == "send" else "go")
        if speak == "intervene":
            await trio.sleep(1)
            conversation.intervene(said)
        await started.reply()
        (marks,) = [post.marks for post in conversation.transcript().rounds[0].post_list if post.message == "x"][:1]
        assert marks.system_message == ("Be brief.",)
        assert marks.to_dict()["extra"] == {"reason": "hurry", "priority": 2}
        assert marks.kind == ("message" if speak == "send" else "intervention")


async def test_a_hook_may_give_a_nudge_extra_fields_and_system_messages(autojump_clock: MockClock) -> None:
    def say_better(post: Post) -> Post:
        return replace(
            post, marks=replace(post.marks, system_message=("Do not stop.",), extra=frozen({"reason": "slow"}))
        )

    options = ConversationOptions(on_intervention=say_better)
    async with open_conversation(Role("root", takes(2)), options=options) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        conversation.nudge()
        await started.reply()
        (nudge,) = [post for post in conversation.transcript().rounds[0].post_list if post.marks.kind == "nudge"]
        assert nudge.marks.system_message == ("Do not stop.",)
        assert nudge.marks.to_dict()["extra"] == {"reason": "slow"}


# on_interrupt


class Saving(Role):
    """Does as its function says when it is interrupted."""

    def __init__(self, name: str, work: Work, save: Callable[[Post, TurnContext], Any], *below: Actor) -> None:
        super().__init__(name, work, *below)
        self.save = save
        self.calls: list[str] = []

    async def on_interrupt(self, post: Post, context: TurnContext) -> None:
        self.calls.append(f"{post.message} {context.attempt}")
        await self.save(post, context)


async def saves_nothing(post: Post, context: TurnContext) -> None:
    return None


async def records(post: Post, context: TurnContext) -> None:
    context.record(f"saved {context.draft.text}")
    await trio.sleep(1)
    context.record("and more")


async def test_it_is_called_once_for_each_cut_attempt_before_what_it_had_is_recorded(
    autojump_clock: MockClock,
) -> None:
    role = Saving("root", takes(9), records)
    async with open_conversation(role) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        receipt = conversation.intervene("x")
        await receipt.stopped()
        assert trio.current_time() == 2.0
        await trio.sleep(1)
        conversation.intervene("y")
        await started.reply()
        assert role.calls == ["go 1", "go 2"]
        assert [post[2] for post in posts(conversation)][1:5] == ["saved so far", "and more", "so far", "x"]


async def test_a_second_cut_while_it_runs_calls_it_no_second_time(autojump_clock: MockClock) -> None:
    role = Saving("root", takes(3), records)
    async with open_conversation(role) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        conversation.intervene("x")
        await trio.sleep(0.5)
        second = conversation.intervene("y")
        assert (await started.reply()).message == "go x y"
        assert role.calls == ["go 1"] and await second.seen()


@pytest.mark.parametrize("end", ["finished", "failed", "at its deadline"])
async def test_it_is_not_called_for_an_attempt_that_was_not_cut(autojump_clock: MockClock, end: str) -> None:
    work = {"finished": answers, "failed": fails(OSError("x"))}.get(end, takes(9))
    role = Saving("a", work, saves_nothing)
    async with open_conversation(Role("root", reports_within("a"), role)) as conversation:
        await conversation.send("go")
        assert role.calls == []


def reports_within(name: str) -> Work:
    """Asks for two seconds."""

    async def work(post: Post, context: TurnContext) -> Post:
        try:
            return post.reply((await context.ask(name, limits=Limits(seconds=2))).message)
        except RoleFailed as error:
            return post.reply(str(error))

    return work


async def cut_from_outside(conversation: Conversation, how: str) -> None:
    """Ends the round that runs, in one of the ways that a host has."""
    if how == "host gone":
        with trio.move_on_after(1):
            await conversation.send("go")
        return
    started = conversation.communicate("go")
    await trio.sleep(1)
    if how == "stop":
        conversation.stop("enough")
    elif how == "close":
        conversation.begin_closing()
    with suppress(CallboardError):
        await started.reply()


async def ends_it(post: Post, context: TurnContext) -> Post:
    """Ends the role that it asks, on the way."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends, "a", context)
        await trio.sleep(1)
        await context.end_subordinate("a")
    return post.reply("ended")


@pytest.mark.parametrize("how", ["stop", "close", "host gone", "deadline above", "ended"])
async def test_it_is_called_whenever_a_running_attempt_is_cut_from_outside(autojump_clock: MockClock, how: str) -> None:
    role = Saving("a", takes(9), records)
    root = Role("root", ends_it if how == "ended" else asks("a"), role)
    options = ConversationOptions(limits=Limits(seconds=1)) if how == "deadline above" else None
    async with open_conversation(root, options=options) as conversation:
        await cut_from_outside(conversation, how)
        assert trio.current_time() == 2.0 and not conversation.statistics().turns
    assert role.calls == ["do 1" if how == "ended" else "go 1"]
    assert [post[2] for post in posts(conversation) if post[:2] == ("a", "a")] == ["saved so far", "and more"]


async def test_leaving_the_block_calls_it_and_waits_for_it(autojump_clock: MockClock) -> None:
    role = Saving("root", takes(9), records)
    async with open_conversation(role) as conversation:
        conversation.communicate("go")
        await trio.sleep(1)
    assert role.calls == ["go 1"] and trio.current_time() == 2.0
    assert [post[2] for post in posts(conversation)][1:4] == ["saved so far", "and more", "so far"]


async def test_it_has_as_long_as_a_step_of_the_ladder_and_is_then_cancelled(autojump_clock: MockClock) -> None:
    async def hangs(post: Post, context: TurnContext) -> None:
        await trio.sleep_forever()

    role = Saving("root", takes(3), hangs)
    async with open_conversation(role, options=ConversationOptions(ladder=0.5)) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        await conversation.intervene("x").stopped()
        assert trio.current_time() == 1.5
        assert (await started.reply()).message == "go x"


async def test_what_it_raises_is_recorded_and_reported_and_fails_nobody(autojump_clock: MockClock) -> None:
    async def breaks(post: Post, context: TurnContext) -> None:
        raise OSError("the disk is full")

    async with open_conversation(Saving("root", takes(3), breaks)) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        (error,) = (await conversation.intervene("x").stopped()).errors
        assert isinstance(error, OSError)
        assert (await started.reply()).message == "go x"
        assert ("root", "root", "OSError: the disk is full", "error") in posts(conversation)


async def test_it_may_tell_and_ask(autojump_clock: MockClock) -> None:
    async def asks_and_tells(post: Post, context: TurnContext) -> None:
        await context.tell("clerk", "note this")
        context.record((await context.ask("clerk", "keep this")).message)

    role = Saving("root", takes(3), asks_and_tells)
    async with open_conversation(role, Role("clerk", answers)) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        conversation.intervene("x")
        assert (await started.reply()).message == "go x"
        await conversation.wait_idle()
        assert ("root", "clerk", "note this", "message") in posts(conversation)
        assert ("root", "root", "keep this", "note") in posts(conversation)


async def test_what_it_asks_is_recalled_when_its_time_is_over(autojump_clock: MockClock) -> None:
    async def asks_too_long(post: Post, context: TurnContext) -> None:
        await context.ask("clerk", "keep this")

    role = Saving("root", takes(3), asks_too_long)
    async with open_conversation(role, Role("clerk", takes(60))) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        conversation.intervene("x")
        assert (await started.reply()).message == "go x"
        assert trio.current_time() == 6.0 and not conversation.statistics().turns


async def test_the_context_it_was_given_ends_with_the_attempt(autojump_clock: MockClock) -> None:
    kept: list[TurnContext] = []

    async def keeps(post: Post, context: TurnContext) -> None:
        kept.append(context)

    async with open_conversation(Saving("root", takes(3), keeps)) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        conversation.intervene("x")
        await started.reply()
        with pytest.raises(CallboardError, match="attempt 1 of root has ended"):
            kept[0].record("late")


@pytest.mark.parametrize("level", [1, 2, 3])
async def test_it_is_called_for_a_question_whose_answering_is_cut(autojump_clock: MockClock, level: int) -> None:
    class Answers(Saving):
        async def on_question(self, post: Post, context: TurnContext) -> Post | None:
            await trio.sleep(3)
            return post.reply("2025")

    role = Answers("root", asks("a"), saves_nothing, Role("a", asks_back))
    async with open_conversation(role) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        conversation.intervene("x", broadcast_level=level)
        await started.reply()
    assert role.calls == {1: ["which? 1"], 2: ["which? 1"], 3: ["which? 1", "go 1"]}[level]


@pytest.mark.parametrize("injection", ["level 1", "1, 2", "stop", "after step"])
def test_an_interruption_at_any_moment_of_a_role_that_saves_breaks_nothing(injection: str) -> None:
    async def asks_and_records(post: Post, context: TurnContext) -> None:
        context.record((await context.ask("clerk", "keep this")).message)
        await ringing()

    async def works(post: Post, context: TurnContext) -> Post:
        await ringing(2)
        return post.reply("done")

    run = scenario(lambda: Trusting("boss", Saving("worker", works, asks_and_records)), Worker("clerk", 1))
    every_interrupt_point(run, INJECTIONS[injection], sample=10)
