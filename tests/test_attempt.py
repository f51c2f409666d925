"""Attempts: what a failing role says can always be recorded."""

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import RoleFailed
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post


class Careless(Actor):
    """Fails with an error whose text UTF-8 cannot hold."""

    name = "careless"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        if post.message == "fail":
            raise OSError("half \ud800")
        try:
            await trio.sleep(1)
        finally:
            if context.attempt == 1:
                raise OSError("half \ud800")
        return post.reply("done")


async def test_an_error_that_utf_8_cannot_hold_fails_the_turn_only() -> None:
    async with open_conversation(Careless()) as conversation:
        with pytest.raises(RoleFailed):
            await conversation.send("fail")
        assert conversation.transcript().rounds[0].post_list[-1].message == "careless failed: OSError: half \\ud800"


async def test_clean_up_that_raises_such_an_error_is_recorded(autojump_clock: MockClock) -> None:
    async with open_conversation(Careless()) as conversation:
        started = conversation.communicate("work")
        await trio.sleep(0.5)
        conversation.intervene("x")
        assert (await started.reply()).message == "done"
    assert "OSError: half \\ud800" in [post.message for post in conversation.transcript().rounds[0].post_list]
