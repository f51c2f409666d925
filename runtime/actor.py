"""Actor: stateless configuration with one method. One may serve a thousand conversations at once.

What lives of it in a conversation is its entry in the directory, and what its `live` opens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from .context import LiveContext, TurnContext
from .directory import origin
from .errors import DuplicateName
from .post import Post


class Actor(ABC):
    """Subclass it, give it a name, write `receive`. There is nothing to register and nothing to initialise."""

    name: str = ""
    """Unique in a conversation; an instance may override it."""

    subordinates: Sequence[Actor] = ()
    """Roles that are started with this one, under it."""

    @abstractmethod
    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        """The answer to a post: `post.reply(…)`, or `post.forward(to=…)` to hand the request on.

        None answers a post that was told; one that was asked fails with NoReply. Interrupted, this is cancelled, and
        called again with the same post once everything it had asked for has ended. Raising fails this turn only.
        """

    async def on_question(self, post: Post, context: TurnContext) -> Post | None:
        """The answer to a subordinate that asks back while this role waits for it.

        It is a turn of its own inside the waiting ask: interrupted, it is cancelled and called again. Without an
        override the question goes on to this role's own superior, and at last to the host; raises NobodyToAsk then.
        """
        answer = await context.ask_superior(post.text, post.attachment_list)
        return post.reply(answer.text, answer.attachment_list)

    async def on_interrupt(self, post: Post, context: TurnContext) -> None:
        """Called when an attempt at a post was interrupted and has unwound, before that is recorded.

        A place to save what must not be lost, or to tell somebody. It is shielded, and has `ladder` seconds; what it
        raises is recorded as that of a clean-up is.
        """
        return None

    def live(self, context: LiveContext) -> AbstractAsyncContextManager[object]:
        """What must outlive attempts and turns, such as a kernel or a session; its value is `context.state`.

        Override it with an async context manager. It is entered in the actor's own task before the first post and
        left at the conversation's end, in reverse order of starting and within `closing` seconds. An interruption
        never cancels it. If it ends by itself the turn fails with RoleFailed and it is opened anew, at most 3 times
        in 60 s.
        """
        return _nothing()


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield None


def actor_tree(actor: Actor, superior: str | None) -> dict[str, tuple[Actor, str | None]]:
    """An actor and all under it, by name, each with its superior. Raises DuplicateName for a name that stands twice."""
    tree: dict[str, tuple[Actor, str | None]] = {}
    look = [(actor, superior)]
    while look:
        one, above = look.pop(0)
        if not isinstance(one, Actor):
            raise TypeError(f"a role is an Actor, not {type(one).__name__}")
        if one.name in tree:
            raise DuplicateName(one.name, origin(tree[one.name][1]), origin(above))
        tree[one.name] = (one, above)
        look += [(subordinate, one.name) for subordinate in one.subordinates]
    return tree
