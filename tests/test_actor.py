"""Actors: a name and one method make one."""

from typing import Any

import pytest

from callboard.runtime.actor import Actor
from callboard.runtime.context import LiveContext, TurnContext
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post


class Echo(Actor):
    name = "Echo"

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        return post.reply(f"{self.name} {post.message}")


class Nameless(Actor):
    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        return post.reply("never")


async def test_a_plain_class_with_a_name_and_one_method_is_an_actor() -> None:
    async with open_conversation(Echo()) as conversation:
        assert (await conversation.send("hello")).message == "Echo hello"


async def test_an_instance_may_have_a_name_of_its_own() -> None:
    echo = Echo()
    echo.name = "Second"
    async with open_conversation(Echo(), echo) as conversation:
        assert list(conversation.statistics().mailboxes) == ["Echo", "Second"]


async def test_one_actor_serves_several_conversations() -> None:
    echo = Echo()
    async with open_conversation(echo) as first, open_conversation(echo) as second:
        assert (await first.send("1")).message == "Echo 1"
        assert (await second.send("2")).message == "Echo 2"


async def test_an_actor_without_a_name_is_refused_at_the_opening() -> None:
    with pytest.raises(ValueError, match="a role's name is a letter, then letters, digits, _ and -, not ''"):
        async with open_conversation(Nameless()):
            pass


async def test_what_is_no_actor_is_refused_at_the_opening() -> None:
    unfit: Any = Echo
    with pytest.raises(TypeError, match="a role is an Actor, not ABCMeta"):
        async with open_conversation(unfit):
            pass


def test_a_class_without_receive_cannot_be_made() -> None:
    unfinished: Any = type("Unfinished", (Actor,), {"name": "Unfinished"})
    with pytest.raises(TypeError, match=r"abstract method .?receive"):
        unfinished()


async def test_an_actor_has_no_subordinates_and_no_state_unless_it_says_so() -> None:
    assert list(Echo().subordinates) == []
    async with Echo().live(LiveContext("conv-1", "Echo", None)) as state:
        assert state is None
