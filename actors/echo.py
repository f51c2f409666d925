"""Echo: answers with what it was told. For trying things out, and as the shortest role there is."""

from __future__ import annotations

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.post import Post


class Echo(Actor):
    """Answers with the message that it is sent."""

    introduction = "Answers with the very message that it is sent."

    def __init__(self, name: str = "Echo") -> None:
        self.name = name

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """The post's own message."""
        return post.reply(post.message)
