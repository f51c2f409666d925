"""TurnContext: what a role may do during one attempt. Used after its attempt it raises AttemptEnded.

What it does above its own layer (subordinates, words that were read) is the protocol `Above`, given to it from there.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import trio

from .above import Startable
from .attachment import Attachment, AttachmentType
from .attempt_view import AttemptView
from .call import Call
from .draft import Draft
from .errors import RequestRecalled
from .event import Event
from .json_value import EMPTY, FrozenMapping, JsonValue
from .limits import Limits
from .post import USER, Marks, Post
from .receipt import Delivery, Receipt
from .shared_memory import EntryScope, EntryType, SharedMemoryEntry
from .step import Silence, check_grace, ended_by, inside_step, shielded_block
from .text import Text
from .tool import Tool
from .turn import Turn
from .usage import Usage
from .user_message import UserMessage
from .waits import answering


@dataclass(frozen=True, slots=True)
class LiveContext:
    """What an actor's `live` is handed: whose lifetime it opens."""

    conversation: str
    """The conversation's id."""
    role: str
    superior: str | None


class TurnContext(AttemptView):
    """One attempt's access to the conversation. Tasks that a role starts in a nursery of its own may share it."""

    __slots__ = ()

    async def ask(
        self,
        name: str,
        message: str | Text = "",
        attachments: Iterable[Attachment] = (),
        *,
        limits: Limits | None = None,
    ) -> Post:
        """The reply of another role; `limits` are of this request alone, within those of this one's own.

        While this waits, that role may ask back: this role's `on_question` answers. Cancelled: the request is recalled
        at once, and this waits until all work for it has ended. Raises UnknownRole, AskCycle if that role waits for
        this one, NoReply if it returned None, RoleFailed if it failed or went over its limits, LimitReached if its
        reply was one too many for the round, PostRefused.
        """
        turn = self._live()
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._router.gate.stops(turn):
            await self._router.gate.wait(turn)
        return await self._router.ask(Post.create(message, turn.role, name, tuple(attachments)), turn, limits)

    async def ask_superior(self, message: str | Text, attachments: Iterable[Attachment] = ()) -> Post:
        """The answer of whoever waits for this turn, from its `on_question`; for the root, of the host's.

        Cancelled: the question is recalled, and this waits until the work on it has ended. Raises NobodyToAsk for a
        turn that nobody waits for, RequestRecalled if the asker has stopped waiting, RoleFailed.
        """
        turn = await self._at_boundary()
        at_work = answering(turn)
        superior = at_work.asker
        to = USER if superior is None else superior.role
        marks = Marks(kind="question")
        post = Post.create(message, turn.role, to, tuple(attachments), marks=marks)
        if superior is None:
            return await self._above.ask_user(post, turn, at_work)
        if turn.recalled or at_work.recalled:
            raise RequestRecalled(turn.role, turn.post.id)
        return await self._router.ask_back(post, turn, at_work)

    def start_background(self, name: str, message: str | Text = "", attachments: Iterable[Attachment] = ()) -> Post:
        """Asks another role without waiting; gives the request. Its report arrives in this role's mailbox as a post.

        Safe to repeat in a new attempt: while a request of this role to that one is under way, or its report has not
        been read, no second one is started and the first is given. Its work is no part of the round: `intervene` with
        its name reaches it, `stop` ends it. What it fails with is its report. Raises UnknownRole, PostRefused,
        LimitReached if the round has no room for its reply.
        """
        turn = self._live()
        return self._above.start_background(Post.create(message, turn.role, name, tuple(attachments)), turn)

    def intervene(
        self, role: str, message: str | UserMessage, *, broadcast_level: int = 1, delivery: Delivery = "now"
    ) -> Receipt:
        """Speaks into the work of a role under this one, such as one that was started in the background.

        Raises UnknownRole for a role that is not under this one, InsideTurn if it would interrupt this turn.
        """
        turn = self._live()
        return self._above.intervene(turn, role, message, broadcast_level, delivery)

    async def tell(self, name: str, message: str | Text = "", attachments: Iterable[Attachment] = ()) -> None:
        """Delivers a post and goes on; nobody waits for what the role makes of it. Tell last: an attempt may repeat.

        A checkpoint only if the mailbox is full; no room in time makes it a dead letter. Cancelled: it may have been
        told. Raises UnknownRole.
        """
        turn = self._live()
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._router.tell(Post.create(message, turn.role, name, tuple(attachments)), turn)

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> Any:
        """What the tool returns. It is a step.

        Its start and its outcome are recorded as notes: done, failed, interrupted with its progress, or not started.
        Cancelled: the tool is, and what it had reported is kept; one with `interruptible=False` is finished first.
        Raises ToolFailed, with what the tool raised as its cause; so too for wrong arguments and for a call that took
        too long.
        """
        options = self._above.options
        call = Call(tool, self._live(), lambda: self.draft, self._router)
        return await call.run(arguments, options.grace, options.ladder)

    @asynccontextmanager
    async def step(self, stalled: float | None = None) -> AsyncIterator[Draft]:
        """A block round one model call, which writes its reply into the draft that this gives.

        A pause stops before it; words with `delivery="after_step"` let it end. Raises ModelTimedOut if nothing is
        written, and `step_goes_on` not called, for `stalled` seconds (the conversation's option, unless given; infinity
        for a call that does not stream).
        """
        turn = await self._at_boundary()
        seconds = self._above.options.stalled if stalled is None else stalled
        silence = Silence(seconds) if seconds != math.inf else None
        self._silences = (*self._silences, silence) if silence is not None else self._silences
        try:
            with inside_step(turn, self._router), ended_by(silence):
                yield self.draft
        finally:
            self._silences = tuple(other for other in self._silences if other is not silence)

    @asynccontextmanager
    async def uninterruptible(self, grace: float | None = None) -> AsyncIterator[None]:
        """A block that an interruption lets finish: it takes hold at the block's end.

        From the interruption on it has `grace` seconds (the conversation's option, unless given), then it is cancelled
        all the same. The receipt lists this role as spared. The end of the block is a checkpoint, so that what follows
        does not run in an interrupted attempt.
        """
        turn = self._live()
        grace = check_grace(self._above.options.grace if grace is None else grace)
        async with shielded_block(turn, self._router, grace):
            yield

    def spend(
        self,
        *,
        model: str = "",
        model_calls: int = 0,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cost: float | None = None,
    ) -> None:
        """Counts what this role has used, on the whole line up to the round.

        `cost` is reckoned from the host's prices for `model` unless given. Raises LimitReached once all is counted,
        ValueError for what is no amount.
        """
        turn = self._live()
        if cost is None:
            price = self.price_of(model)
            cost = 0.0 if price is None else price.of(input_tokens, output_tokens)
        used = Usage(model_calls=model_calls, input_tokens=input_tokens, output_tokens=output_tokens, cost=cost)
        self._router.ledger.count(self._router.round, turn.role, used)
        turn.budget.spend(used)

    def record(
        self, message: str | Text = "", *attachments: Attachment, extra: Mapping[str, JsonValue] | None = None
    ) -> Post:
        """Keeps a finished piece of work as a note of this role. Sync: no cancellation falls between.

        `extra` is kept in the note's marks, and no model is shown it. Raises ValueError for one that is no JSON.
        """
        turn = self._live()
        marks = Marks(turn.post.id, "note", extra=EMPTY if extra is None else FrozenMapping(extra))
        post = Post.create(message, turn.role, turn.role, attachments, marks=marks)
        self._router.record(post)
        return post

    def share(
        self,
        type: EntryType,
        content: str,
        scope: EntryScope = "round",
        note: str = "",
    ) -> SharedMemoryEntry:
        """Puts an entry into shared memory, for this round or the conversation; a later one of the role replaces it.

        Sync: no cancellation falls between. It is dropped with a round that fails or is stopped. Raises ValueError for
        a type or scope that does not exist.
        """
        entry = SharedMemoryEntry.create(type, content, scope)
        self.record("", Attachment.create(AttachmentType.shared_memory_entry, note, extra=entry))
        return entry

    async def start_subordinate(self, actor: Startable | str, *, name: str = "", reset: bool = False) -> str:
        """The name of a role under this one, started unless it is there; safe to repeat in a new attempt.

        Given is an actor, or the name of a profile. `name` is used in place of the actor's own. It lives until it is
        ended, this role is, or the conversation; `reset` lets it forget its earlier rounds. Cancelled: it was started
        or it was not, and the next attempt finds out by asking again. Raises UnknownRole for a profile that is none,
        DuplicateName if the name is another superior's, LimitReached for a role too deep or one too many.
        """
        turn = self._live()
        return await self._above.start_subordinate(turn.role, actor, name=name, reset=reset)

    async def end_subordinate(self, name: str) -> None:
        """Ends a role under this one: its turn is recalled, its mailbox answered, its name free on return.

        Safe to repeat in a new attempt. Cancelled: it ends all the same. Raises UnknownRole for a role that is not
        under this one, RoleFailed if leaving its `live` raised.
        """
        turn = self._live()
        await self._above.end_subordinate(turn.role, name)

    async def query(self, server: str, question: object) -> Any:
        """The answer of one of the runtime's own actors; what functions such as `get_role_rounds` are made of."""
        self._live()
        return await self._router.servers[server].ask(question)

    def emit(self, event: Event) -> None:
        """Lets whoever reads the conversation's events see this one, such as a role's count of tokens."""
        self._publish(event)

    async def _at_boundary(self) -> Turn:
        turn = self._live()
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._router.gate.stops(turn):
            await self._router.gate.wait(turn)
        return turn
