"""Conversation: the user's handle. Verbs that only request are sync; those that wait for an outcome are async."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar, overload

import trio

from .conversation_life import ConversationLife
from .errors import ConversationClosed, Missed, RoundStopped
from .event import Paused
from .post import Post
from .queued import Queued
from .receipt import Delivery, Receipt, Words
from .request import Request
from .streaming import StreamedReply
from .typed_answer import TypedAnswer
from .user_message import UserMessage

T = TypeVar("T")
NUDGE = "Go on."
"""What a nudge says where no template says it better."""


class Conversation(ConversationLife):
    """Made by `open_conversation` or a Board. Its verbs are the host's.

    From inside a role's turn all but `stop` and `pause` raise InsideTurn: they would wait for that turn, or cut it for
    ever.
    """

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
        self._router.refuse_inside("send")
        await trio.lowlevel.checkpoint_if_cancelled()
        if returns is None:
            return await self._send(message)
        answer: TypedAnswer[Any] = TypedAnswer(returns)
        return answer.read(await self._send(answer.ask(message), answer.object))

    @asynccontextmanager
    async def stream(self, message: str | UserMessage, *, buffer: int = 1_000_000) -> AsyncIterator[StreamedReply]:
        """Runs a round as `send` does; in the block its reply is read while it grows, and then is `reply.post`.

        Leaving the block before the round has ended, or its cancellation, recalls the round's work, which is kept as
        that of a stopped one, and waits until all of it has ended; no other round is touched. A reader that is
        `buffer` characters behind loses the oldest. For a message whose id was said before, this reads the reply from
        now on, and leaving recalls nothing. Raises ConversationClosed, and Missed for such a message if it met nobody;
        reading raises what else `send` does.
        """
        self._router.refuse_inside("stream")
        if buffer < 1:
            raise ValueError(f"a buffer holds at least one character, not {buffer!r}")
        await trio.lowlevel.checkpoint_if_cancelled()
        said = self._spoken.before(message)
        request = self._spoken.send(message) if said is None else said.request
        if request is None:
            raise Missed(said.id if said is not None else "")
        reply = StreamedReply(request, self._line, buffer)
        reply.follow(self._router.events)
        self._go_on()
        try:
            yield reply
        finally:
            reply.leave()
            if said is None and not request.ended:
                await self._abandon(request)

    def communicate(
        self, message: str | UserMessage, *, broadcast_level: int = 1, delivery: Delivery = "now"
    ) -> Receipt:
        """Says something: an intervention if a round runs, else a new round. Words that meet nobody become a round.

        It ends a pause. Raises ValueError for a level or a delivery that is none, ConversationClosed.
        """
        self._router.refuse_inside("communicate")
        said = self._spoken.before(message)
        if said is not None:
            return said.receipt
        if self._line.current is None:
            self._spoken.check_open()
        request = Request(self._spoken.named(message))
        words = Words(request.words, broadcast_level, delivery=delivery)
        if self._line.current is None:
            self._spoken.start(self._spoken.keep(words), request)
        else:
            self._spoken.say(words, request)
        self._go_on()
        return words.receipt

    def intervene(
        self,
        message: str | UserMessage,
        *,
        broadcast_level: int = 1,
        delivery: Delivery = "now",
        role: str | None = None,
    ) -> Receipt:
        """Interrupts the running work; the same round goes on with these words. With nobody there: missed.

        From each role that waits for nobody, or from `role`, `broadcast_level` actors up the superior chain are
        reached; a negative level reaches the top. The highest reached turn of a chain starts again, what is below it
        is recalled; what they had so far is kept. `delivery` says when: in this call; as soon as no reached role is in
        a step, and none begins another before; or when the roles that wait for nobody have ended. Whoever it meets, it
        ends a pause. Raises ValueError for a level or a delivery that is none, UnknownRole.
        """
        self._router.refuse_inside("intervene")
        said = self._spoken.before(message)
        if said is not None:
            return said.receipt
        return self._say(Words(self._spoken.named(message), broadcast_level, role, delivery))

    def nudge(self, role: str | None = None) -> Receipt:
        """Interrupts the active turns, or that of one role, and starts them again in place; else as `intervene`."""
        self._router.refuse_inside("nudge")
        words = Words(self._spoken.named(NUDGE), 1, role)
        words.kind = "nudge"
        return self._say(words)

    def enqueue(self, message: str | UserMessage) -> Queued:
        """A round for when the conversation is idle, behind all that stands in line; begins at once if it is.

        Until it begins it can be edited and withdrawn, and `stop` does not end it. Raises ConversationClosed.
        """
        self._router.refuse_inside("enqueue")
        return self._spoken.enqueue(message)

    def queued(self) -> tuple[Queued, ...]:
        """The rounds that were enqueued and have not begun, in order."""
        return self._spoken.queued()

    def edit(self, id: str, message: str | UserMessage) -> bool:
        """Replaces what an enqueued round will be asked, by its id; False if it does not stand in line (any more)."""
        self._router.refuse_inside("edit")
        queued = self._spoken.in_line(id)
        return queued is not None and queued.edit(message)

    def withdraw(self, id: str) -> bool:
        """Takes an enqueued round out of the line, by its id; False if it does not stand in line (any more)."""
        self._router.refuse_inside("withdraw")
        queued = self._spoken.in_line(id)
        return queued is not None and queued.withdraw()

    def pause(self) -> None:
        """Turns stop before their next attempt, step or ask; a running step goes on, and deadlines stand still.

        A role may call it from its own turn. While a round is being stopped, and when closed, it does nothing.
        """
        gate = self._router.gate
        if gate.paused or self._line.stopping:
            return
        gate.paused = True
        self._router.time.stand_still()
        if self._router.events.wanted:
            self._router.events.publish(Paused())

    def resume(self) -> None:
        """Ends a pause; rounds that a stop held in line begin."""
        self._router.refuse_inside("resume")
        self._go_on()
        if not self._line.stopping:
            self._spoken.inside(self._line.release)

    def stop(self, reason: str) -> None:
        """Ends the round now: what it has is kept, `send` and `reply` raise RoundStopped once all work has ended.

        So do sends in line; enqueued rounds stay, held until somebody speaks again or resumes. A root that has just
        finished stands. It ends a pause. A role may call it from its own turn. With nothing to end it does nothing; of
        two reasons the first stays.
        """
        self._spoken.inside(self._interventions.drop)
        idle = self._line.idle
        self._spoken.inside(self._line.end_all, RoundStopped(reason))
        if not idle:
            self._go_on()

    def from_thread(self, verb: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Calls a verb of this conversation from a thread outside trio, and gives what it gives.

        `conversation.from_thread(conversation.intervene, "Only 2025.", broadcast_level=2)`. A verb that is async is
        waited for. Blocks the thread until trio's thread comes to it. Raises what the verb raises, ConversationClosed
        if trio has ended, RuntimeError in trio's own thread.
        """
        call = partial(verb, *arguments, **options)
        run = trio.from_thread.run if inspect.iscoroutinefunction(verb) else trio.from_thread.run_sync
        try:
            return run(call, trio_token=self._token)
        except (trio.RunFinishedError, trio.Cancelled):  # trio ends: this thread has no scope that was cancelled
            raise ConversationClosed from None

    async def wait_idle(self) -> None:
        """Until nothing runs, told and background work included, and nothing in line is about to begin.

        Cancelled: the work goes on.
        """
        self._router.refuse_inside("wait_idle")
        await trio.lowlevel.checkpoint()
        await self._line.wait_idle()

    def _say(self, words: Words) -> Receipt:
        receipt = self._spoken.say(words, None).receipt
        if words.settled != "missed":
            self._go_on()
        return receipt
