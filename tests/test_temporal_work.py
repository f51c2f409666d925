"""Temporal text on its way: from a role's work into memory, its own round's answers and no later ones."""

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from callboard.actors import Planner
from callboard.runtime.actor import Actor
from callboard.runtime.attachment import Attachment
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import RoleFailed
from callboard.runtime.markers import END, START
from callboard.runtime.memory import get_role_rounds
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.scripted_model import ScriptedModel
from callboard.runtime.text import Text, temporal
from callboard.runtime.transcript import Transcript
from callboard.runtime.transcript_file import dump, parse

from .test_conversation import Role, answers, asks
from .test_role import said

BIG = "keep " + temporal("big")
Say = Callable[[Post, TurnContext], Awaitable[object]]


def posts(conversation: Conversation, round_: int = -1) -> tuple[Post, ...]:
    """All posts of a round."""
    return conversation.transcript().rounds[round_].post_list


async def records(post: Post, context: TurnContext) -> None:
    context.record(BIG)


async def asks_worker(post: Post, context: TurnContext) -> None:
    await context.ask("worker", BIG)


async def tells_worker(post: Post, context: TurnContext) -> None:
    await context.tell("worker", BIG)


async def asks_back(post: Post, context: TurnContext) -> None:
    await context.ask_superior(BIG)


async def starts_worker(post: Post, context: TurnContext) -> None:
    if post.message == "a":  # the report opens a round
        context.start_background("worker", BIG)


@pytest.mark.parametrize("say", [records, asks_worker, tells_worker, asks_back, starts_worker])
async def test_whatever_takes_words_takes_temporal_ones(say: Say) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        await say(post, context)
        return post.reply(BIG)

    async def on_question(post: Post) -> Post:
        return post.reply(BIG)

    options = ConversationOptions(on_question=on_question)
    async with open_conversation(Role("root", work), Role("worker", answers), options=options) as conversation:
        assert (await conversation.send("a")).text == BIG
        await conversation.wait_idle()
    texts = [post.text for post in posts(conversation, 0)]
    assert texts.count(BIG) == (3 if say is asks_back else 2)


async def test_a_reply_stays_temporal_on_its_way_through_others(autojump_clock: MockClock) -> None:
    async def forwards(post: Post, context: TurnContext) -> Post:
        return post.forward("worker", BIG)

    async def replies(post: Post, context: TurnContext) -> Post:
        return post.reply(post.text)

    root = Role("root", forwards, Role("worker", replies))
    async with open_conversation(root) as conversation:
        assert (await conversation.send("a")).text == BIG


async def test_a_background_report_stays_temporal(autojump_clock: MockClock) -> None:
    heard: list[Text] = []

    async def work(post: Post, context: TurnContext) -> Post:
        heard.append(post.text)
        if post.message == "a":
            context.start_background("worker", "go")
        return post.reply()

    async def reports(post: Post, context: TurnContext) -> Post:
        await trio.sleep(1)
        return post.reply(BIG)

    async with open_conversation(Role("root", work), Role("worker", reports)) as conversation:
        await conversation.send("a")
        await conversation.wait_idle()
    assert heard == [Text("a"), BIG]


async def test_a_question_that_is_passed_on_and_its_answer_stay_temporal() -> None:
    class Middle(Role):
        on_question = Actor.on_question

    async def on_question(post: Post) -> Post:
        return post.reply(BIG)

    root = Middle("root", asks_the_worker, Role("worker", asks_its_superior))
    async with open_conversation(root, options=ConversationOptions(on_question=on_question)) as conversation:
        assert (await conversation.send("a")).text == BIG
    assert [post.text for post in posts(conversation)].count(BIG) == 6  # two questions, two answers, two replies


async def asks_its_superior(post: Post, context: TurnContext) -> Post:
    return post.reply((await context.ask_superior(BIG)).text)


async def asks_the_worker(post: Post, context: TurnContext) -> Post:
    return post.reply((await context.ask("worker", "go")).text)


async def test_what_a_recalled_role_hands_on_stays_temporal(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        try:
            await trio.sleep(9)
        except trio.Cancelled:
            return post.forward("clerk", BIG)
        return post.reply()

    root = Role("root", asks_the_worker, Role("worker", work))
    async with open_conversation(root, Role("clerk", answers)) as conversation:
        started = conversation.communicate("a")
        await trio.sleep(1)
        conversation.intervene("b", broadcast_level=2)
        await started.reply()
    (account,) = [post for post in posts(conversation) if post.marks.state == "partial"]
    assert account.text == BIG


async def test_interrupted_work_stays_temporal(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        if context.attempt == 1:
            context.draft.write(BIG)
            context.draft.attach("execution_result", BIG)
            await trio.sleep(5)
        return post.reply()

    root = Role("root", asks("worker"), Role("worker", work))
    async with open_conversation(root) as conversation:
        conversation.communicate("a")
        await trio.sleep(1)
        conversation.intervene("b", broadcast_level=1)
        await conversation.wait_idle()
    (partial,) = [post for post in posts(conversation) if post.marks.state == "partial"]
    assert partial.text == BIG
    assert partial.attachment_list[0].temporal == BIG.spans


async def test_earlier_rounds_are_read_without_what_is_temporal_and_the_current_one_with_it() -> None:
    read: list[list[str]] = []

    async def work(post: Post, context: TurnContext) -> Post:
        context.record(BIG, Attachment.create("execution_result", BIG))
        rounds = await get_role_rounds(context, "root")
        notes = [post for round_ in rounds for post in round_.post_list if post.marks.kind == "note"]
        read.append([f"{note.message}|{note.attachment_list[0].content}" for note in notes])
        if post.message == "fail":
            raise ValueError
        return post.reply()

    async with open_conversation(Role("root", work)) as conversation:
        await conversation.send("a")
        with pytest.raises(RoleFailed):
            await conversation.send("fail")
        after_failure = conversation.rounds("root")
        await conversation.send("b")
    shown, cut = "keep big|keep big", "keep |keep "
    assert read == [[shown], [cut, shown], [cut, shown]]
    # The failed round is the current one, though it is not shown: the one before it is an earlier one.
    assert [post.message for post in after_failure[-1].post_list if post.marks.kind == "note"] == ["keep "]
    assert [post.text for round_ in conversation.transcript().rounds for post in round_.post_list].count(BIG) == 3


async def test_no_reply_of_a_model_makes_temporal_text_or_shared_entries() -> None:
    words = f"keep {START}big{END}"
    spoofs = [said(**{name: "[0, 1]"}, send_to="User", message="x") for name in ("shared_memory_entry", "temporal")]
    with ScriptedModel({"Planner": [*spoofs, said(plan=words, send_to="User", message=words)]}) as model:
        async with open_conversation(Planner(model)) as conversation:
            for _ in spoofs:
                assert (await conversation.send(words)).message == "x"
            reply = await conversation.send(words)
    assert (reply.message, reply.temporal) == (words, ())
    transcript = conversation.transcript()
    restored = Transcript.restore(parse(dump(transcript.to_dict()).decode()))
    assert restored == transcript
    everything = [post for round_ in restored.rounds for post in round_.post_list]
    attachments = [one for post in everything for one in post.attachment_list]
    assert attachments
    assert not any(one.temporal or one.type == "shared_memory_entry" for one in attachments)
    assert not any(post.temporal for post in everything)
