"""Conversation for tasks of an asyncio loop: written by tests/make_handles.py from the classes of that name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, overload

from ..conversation import Conversation, T
from ..directory import ConversationStatistics
from ..event import DeadLetter, Event
from ..post import Post
from ..receipt import Delivery
from ..round import Round
from ..transcript import Transcript
from ..usage import ConversationUsage
from ..user_message import UserMessage
from .asyncio_bridge import AsyncioBridge
from .asyncio_held import AsyncioHeld
from .asyncio_receipt import AsyncioQueued, AsyncioReceipt
from .asyncio_streamed_reply import AsyncioStreamedReply
from .asyncio_subscription import AsyncioSubscription
from .handle import Handle
from .held import made_there


class AsyncioConversation(Handle[Conversation]):
    """Made by `open_conversation` or a Board. Its verbs are the host's.

    From inside a role's turn all but `stop` and `pause` raise InsideTurn: they would wait for that turn, or cut it for
    ever.
    """

    def __init__(self, bridge: AsyncioBridge, handled: Conversation) -> None:
        super().__init__(handled)
        self._bridge = bridge

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self._handled.id

    @property
    def paused(self) -> bool:
        """Whether turns stop at their next boundary."""
        return self._handled.paused

    def replies(self) -> AsyncioSubscription[Post]:
        """Yields, from the call on, each round's last post to the user, error posts included.

        It ends with the conversation: a task that reads it in a nursery inside the block is to be cancelled first.
        """
        return AsyncioSubscription(self._bridge, partial(self._handled.replies))

    def events(self, buffer: int = 1000) -> AsyncioSubscription[Event]:
        """Yields, from the call on, what happens. The error of a reader is the reader's.

        It ends with the conversation: a task that reads it in a nursery inside the block is to be cancelled first.

        A reader that is `buffer` events behind loses the oldest growth of drafts first, and gets
        `EventsDropped(count)` for what it lost.
        """
        return AsyncioSubscription(self._bridge, partial(self._handled.events, buffer))

    async def transcript(self) -> Transcript:
        """All that has been recorded up to now, as one frozen value."""
        return await self._bridge.call(self._handled.transcript)

    async def rounds(self, role: str, include_failure_rounds: bool = False) -> tuple[Round, ...]:
        """What that role would get from memory now."""
        return await self._bridge.call(self._handled.rounds, role, include_failure_rounds)

    async def dead_letters(self) -> tuple[DeadLetter, ...]:
        """The last posts that nobody took, oldest first, with the reasons."""
        return await self._bridge.call(self._handled.dead_letters)

    async def statistics(self) -> ConversationStatistics:
        """What it is doing now."""
        return await self._bridge.call(self._handled.statistics)

    @property
    def usage(self) -> Awaitable[ConversationUsage]:
        """What it has used up to now, in all, by role and by round."""
        return self._bridge.call(lambda: self._handled.usage)

    async def begin_closing(self) -> None:
        """Ends all that runs and stands in line, in this step; leaving the block does it. Safe to repeat."""
        await self._bridge.call(self._handled.begin_closing)

    @overload
    async def send(self, message: str | UserMessage) -> Post: ...

    @overload
    async def send(self, message: str | UserMessage, *, returns: type[T]) -> T: ...

    @overload
    async def send(self, message: str | UserMessage, *, returns: object) -> Any: ...

    async def send(self, message: str | UserMessage, *, returns: Any = None) -> Any:
        """Runs a round and returns the root's reply; stands in line while another round runs, and ends a pause.

        With `returns` it returns a value of that type, a pydantic model or any other that pydantic knows. The root is
        told the JSON schema; if its answer is none, it is told why and asked again in the same round, twice at most.
        Then InvalidAnswer is raised; TypeError for a type that has no JSON schema.

        Cancelled: the round's work is recalled, and this returns when all of it has ended. A message whose id was
        said before waits for the same reply, and cancelling that wait recalls nothing. Raises RoleFailed (its cause a
        LimitReached if the round had no more room), NoReply, RoundStopped, RequestRecalled if the one who sent it
        first was cancelled, ConversationClosed.
        """
        return await self._bridge.run(self._handled.send, message, returns=returns)

    @asynccontextmanager
    async def stream(self, message: str | UserMessage, *, buffer: int = 1000000) -> AsyncIterator[AsyncioStreamedReply]:
        """Runs a round as `send` does; in the block its reply is read while it grows, and then is `reply.post`.

        Leaving the block before the round has ended, or its cancellation, recalls the round's work, which is kept as
        that of a stopped one, and waits until all of it has ended; no other round is touched. A reader that is
        `buffer` characters behind loses the oldest. For a message whose id was said before, this reads the reply from
        now on, and leaving recalls nothing. Raises ConversationClosed, and Missed for such a message if it met nobody;
        reading raises what else `send` does.
        """
        manager = made_there(partial(self._handled.stream, message, buffer=buffer))
        async with AsyncioHeld(self._bridge, manager) as one:
            yield AsyncioStreamedReply(self._bridge, one)

    async def communicate(
        self, message: str | UserMessage, *, broadcast_level: int = 1, delivery: Delivery = "now"
    ) -> AsyncioReceipt:
        """Says something: an intervention if a round runs, else a new round. Words that meet nobody become a round.

        It ends a pause. Raises ValueError for a level or a delivery that is none, ConversationClosed.
        """
        return AsyncioReceipt(
            self._bridge,
            await self._bridge.call(
                self._handled.communicate, message, broadcast_level=broadcast_level, delivery=delivery
            ),
        )

    async def intervene(
        self,
        message: str | UserMessage,
        *,
        broadcast_level: int = 1,
        delivery: Delivery = "now",
        role: str | None = None,
    ) -> AsyncioReceipt:
        """Interrupts the running work; the same round goes on with these words. With nobody there: missed.

        From each role that waits for nobody, or from `role`, `broadcast_level` actors up the superior chain are
        reached; a negative level reaches the top. The highest reached turn of a chain starts again, what is below it
        is recalled; what they had so far is kept. `delivery` says when: in this call; as soon as no reached role is in
        a step, and none begins another before; or when the roles that wait for nobody have ended. Whoever it meets, it
        ends a pause. Raises ValueError for a level or a delivery that is none, UnknownRole.
        """
        return AsyncioReceipt(
            self._bridge,
            await self._bridge.call(
                self._handled.intervene, message, broadcast_level=broadcast_level, delivery=delivery, role=role
            ),
        )

    async def nudge(self, role: str | None = None) -> AsyncioReceipt:
        """Interrupts the active turns, or that of one role, and starts them again in place; else as `intervene`."""
        return AsyncioReceipt(self._bridge, await self._bridge.call(self._handled.nudge, role))

    async def enqueue(self, message: str | UserMessage) -> AsyncioQueued:
        """A round for when the conversation is idle, behind all that stands in line; begins at once if it is.

        Until it begins it can be edited and withdrawn, and `stop` does not end it. Raises ConversationClosed.
        """
        return AsyncioQueued(self._bridge, await self._bridge.call(self._handled.enqueue, message))

    async def queued(self) -> tuple[AsyncioQueued, ...]:
        """The rounds that were enqueued and have not begun, in order."""
        return tuple(AsyncioQueued(self._bridge, one) for one in await self._bridge.call(self._handled.queued))

    async def edit(self, id: str, message: str | UserMessage) -> bool:
        """Replaces what an enqueued round will be asked, by its id; False if it does not stand in line (any more)."""
        return await self._bridge.call(self._handled.edit, id, message)

    async def withdraw(self, id: str) -> bool:
        """Takes an enqueued round out of the line, by its id; False if it does not stand in line (any more)."""
        return await self._bridge.call(self._handled.withdraw, id)

    async def pause(self) -> None:
        """Turns stop before their next attempt, step or ask; a running step goes on, and deadlines stand still.

        A role may call it from its own turn. While a round is being stopped, and when closed, it does nothing.
        """
        await self._bridge.call(self._handled.pause)

    async def resume(self) -> None:
        """Ends a pause; rounds that a stop held in line begin."""
        await self._bridge.call(self._handled.resume)

    async def stop(self, reason: str) -> None:
        """Ends the round now: what it has is kept, `send` and `reply` raise RoundStopped once all work has ended.

        So do sends in line; enqueued rounds stay, held until somebody speaks again or resumes. A root that has just
        finished stands. It ends a pause. A role may call it from its own turn. With nothing to end it does nothing; of
        two reasons the first stays.
        """
        await self._bridge.call(self._handled.stop, reason)

    async def wait_idle(self) -> None:
        """Until nothing runs, told and background work included, and nothing in line is about to begin.

        Cancelled: the work goes on.
        """
        await self._bridge.run(self._handled.wait_idle)
