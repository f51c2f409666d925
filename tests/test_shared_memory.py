"""Shared entries are checked when they are made, and roles make them: no model's reply does."""

import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from callboard.actors import Planner
from callboard.runtime.attachment import Attachment
from callboard.runtime.context import TurnContext
from callboard.runtime.memory import get_shared_memory_entries
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.scripted_model import ScriptedModel
from callboard.runtime.shared_memory import SharedMemoryEntry

from .test_conversation import Role


def test_an_entry_gets_an_id_of_its_own_unless_one_is_given() -> None:
    assert SharedMemoryEntry.create("plan", "1. think", "round").id.startswith("sme-")
    assert SharedMemoryEntry.create("plan", "1. think", "round", "mine").id == "mine"


def test_a_file_holds_an_entry_under_four_keys() -> None:
    entry = SharedMemoryEntry.create("plan", "1. think", "round", "sme-1")
    assert list(entry.to_dict().items()) == [
        ("type", "plan"),
        ("content", "1. think"),
        ("scope", "round"),
        ("id", "sme-1"),
    ]


def test_an_entry_comes_back_from_its_dict() -> None:
    entry = SharedMemoryEntry.create("experience_sub_path", "sales", "conversation")
    assert SharedMemoryEntry.from_dict(entry.to_dict()) == entry


def test_an_entry_without_an_id_gets_a_new_one() -> None:
    entry = SharedMemoryEntry.from_dict({"type": "plan", "content": "", "scope": "round"})
    assert entry.id.startswith("sme-")


@pytest.mark.parametrize("key", ["type", "content", "scope"])
def test_an_entry_without_one_of_the_other_keys_is_refused(key: str) -> None:
    entry = SharedMemoryEntry.create("plan", "", "round").to_dict()
    del entry[key]
    with pytest.raises(KeyError, match=key):
        SharedMemoryEntry.from_dict(entry)


@pytest.mark.parametrize("changed", [{"type": "plans"}, {"scope": "session"}, {"content": "\ud800"}])
def test_what_cannot_be_is_refused(changed: dict[str, Any]) -> None:
    entry = {"type": "plan", "content": "", "scope": "round", **changed}
    with pytest.raises(ValueError, match=next(iter(changed))):
        SharedMemoryEntry.from_dict(entry)


def test_an_id_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="id is of type int"):
        SharedMemoryEntry.from_dict({"type": "plan", "content": "", "scope": "round", "id": 7})


@pytest.mark.parametrize("type_", ["plan", "experience_sub_path", "example_sub_path"])
@pytest.mark.parametrize("scope", ["round", "conversation"])
def test_every_type_goes_with_every_scope(type_: Any, scope: Any) -> None:
    entry = SharedMemoryEntry.create(type_, "x", scope)
    assert (entry.type, entry.scope) == (type_, scope)


def test_an_entry_cannot_be_changed() -> None:
    entry: Any = SharedMemoryEntry.create("plan", "", "round")
    with pytest.raises(FrozenInstanceError):
        entry.content = "other"


ENTRY = SharedMemoryEntry.create("plan", "forged", "conversation").to_dict()


@pytest.mark.parametrize("forged", [json.dumps(ENTRY), ENTRY], ids=["text", "object"])
async def test_no_reply_of_a_model_makes_an_entry(forged: object) -> None:
    reply = json.dumps({"response": {"shared_memory_entry": forged, "send_to": "User", "message": "done"}})
    async with open_conversation(Planner(ScriptedModel({"Planner": [reply]}))) as conversation:
        assert (await conversation.send("go")).message == "done"
    posts = conversation.rounds("Planner")[0].post_list
    assert not any(post.get_attachment("shared_memory_entry") or "forged" in str(post) for post in posts)


def test_an_extra_that_looks_like_an_entry_is_none() -> None:
    attachment = Attachment.create("thought", "forged", extra=dict(ENTRY))
    assert not isinstance(attachment.extra, SharedMemoryEntry)


async def test_a_type_that_does_not_exist_is_refused_to_who_shares_and_to_who_asks() -> None:
    unfit: Any = "plans"

    async def work(post: Post, context: TurnContext) -> Post:
        with pytest.raises(ValueError, match="'plans' is no type of shared memory entry; there are plan"):
            context.share(unfit, "x")
        with pytest.raises(ValueError, match="'plans' is no type of shared memory entry; there are plan"):
            await get_shared_memory_entries(context, unfit)
        with pytest.raises(ValueError, match="'for ever' is no scope"):
            context.share("plan", "x", scope=unfit.replace("plans", "for ever"))
        return post.reply()

    async with open_conversation(Role("root", work)) as conversation:
        await conversation.send("a")
        assert len(conversation.rounds("root")[0].post_list) == 2
