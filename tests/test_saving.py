"""Saving: what of a conversation is kept in the file that lessons are made of."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from callboard.experience.pool import ExperiencePool
from callboard.experience.saving import save_experience
from callboard.runtime.attachment import Attachment
from callboard.runtime.context import TurnContext
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.round import Round
from callboard.runtime.shared_memory import SharedMemoryEntry
from callboard.runtime.transcript import Transcript

from .roles import Does


async def plans(post: Post, context: TurnContext) -> Post:
    """Notes what it was given, plans, shares, and works for a while."""
    context.record(extra={"given": {"text": "an earlier lesson"}})
    context.share("plan", "1. count", note="shared")
    context.record("counted", Attachment.create("thought", "hm"), extra={"given": {"text": "an earlier lesson"}})
    context.draft.attach("thought", "half a thought")
    await trio.sleep(2)
    plan = Attachment.create("plan", "1. count", extra={"lessons": [{"id": "a", "score": 1.0}]})
    return post.reply("7", [Attachment.create("thought", "hm"), plan])


async def corrected() -> Transcript:
    """A conversation in which the user corrects a role."""
    async with open_conversation(Does("Planner", plans), options=ConversationOptions(id="conv-1")) as conversation:
        started = conversation.communicate("How many?")
        await trio.sleep(1)
        conversation.intervene("Only those of 2025.")
        await started.reply()
        return conversation.transcript()


async def test_a_thin_file_has_the_plans_and_what_the_user_corrected(tmp_path: Path, autojump_clock: MockClock) -> None:
    path = save_experience(await corrected(), tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "raw_exp_conv-1.yaml"
    loaded = Transcript.restore_yaml(path)
    (posts,) = [one.post_list for one in loaded.rounds]
    assert [(post.marks.kind, post.marks.state, post.message) for post in posts] == [
        ("message", "whole", "How many?"),
        ("note", "whole", "counted"),
        ("note", "partial", ""),
        ("intervention", "whole", "Only those of 2025."),
        ("note", "whole", "counted"),
        ("reply", "whole", "7"),
    ]
    assert [str(one) for post in posts for one in post.attachment_list] == ["PLAN: 1. count"]
    text = path.read_text()
    assert "lesson" not in text
    assert "shared" not in text


async def test_a_whole_file_is_the_transcript(tmp_path: Path, autojump_clock: MockClock) -> None:
    transcript = await corrected()
    assert Transcript.restore_yaml(save_experience(transcript, tmp_path, thin=False)) == transcript


async def test_saved_again_it_is_one_file_that_the_pool_waits_to_make_a_lesson_of(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    for _ in range(2):
        save_experience(await corrected(), tmp_path)
    pool = ExperiencePool(tmp_path)
    report = await pool.refresh()
    assert (report.waiting, report.faults) == (("conv-1",), ())


def test_an_id_that_no_lesson_can_have_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no id of a lesson"):
        save_experience(Transcript("../x", ()), tmp_path / "folder")
    assert not list(tmp_path.iterdir())


def test_the_shared_entries_of_a_thin_file_are_gone_with_their_notes(tmp_path: Path) -> None:
    entry = Attachment.create("shared_memory_entry", "n", extra=SharedMemoryEntry.create("plan", "p", "round"))
    posts = [Post.create("q", "User", "A"), Post.create("said", "A", "User", [entry])]
    path = save_experience(Transcript("t", (Round.create("q", post_list=posts),)), tmp_path)
    assert [one.attachment_list for one in Transcript.restore_yaml(path).rounds[0].post_list] == [(), ()]
