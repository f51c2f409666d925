"""The turn context: what a role may do during one attempt, and only then."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import pytest
import trio
from trio.testing import MockClock, assert_no_checkpoints, wait_all_tasks_blocked

from callboard.runtime.actor import Actor
from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.context import LiveContext, TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.draft import Draft
from callboard.runtime.errors import AttemptEnded, RequestRecalled, RoleFailed
from callboard.runtime.event import DraftGrew
from callboard.runtime.ids import Ids, create_id
from callboard.runtime.memory import get_role_rounds, get_shared_memory_entries
from callboard.runtime.nursery import open_nursery
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.round import Round

from .test_router import Role, asks, echo, forwards, lines, tells, works

tenant: ContextVar[str] = ContextVar("tenant", default="none")


class Keeper(Role):
    """Keeps every context that it is handed."""

    def __init__(self, name: str = "Boss") -> None:
        super().__init__(name, self.keep)
        self.contexts: list[TurnContext] = []
        self.drafts: list[Draft] = []

    async def keep(self, post: Post, context: TurnContext) -> Post:
        self.contexts.append(context)
        self.drafts.append(context.draft)
        if post.message == "wait":
            await trio.sleep(5)
        return post.reply("kept")


def posts(conversation: Conversation) -> list[Post]:
    return [post for round_ in conversation.transcript().rounds for post in round_.post_list]


async def test_a_context_says_where_it_stands() -> None:
    seen: list[object] = []

    async def clerk(post: Post, context: TurnContext) -> Post:
        seen.extend((context.role, context.attempt, context.subordinates, context.state, context.round, repr(context)))
        return post.reply("seen")

    roles = Role("Boss", asks("Clerk"), Role("Clerk", clerk, Role("B", echo), Role("A", echo)))
    async with open_conversation(roles) as conversation:
        await conversation.send("go")
        round_id = conversation.transcript().rounds[0].id
    assert seen == ["Clerk", 1, ("B", "A"), None, round_id, "<TurnContext Clerk attempt 1>"]


LATE = [lambda kept: kept.write("late"), lambda kept: kept.take()]


@pytest.mark.parametrize("late", LATE, ids=["write", "take"])
async def test_the_draft_of_an_attempt_that_was_cut_refuses_everything(
    autojump_clock: MockClock, nursery: trio.Nursery, late: Callable[[Draft], object]
) -> None:
    keeper = Keeper()
    async with open_conversation(keeper) as conversation:
        nursery.start_soon(conversation.send, "wait")
        await trio.sleep(1)
        conversation.intervene("hurry")
        await conversation.wait_idle()
    with pytest.raises(AttemptEnded, match="attempt 1 of Boss has ended"):
        late(keeper.drafts[0])


@pytest.mark.parametrize("late", LATE, ids=["write", "take"])
async def test_the_draft_of_an_attempt_that_returned_refuses_everything(late: Callable[[Draft], object]) -> None:
    keeper = Keeper()
    async with open_conversation(keeper) as conversation:
        await conversation.send("go")
    with pytest.raises(AttemptEnded, match="attempt 1 of Boss has ended"):
        late(keeper.drafts[0])


SYNC: dict[str, Callable[[TurnContext], object]] = {
    "record": lambda context: context.record("late"),
    "share": lambda context: context.share("plan", "late"),
    "draft": lambda context: context.draft,
    "user_words": lambda context: context.user_words,
}
ASYNC: dict[str, Callable[[TurnContext], Any]] = {
    "ask": lambda context: context.ask("Boss"),
    "tell": lambda context: context.tell("Boss"),
    "start_subordinate": lambda context: context.start_subordinate(Keeper("Late")),
    "end_subordinate": lambda context: context.end_subordinate("Late"),
    "query": lambda context: get_role_rounds(context, "Boss"),
}


@pytest.mark.parametrize("verb", [*SYNC, *ASYNC])
async def test_a_context_kept_too_long_refuses_everything(verb: str) -> None:
    keeper = Keeper()
    async with open_conversation(keeper) as conversation:
        await conversation.send("go")
        before = posts(conversation)
        with pytest.raises(AttemptEnded, match="attempt 1 of Boss has ended"):
            await ASYNC[verb](keeper.contexts[0]) if verb in ASYNC else SYNC[verb](keeper.contexts[0])
        assert posts(conversation) == before


@pytest.mark.parametrize("verb", SYNC)
async def test_the_context_of_an_interrupted_attempt_is_refused_while_the_next_runs(
    autojump_clock: MockClock, nursery: trio.Nursery, verb: str
) -> None:
    keeper = Keeper()
    async with open_conversation(keeper) as conversation:
        nursery.start_soon(conversation.send, "wait")
        await trio.sleep(1)
        conversation.intervene("hurry")
        await wait_all_tasks_blocked()
        first, second = keeper.contexts
        assert second.attempt == 2
        with pytest.raises(AttemptEnded, match="attempt 1 of Boss has ended"):
            SYNC[verb](first)
        SYNC[verb](second)
        await conversation.wait_idle()


async def test_what_an_attempt_drafted_is_kept_and_the_next_begins_empty(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    drafts: list[str] = []

    async def boss(post: Post, context: TurnContext) -> Post:
        drafts.append(context.draft.text)
        context.draft.write(f"draft {context.attempt}")
        await trio.sleep(5)
        return post.reply(context.user_words[0].message)

    async with open_conversation(Role("Boss", boss)) as conversation:
        nursery.start_soon(conversation.send, "go")
        await trio.sleep(1)
        conversation.intervene("hurry")
        await conversation.wait_idle()
        assert [(post.message, post.marks.state) for post in posts(conversation)[1:3]] == [
            ("draft 1", "partial"),
            ("hurry", "whole"),
        ]
    assert drafts == ["", ""]


async def test_the_growth_of_a_draft_is_an_event() -> None:
    async def boss(post: Post, context: TurnContext) -> Post:
        context.draft.write("a")
        context.draft.write("b")
        return post.reply(context.draft.take())

    async with open_conversation(Role("Boss", boss)) as conversation:
        events = conversation.events()
        query = (await conversation.send("go")).marks.in_reply_to
    grown = [event async for event in events if isinstance(event, DraftGrew)]
    assert grown == [DraftGrew("Boss", str(query), "a"), DraftGrew("Boss", str(query), "b")]


async def test_a_record_is_sync_and_keeps_its_order() -> None:
    async def boss(post: Post, context: TurnContext) -> Post:
        with assert_no_checkpoints():
            made = [context.record(str(number), Attachment.create(AttachmentType.thought, "x")) for number in range(3)]
        assert [note.marks.in_reply_to for note in made] == [post.id] * 3
        return post.reply("done")

    async with open_conversation(Role("Boss", boss)) as conversation:
        await conversation.send("go")
        assert lines(conversation)[1:4] == [f"Boss > Boss: {number} (note)" for number in range(3)]
        assert [attachment.content for attachment in posts(conversation)[1].attachment_list] == ["x"]


async def test_a_role_reads_what_it_just_recorded() -> None:
    found: list[Sequence[Round]] = []

    async def boss(post: Post, context: TurnContext) -> Post:
        context.record("noted")
        found.append(await get_role_rounds(context, "Boss"))
        return post.reply("done")

    async with open_conversation(Role("Boss", boss)) as conversation:
        await conversation.send("go")
    [[round_]] = found
    assert [post.message for post in round_.post_list] == ["go", "noted"]


async def test_attachments_travel_with_an_ask_and_a_tell() -> None:
    got: list[object] = []

    async def clerk(post: Post, context: TurnContext) -> Post:
        got.extend(attachment.content for attachment in post.attachment_list)
        return post.reply("got it")

    async def boss(post: Post, context: TurnContext) -> Post:
        attachment = Attachment.create(AttachmentType.thought, "x")
        await context.ask("Clerk", "look", [attachment])
        await context.tell("Clerk", "look", iter((attachment, attachment)))
        return post.reply("done")

    async with open_conversation(Role("Boss", boss), Role("Clerk", clerk)) as conversation:
        await conversation.send("go")
        await conversation.wait_idle()
    assert got == ["x", "x", "x"]


async def entries(context: TurnContext) -> list[str]:
    return [entry.content for entry in await get_shared_memory_entries(context, "plan")]


async def test_what_is_shared_is_found_by_all_and_replaced_by_a_later_entry() -> None:
    async def clerk(post: Post, context: TurnContext) -> Post:
        context.share("plan", "the clerk's", note="why")
        return post.reply(", ".join(await entries(context)))

    async def boss(post: Post, context: TurnContext) -> Post:
        for content in ("first", "second"):
            context.share("plan", content)
        context.share("experience_sub_path", "elsewhere")
        return post.reply((await context.ask("Clerk")).message)

    async with open_conversation(Role("Boss", boss), Role("Clerk", clerk)) as conversation:
        assert (await conversation.send("go")).message == "second, the clerk's"
        [shared] = [post for post in posts(conversation) if post.send_to == post.send_from == "Clerk"]
        [attachment] = shared.get_attachment(AttachmentType.shared_memory_entry)
        assert attachment.content == "why"


async def test_an_entry_of_a_round_ends_with_it_and_hides_that_of_the_conversation() -> None:
    async def boss(post: Post, context: TurnContext) -> Post:
        if post.message == "1":
            context.share("plan", "for good", "conversation")
            context.share("plan", "for now")
        return post.reply(", ".join(await entries(context)))

    async with open_conversation(Role("Boss", boss)) as conversation:
        assert (await conversation.send("1")).message == "for now"
        assert (await conversation.send("2")).message == "for good"


async def tenant_of(post: Post, context: TurnContext) -> Post:
    """Answers with the context variable, and notes it for those who only told."""
    context.record(f"{context.role} sees {tenant.get()}")
    return post.reply(tenant.get())


PATHS: dict[str, list[Actor]] = {
    "to the root": [Role("Boss", tenant_of)],
    "through two asks": [Role("Boss", asks("A")), Role("A", asks("B")), Role("B", tenant_of)],
    "through a tell": [Role("Boss", tells("A", "news")), Role("A", tenant_of)],
    "through an ask and a forward": [Role("Boss", asks("A")), Role("A", forwards("B")), Role("B", tenant_of)],
    "through a tell and a forward": [Role("Boss", tells("A", "news")), Role("A", forwards("B")), Role("B", tenant_of)],
}


@pytest.mark.parametrize("path", PATHS)
async def test_the_hosts_context_variables_reach_every_depth(path: str) -> None:
    async with open_conversation(*PATHS[path]) as conversation:
        for name in ("acme", "globex"):
            token = tenant.set(name)
            await conversation.send("go")
            await conversation.wait_idle()
            tenant.reset(token)
        notes = [post.message for post in posts(conversation) if post.marks.kind == "note"]
    last = PATHS[path][-1].name
    assert notes == [f"{last} sees acme", f"{last} sees globex"]


async def test_an_asker_hands_down_its_own_context_variables() -> None:
    def in_its_name(work: Any) -> Any:
        async def named(post: Post, context: TurnContext) -> Post | None:
            tenant.set(f"{tenant.get()}/{context.role}")
            answered: Post | None = await work(post, context)
            return answered

        return named

    roles = Role("Boss", in_its_name(asks("A"))), Role("A", in_its_name(forwards("B"))), Role("B", tenant_of)
    async with open_conversation(*roles) as conversation:
        assert (await conversation.send("go")).message == "none/Boss/A"


async def test_a_teller_hands_down_its_own_context_variables() -> None:
    async def boss(post: Post, context: TurnContext) -> Post:
        for name in ("acme", "globex"):
            tenant.set(name)
            await context.tell("Clerk", "news")
        tenant.set("too late")
        return post.reply("told")

    async with open_conversation(Role("Boss", boss), Role("Clerk", tenant_of)) as conversation:
        await conversation.send("go")
        await conversation.wait_idle()
        notes = [post.message for post in posts(conversation) if post.marks.kind == "note"]
    assert notes == ["Clerk sees acme", "Clerk sees globex"]


async def test_a_context_variable_does_not_leak_to_the_next_turn_or_back_to_the_asker() -> None:
    async def sets(post: Post, context: TurnContext) -> Post:
        before = tenant.get()
        tenant.set(post.message)
        return post.reply(before)

    async def boss(post: Post, context: TurnContext) -> Post:
        seen = [(await context.ask("Clerk", message)).message for message in ("a", "b")]
        return post.reply(" ".join([*seen, tenant.get()]))

    async with open_conversation(Role("Boss", boss), Role("Clerk", sets)) as conversation:
        assert (await conversation.send("go")).message == "none none none"
    assert tenant.get() == "none"


async def test_requests_that_wait_in_one_mailbox_keep_their_own_context_variables(autojump_clock: MockClock) -> None:
    async def asks_as(context: TurnContext, name: str, seen: list[str]) -> None:
        tenant.set(name)
        seen.append(f"{name}={(await context.ask('Clerk')).message}")

    async def slow(post: Post, context: TurnContext) -> Post:
        await trio.sleep(1)
        return post.reply(tenant.get())

    async def boss(post: Post, context: TurnContext) -> Post:
        seen: list[str] = []
        async with open_nursery() as nursery:
            for name in "abc":
                nursery.start_soon(asks_as, context, name, seen)
        return post.reply(" ".join(sorted(seen)))

    async with open_conversation(Role("Boss", boss), Role("Clerk", slow)) as conversation:
        assert (await conversation.send("go")).message == "a=a b=b c=c"


async def test_tasks_of_a_roles_own_nursery_share_its_context(autojump_clock: MockClock) -> None:
    async def boss(post: Post, context: TurnContext) -> Post:
        async def part(name: str) -> None:
            context.record((await context.ask(name)).message)

        async with open_nursery() as nursery:
            nursery.start_soon(part, "A")
            nursery.start_soon(part, "B")
        return post.reply("done")

    async with open_conversation(Role("Boss", boss), Role("A", works), Role("B", works)) as conversation:
        await conversation.send("go")
        assert trio.current_time() == 1
        assert {"Boss > Boss: A:  (note)", "Boss > Boss: B:  (note)"} < set(lines(conversation))


async def test_a_verb_in_a_cancelled_scope_does_nothing() -> None:
    async def boss(post: Post, context: TurnContext) -> Post:
        for verb in (context.ask, context.tell):
            with trio.CancelScope() as scope:
                scope.cancel()
                await verb("Clerk", "do")
            assert scope.cancelled_caught
        return post.reply("done")

    async with open_conversation(Role("Boss", boss), Role("Clerk", echo)) as conversation:
        await conversation.send("go")
        assert len(posts(conversation)) == 2


def old_ids() -> Ids:
    """A source whose clock stands in 1970 and goes on by a microsecond a look."""
    ticks = iter(range(1_000_000))
    return Ids(lambda: next(ticks))


def foreign(conversation: Conversation) -> list[str]:
    """The posts whose id or time did not come from `old_ids`."""
    found = [post for post in posts(conversation) if "-1970" not in post.id or not post.marks.at.startswith("1970")]
    return [f"{post.send_from} > {post.send_to} {post.marks.kind} {post.marks.state}" for post in found]


async def test_ids_and_times_of_all_that_roles_make_come_from_the_options(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    made: list[str] = []

    async def clerk(post: Post, context: TurnContext) -> Post:
        context.draft.write("so far")
        await trio.sleep(2)
        made.extend((create_id("own"), context.share("plan", "x").id))
        return post.reply("done")

    roles = Role("Boss", asks("Helper")), Role("Helper", forwards("Clerk")), Role("Clerk", clerk), Role("Idle", echo)
    async with open_conversation(*roles, options=ConversationOptions(ids=old_ids())) as conversation:
        nursery.start_soon(conversation.send, "go")
        await trio.sleep(1)
        conversation.intervene("just so you know", role="Idle")
        receipt = conversation.intervene("hurry", broadcast_level=-1)
        await conversation.wait_idle()
        assert foreign(conversation) == []
        ids = [conversation.id, receipt.id, *(round_.id for round_ in conversation.transcript().rounds), *made]
        assert [name for name in ids if "-1970" not in name] == []
    assert "-1970" not in create_id("host")


async def test_the_hosts_own_ids_are_left_to_the_host() -> None:
    async with open_conversation(Role("Boss", echo), options=ConversationOptions(ids=old_ids())) as conversation:
        await conversation.send("go")
        assert "-1970" not in create_id("host")


class Living(Role):
    """Opens what its function says."""

    def __init__(self, live: Callable[[], object]) -> None:
        super().__init__("Boss", echo)
        self.opened = live

    @asynccontextmanager
    async def live(self, context: LiveContext) -> AsyncIterator[object]:
        yield self.opened()


async def test_ids_made_in_live_come_from_the_options() -> None:
    made: list[str] = []
    boss = Living(lambda: made.append(create_id("session")))
    async with open_conversation(boss, options=ConversationOptions(ids=old_ids())) as conversation:
        await conversation.send("go")
    assert "-1970" in made[0]


async def test_the_error_of_a_live_that_cannot_be_opened_has_its_id_from_the_options() -> None:
    boss = Living(lambda: 1 / 0)
    async with open_conversation(boss, options=ConversationOptions(ids=old_ids())) as conversation:
        with pytest.raises(RoleFailed):
            await conversation.send("go")
        assert foreign(conversation) == []


async def test_the_account_of_a_request_to_an_ended_role_has_its_id_from_the_options(
    autojump_clock: MockClock,
) -> None:
    async def ask(context: TurnContext) -> None:
        with pytest.raises(RequestRecalled):
            await context.ask("Clerk")

    async def boss(post: Post, context: TurnContext) -> Post:
        await context.start_subordinate(Role("Clerk", works))
        async with open_nursery() as nursery:
            nursery.start_soon(ask, context)
            nursery.start_soon(ask, context)
            await trio.sleep(0.5)
            await context.end_subordinate("Clerk")
        return post.reply("done")

    async with open_conversation(Role("Boss", boss), options=ConversationOptions(ids=old_ids())) as conversation:
        await conversation.send("go")
        assert "not_started" in [post.marks.state for post in posts(conversation)]
        assert foreign(conversation) == []
