"""Receipt and Queued for tasks of an asyncio loop: written by tests/make_handles.py from the classes of that name."""

from __future__ import annotations

from ..post import Post
from ..queued import Queued, QueuedState
from ..receipt import Action, Receipt, Stopped
from ..user_message import UserMessage
from .asyncio_bridge import AsyncioBridge
from .handle import Handle


class AsyncioReceipt(Handle[Receipt]):
    """What a host holds of its words. Reading it steers nothing; waiting on it can be cancelled freely."""

    def __init__(self, bridge: AsyncioBridge, handled: Receipt) -> None:
        super().__init__(handled)
        self._bridge = bridge

    @property
    def id(self) -> str:
        """The id of the message; the same id given again returns this receipt."""
        return self._handled.id

    @property
    def author(self) -> str:
        """Who spoke: the user, or a role that spoke to one under it."""
        return self._handled.author

    @property
    def action(self) -> Action:
        """What was done: a round started, an intervention made, the words kept waiting, or nobody met."""
        return self._handled.action

    @property
    def reached(self) -> tuple[str, ...]:
        """The roles at which the words were aimed."""
        return self._handled.reached

    @property
    def interrupted(self) -> tuple[str, ...]:
        """The roles whose attempt was cut and that try again with the words."""
        return self._handled.interrupted

    @property
    def recalled(self) -> tuple[str, ...]:
        """The roles whose work was ended because their asker starts again."""
        return self._handled.recalled

    @property
    def told(self) -> tuple[str, ...]:
        """The reached roles that had nothing running to cut: the words lie in their rounds."""
        return self._handled.told

    @property
    def spared(self) -> tuple[str, ...]:
        """Roles that go on: their work is nobody's to wait for, or a block of theirs is let finish first."""
        return self._handled.spared

    async def recorded(self) -> None:
        """Returns once the words are in memory's log; they are from the call on."""
        await self._bridge.run(self._handled.recorded)

    async def stopped(self) -> Stopped:
        """What was kept of the work that these words ended, once all of it has unwound."""
        return await self._bridge.run(self._handled.stopped)

    async def seen(self) -> bool:
        """True once a reached role has read the words; False if the round ended before: they were told or missed."""
        return await self._bridge.run(self._handled.seen)

    async def reply(self) -> Post:
        """The answer of the round that took the words. Raises what `send` raises, and Missed if no round did.

        Cancelled: the round goes on.
        """
        return await self._bridge.run(self._handled.reply)


class AsyncioQueued(Handle[Queued]):
    """Until its round begins it can be read, edited and withdrawn; after that only its reply can be waited for."""

    def __init__(self, bridge: AsyncioBridge, handled: Queued) -> None:
        super().__init__(handled)
        self._bridge = bridge

    @property
    def id(self) -> str:
        """The id of the message, which an edit keeps."""
        return self._handled.id

    @property
    def message(self) -> UserMessage:
        """What the round will be asked, or was."""
        return self._handled.message

    @property
    def position(self) -> int | None:
        """How many rounds begin before it, the running one not counted; None once it has begun or is over."""
        return self._handled.position

    @property
    def state(self) -> QueuedState:
        """Waiting in line; begun; or over, which a withdrawn one is, too."""
        return self._handled.state

    async def edit(self, message: str | UserMessage) -> bool:
        """Replaces the text, or all of the message but its id, in its place in line.

        False, and nothing changed, if its round has begun or it is over. Raises InsideTurn.
        """
        return await self._bridge.call(self._handled.edit, message)

    async def withdraw(self) -> bool:
        """Takes it out of the line; `reply` raises RequestRecalled. False if its round has begun or it is over.

        Raises InsideTurn.
        """
        return await self._bridge.call(self._handled.withdraw)

    async def reply(self) -> Post:
        """The round's answer; raises what `send` raises. Cancelled: the round stays in line, or goes on."""
        return await self._bridge.run(self._handled.reply)
