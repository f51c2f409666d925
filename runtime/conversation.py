"""Conversation: the user's handle. Verbs that only request are sync; those that wait for an outcome are async."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Literal

import trio

from .directory import ConversationStatistics
from .errors import ConversationClosed, RoundStopped
from .event import DeadLetter, DraftGrew, Event, EventsDropped
from .ids import Ids, current_ids
from .intervention import Interventions
from .line import Line
from .memory import Memory
from .post import Post
from .receipt import Receipt, Words
from .request import Request
from .round import Round
from .router import Router
from .subscription import Subscription
from .supervisor import Supervisor
from .transcript import Transcript
from .turn import Turn
from .user_message import UserMessage

Delivery = Literal["now"]
"""When an intervention takes hold: in the call itself."""


class Conversation:
    """Made by `open_conversation` or a Board. Its verbs are the host's.

    From inside a role's turn all but `stop` raise InsideTurn: they would wait for that turn, or cut it for ever.
    """

    def __init__(self, router: Router, line: Line, interventions: Interventions, memory: Memory, ids: Ids) -> None:
        self._router = router
        self._line = line
        self._interventions = interventions
        self._memory = memory
        self._ids = ids
        self._said: dict[str, Words] = {}
        interventions.on_missed = self._missed
        memory.on_read = interventions.saw

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self._memory.id

    async def send(self, message: str | UserMessage) -> Post:
        """Runs a round and returns the root's reply; stands in line while another round runs.

        Cancelled: the round's work is recalled, and this returns when all of it has ended. A message whose id was
        said before waits for the same reply, and cancelling that wait recalls nothing. Raises RoleFailed, NoReply,
        RequestRecalled if the one who sent it first was cancelled, ConversationClosed.
        """
        self._router.refuse_inside("send")
        await trio.lowlevel.checkpoint_if_cancelled()
        said = self._said_before(message)
        if said is not None:
            return await said.reply()
        request = self._request(message)
        if isinstance(message, UserMessage):
            self._inside(self._start, self._keep(Words(request.words)), request)
        else:
            self._inside(self._line.add, request)
        try:
            await request.wait_ended()
        except BaseException:
            self._inside(self._line.abandon, request)
            with trio.CancelScope(shield=True):
                await request.wait_ended()
            raise
        return request.unwrap()

    def communicate(self, message: str | UserMessage, *, broadcast_level: int = 1) -> Receipt:
        """Says something: an intervention if a round runs, else a new round. Words that meet nobody become a round.

        Raises ValueError for a level that is none, ConversationClosed.
        """
        self._router.refuse_inside("communicate")
        said = self._said_before(message)
        if said is not None:
            return said
        request = self._request(message)
        words = self._keep(Words(request.words, broadcast_level))
        if self._line.current is None:
            self._inside(self._start, words, request)
        else:
            words.fallback = request
            words.request = self._line.current
            self._inside(self._interventions.submit, words)
        return words.receipt

    def intervene(
        self,
        message: str | UserMessage,
        *,
        broadcast_level: int = 1,
        delivery: Delivery = "now",
        role: str | None = None,
    ) -> Receipt:
        """Interrupts the running work now; the same round goes on with these words. With nobody there: missed.

        From each role that waits for nobody, or from `role`, `broadcast_level` actors up the superior chain are
        reached; a negative level reaches the top. The highest reached turn of a chain starts again, what is below it
        is recalled; what they had so far is kept. Raises ValueError for a level or a delivery that is none,
        UnknownRole.
        """
        self._router.refuse_inside("intervene")
        if delivery != "now":
            raise ValueError(f"delivery is 'now', not {delivery!r}")
        said = self._said_before(message)
        if said is not None:
            return said
        words = Words(self._named(message), broadcast_level, role)
        words.request = self._line.current
        if self._line.stopping:
            words.settled = "missed"
        else:
            self._inside(self._interventions.submit, words)
        return self._keep(words).receipt

    def stop(self, reason: str) -> None:
        """Ends the round now: what it has is kept, `send` and `reply` raise RoundStopped once all work has ended.

        So do sends in line. A root that has just finished stands. A role may call it from its own turn. With nothing
        to end it does nothing; of two reasons the first stays.
        """
        self._inside(self._line.end_all, RoundStopped(reason))

    def replies(self) -> Subscription[Post]:
        """Yields, from the call on, each round's last post to the user, error posts included.

        It ends with the conversation: a task that reads it in a nursery inside the block is to be cancelled first.
        """
        return self._line.replies.subscribe(Subscription())

    def events(self, buffer: int = 1000) -> Subscription[Event]:
        """Yields, from the call on, what happens. The error of a reader is the reader's.

        It ends with the conversation: a task that reads it in a nursery inside the block is to be cancelled first.

        A reader that is `buffer` events behind loses the oldest growth of drafts first, and gets
        `EventsDropped(count)` for what it lost.
        """
        if buffer < 1:
            raise ValueError(f"a buffer holds at least one event, not {buffer!r}")
        return self._router.events.subscribe(Subscription[Event](buffer, DraftGrew, EventsDropped))

    def transcript(self) -> Transcript:
        """All that has been recorded up to now, as one frozen value."""
        return self._memory.transcript()

    def rounds(self, role: str, include_failure_rounds: bool = False) -> tuple[Round, ...]:
        """What that role would get from memory now."""
        return self._memory.role_rounds(role, include_failure_rounds)

    def dead_letters(self) -> tuple[DeadLetter, ...]:
        """The last posts that nobody took, oldest first, with the reasons."""
        return tuple(self._router.dead_letters)

    def statistics(self) -> ConversationStatistics:
        """What it is doing now."""
        return self._router.directory.statistics(len(self._router.turns))

    async def wait_idle(self) -> None:
        """Until no round runs or stands in line and all told work has ended. Cancelled: the work goes on."""
        self._router.refuse_inside("wait_idle")
        await trio.lowlevel.checkpoint()
        await self._line.wait_idle()

    def begin_closing(self) -> None:
        """Ends all that runs and stands in line, in this step; leaving the block does it. Safe to repeat."""
        if not self._router.closed:
            self._router.closed = True
            self._inside(self._line.end_all, ConversationClosed())

    def __repr__(self) -> str:
        state = "closed" if self._router.closed else "idle" if self._line.idle else "running"
        return f"<Conversation {self.id} {state}>"

    def serve_with(self, supervisor: Supervisor) -> None:
        """Joins the parts: who is told what, in which order, when a turn ends."""
        self._router.on_ended = self._turn_ended
        self._line.on_began = partial(self._round_began, supervisor)
        self._line.on_refused = self._refused
        self._line.on_idle = supervisor.idle
        supervisor.on_told_failure = self._line.break_off
        supervisor.on_cancelled = self.begin_closing

    def _turn_ended(self, turn: Turn) -> None:
        # First the words that came too late for this turn, or they would be aimed at the next round.
        self._interventions.turn_ended(turn)
        self._line.turn_ended(turn)

    def _said_before(self, message: str | UserMessage) -> Receipt | None:
        words = self._said.get(message.id) if isinstance(message, UserMessage) else None
        return words.receipt if words is not None else None

    def _named(self, message: str | UserMessage) -> UserMessage:
        if isinstance(message, str):
            return UserMessage(message, id=self._ids.create("words"))
        return message if message.id else replace(message, id=self._ids.create("words"))

    def _request(self, message: str | UserMessage) -> Request:
        if self._router.closed:
            raise ConversationClosed
        return Request(self._named(message))

    def _keep(self, words: Words) -> Words:
        self._said[words.id] = words
        return words

    def _start(self, words: Words, request: Request) -> None:
        words.request = request
        words.action = "waiting"
        self._line.add(request)

    def _round_began(self, supervisor: Supervisor, request: Request, turn: Turn) -> None:
        supervisor.watch()
        words = self._said.get(request.words.id)
        if words is not None:
            self._interventions.follow(words, turn)

    def _refused(self, request: Request) -> None:
        words = self._said.get(request.words.id)
        if words is not None:
            words.action = words.settled = "missed"
            words.changed()

    def _missed(self, words: Words) -> None:
        if words.fallback is not None:
            self._start(words, words.fallback)
        elif words.settled == "missed":
            words.request = None

    def _inside(self, function: Callable[..., None], *arguments: object) -> None:
        """Calls with the conversation's own source of ids, whoever calls."""
        if current_ids.get() is self._ids:
            return function(*arguments)
        variables = copy_context()
        variables.run(current_ids.set, self._ids)
        variables.run(function, *arguments)
