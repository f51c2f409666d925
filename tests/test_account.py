"""The account of a recalled role: what it was asked, what it had done, and what was cut."""

from contextvars import copy_context
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.account import STEPS, TEXT, account_of
from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import ToolFailed
from callboard.runtime.memory import Memory
from callboard.runtime.post import Marks, Post
from callboard.runtime.subscription import Publisher
from callboard.runtime.text import temporal
from callboard.runtime.tool import Tool
from callboard.runtime.transcript import Transcript
from callboard.runtime.turn import Turn
from tests.roles import Does, Work, asking, at_work, log, posts, sleeping


async def search(seconds: float) -> str:
    """A tool."""
    await trio.sleep(seconds)
    if not seconds:
        raise OSError("no disk")
    return "found"


def account(conversation: Conversation, role: str) -> dict[str, object]:
    """What the last account of a role says beside its text."""
    accounts = [post for post in posts(conversation) if post.send_from == role and post.marks.state == "partial"]
    extra: dict[str, object] = accounts[-1].marks.to_dict()["extra"]
    return extra


def under_a_boss(work: Work, *subordinates: Does) -> Does:
    """A boss, and a worker that works so."""
    return Does("boss", asking("worker"), Does("worker", work, *subordinates))


async def busy(post: Post, context: TurnContext) -> str:
    """Does a bit of everything."""
    context.record("read the tables")
    await context.call(Tool(search), {"seconds": 0.1})
    with pytest.raises(ToolFailed):
        await context.call(Tool(search), {"seconds": 0})
    await context.ask("helper", "do")
    context.draft.write("so far;")
    await context.call(Tool(search), {"seconds": 50})
    return "worker"


async def test_it_tells_the_steps_done_and_those_that_were_cut(autojump_clock: MockClock) -> None:
    boss = under_a_boss(busy, Does("helper", sleeping(0.1)))
    async with at_work(boss) as (conversation, _):
        receipt = conversation.intervene("x", broadcast_level=2)
        kept = (await receipt.stopped()).posts
        assert [post.message for post in kept if post.send_from == "worker"] == ["so far;"]
        assert account(conversation, "worker") == {
            "asked": "do",
            "steps": [
                {"note": "read the tables"},
                {"tool": "search", "outcome": "done"},
                {"tool": "search", "outcome": "failed"},
                {"role": "helper", "outcome": "answered"},
                {"tool": "search", "outcome": "interrupted"},
            ],
            "cut": ["search"],
            "user_words": [{"id": receipt.id, "message": "x"}],
        }
        conversation.stop("enough")


async def test_what_was_recalled_below_it_counts_as_cut(autojump_clock: MockClock) -> None:
    boss = under_a_boss(asking("helper", "clerk"), Does("helper", sleeping(0.1)), Does("clerk", sleeping(50)))
    async with at_work(boss) as (conversation, _):
        await conversation.intervene("x", broadcast_level=-1).stopped()
        told = account(conversation, "worker")
        assert told["steps"] == [
            {"role": "helper", "outcome": "answered"},
            {"role": "clerk", "outcome": "interrupted"},
        ]
        assert told["cut"] == ["clerk"]
        conversation.stop("enough")


async def test_of_earlier_attempts_it_tells_the_steps_and_not_what_was_cut_then(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        if context.attempt == 1:
            await context.call(Tool(search), {"seconds": 50})
        context.draft.write("so far;")
        await trio.sleep(50)
        return "worker"

    async with at_work(under_a_boss(work)) as (conversation, _):
        conversation.intervene("x")
        await trio.sleep(1)
        conversation.intervene("y")
        await trio.sleep(1)
        await conversation.intervene("z", broadcast_level=2).stopped()
        told = account(conversation, "worker")
        assert told["steps"] == [
            {"tool": "search", "outcome": "interrupted"},
            {"note": "so far;", "outcome": "interrupted"},
        ]
        assert "cut" not in told
        conversation.stop("enough")


async def test_of_many_steps_it_tells_the_last_and_of_long_texts_the_beginning(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        for number in range(50):
            context.record(f"step {number} " + "x\n" * TEXT)
        await trio.sleep(50)
        return "worker"

    async with at_work(under_a_boss(work)) as (conversation, _):
        conversation.stop("enough")
        await conversation.wait_idle()
    told = account(conversation, "worker")
    steps = told["steps"]
    assert isinstance(steps, list) and told["left_out"] == 50 - STEPS and len(steps) == STEPS
    assert steps[0]["note"].startswith("step 30 x x") and steps[0]["note"].endswith("…")
    assert {len(step["note"]) for step in steps} == {TEXT}


async def test_what_another_request_of_the_same_role_did_is_not_in_it(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        await trio.sleep(1)
        context.record(f"noted for {post.send_from}")
        await trio.sleep(1 if post.send_from == "a" else 50)
        return "worker"

    async def later(post: Post, context: TurnContext) -> str:
        await trio.sleep(0.5)
        return (await context.ask("worker", "do")).message

    boss = Does("boss", asking("a", "b"), Does("a", asking("worker")), Does("b", later))
    async with at_work(boss, Does("worker", work), seconds=4) as (conversation, _):
        conversation.stop("enough")
        await conversation.wait_idle()
    assert account(conversation, "worker")["steps"] == [{"note": "noted for b"}]


def test_a_result_that_came_late_is_no_step_of_it() -> None:
    request = Post.create("do", "boss", "worker")
    turn = Turn(request, None, copy_context(), foreground=True)
    marks = (Marks(in_reply_to=request.id, kind="note", state=state) for state in ("whole", "late"))
    notes = [Post.create("found", "worker", "worker", marks=one) for one in marks]
    assert account_of(turn, (), notes) == {"asked": "do", "steps": ({"note": "found"},)}


def test_memory_is_read_back_to_the_request_and_no_further() -> None:
    memory = Memory("conv", Publisher())
    first, request, other, note = (Post.create(text, "boss", "worker") for text in ("first", "do", "other", "note"))
    for number, post in enumerate((first, request, replace(other, send_from="a", send_to="b"), note)):
        memory.begin_round(f"round {number}", "q")
        memory.record(post)
    assert memory.since("worker", request.id) == [note]


async def test_of_work_that_outlived_its_round_it_tells_all(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        context.record("first")
        await trio.sleep(2)
        context.record("second")
        await trio.sleep(50)
        return "worker"

    async def start(post: Post, context: TurnContext) -> str:
        context.start_background("worker", "in your own time")
        return "boss"

    async with at_work(Does("boss", start, Does("worker", work))) as (conversation, _):
        await conversation.send("again")
        await trio.sleep(3)
        conversation.stop("enough")
        await conversation.wait_idle()
    told = account(conversation, "worker")
    assert (told["asked"], told["steps"]) == ("in your own time", [{"note": "first"}, {"note": "second"}])


async def test_notes_that_are_attachments_are_told_by_the_first(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        context.record("", Attachment.create("thought", "count"), Attachment.create("plan", "1. do"))
        context.record("", Attachment.create(AttachmentType.function, "no call"))
        context.record()
        await trio.sleep(50)
        return "worker"

    async with at_work(under_a_boss(work)) as (conversation, _):
        conversation.stop("enough")
        await conversation.wait_idle()
    assert account(conversation, "worker")["steps"] == [{"note": "thought: count"}]


async def test_it_comes_back_from_a_file_as_it_was(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_work(under_a_boss(busy), Does("helper", sleeping(9))) as (conversation, _):
        conversation.stop("enough")
        await conversation.wait_idle()
        transcript = conversation.transcript()
        transcript.save(tmp_path / "transcript.yaml")
    assert Transcript.restore_yaml(tmp_path / "transcript.yaml") == transcript


async def test_a_reply_that_was_not_cut_tells_nothing_of_its_course(autojump_clock: MockClock) -> None:
    async with at_work(under_a_boss(sleeping(1))) as (conversation, _):
        await conversation.wait_idle()
    assert not [post for post in posts(conversation) if post.marks.extra]
    assert "worker > boss reply worker[]" in log(conversation)


async def test_temporal_text_is_not_in_it(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        context.record("read: " + temporal("a long table"))
        await trio.sleep_forever()
        return ""

    async def ask(post: Post, context: TurnContext) -> str:
        return (await context.ask("worker", "sum up " + temporal("a long page"))).message

    async with at_work(Does("boss", ask, Does("worker", work))) as (conversation, _):
        await conversation.intervene("x", broadcast_level=2).stopped()
        told = account(conversation, "worker")
        assert (told["asked"], told["steps"]) == ("sum up", [{"note": "read:"}])
        conversation.stop("enough")
