"""ConversationLife: how a conversation's parts are joined, how a round is waited for, and how all of it ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio

from .background import Background
from .conversation_view import ConversationView
from .errors import ConversationClosed
from .event import Resumed
from .line import Line
from .memory import Memory
from .post import Post
from .request import Request
from .router import Router
from .spoken import Spoken
from .supervisor import Supervisor
from .turn import Turn
from .user_message import UserMessage


class ConversationLife(ConversationView):
    """What `open_conversation`, a Board and the verbs call; the verbs themselves are those of `Conversation`."""

    def __init__(self, router: Router, line: Line, memory: Memory, spoken: Spoken, background: Background) -> None:
        super().__init__(router, line, memory)
        self._spoken = spoken
        self._interventions = spoken.interventions
        self._background = background
        self._token = trio.lowlevel.current_trio_token()
        memory.on_read = self._interventions.saw

    def begin_closing(self) -> None:
        """Ends all that runs and stands in line, in this step; leaving the block does it. Safe to repeat."""
        if not self._router.closed:
            self._router.closed = True
            self._spoken.inside(self._interventions.drop)
            self._spoken.inside(self._line.end_all, ConversationClosed())
            self._go_on()

    def begin_draining(self) -> tuple[UserMessage, ...]:
        """Takes no more rounds of the user's, in this step; gives what stood in line. Safe to repeat.

        Who waits for what stood in line gets ConversationClosed. What runs goes on and may be spoken to; reports of
        background work still open their rounds.
        """
        refusal = self._line.refusal = ConversationClosed("no new round is taken: the board is drained")
        in_line = [request for request in self._line.waiting if request.report is None]
        for request in in_line:
            self._spoken.inside(self._line.withdraw, request, refusal)
        return tuple(request.words for request in in_line)

    def refuse_inside(self, verb: str) -> None:
        """Raises InsideTurn in a turn of this conversation."""
        self._router.refuse_inside(verb)

    def serve_with(self, supervisor: Supervisor) -> None:
        """Joins the parts: who is told what, in which order, when a turn ends."""
        self._router.on_ended = self._turn_ended
        self._line.on_began = partial(self._round_began, supervisor)
        self._line.on_idle = supervisor.idle
        self._line.on_ended = self._background.round_ended
        supervisor.on_told_failure = self._told_failed
        supervisor.on_cancelled = self.begin_closing

    def _turn_ended(self, turn: Turn) -> None:
        # First an answer that is none, so that words which came too late meet the turn that is to give another; then
        # those words, or they would be aimed at the next round; then the report, or the conversation would be idle in
        # between.
        self._line.ask_again(turn)
        self._interventions.turn_ended(turn)
        self._background.turn_ended(turn)
        self._line.turn_ended(turn)

    def _told_failed(self, error: Exception) -> None:
        self._spoken.inside(self._spoken.give_back)
        self._line.break_off(error)

    def _round_began(self, supervisor: Supervisor, request: Request, turn: Turn) -> None:
        supervisor.watch()
        self._spoken.round_began(request, turn)

    async def _send(
        self, message: str | UserMessage, objection: Callable[[Post], UserMessage | None] | None = None
    ) -> Post:
        """Runs a round of it, or waits for that of a message with this id; `objection` may ask for another answer."""
        said = self._spoken.before(message)
        if said is not None:
            return await said.receipt.reply()
        request = self._spoken.send(message)
        request.objection = objection or request.objection
        self._go_on()
        try:
            await request.wait_ended()
        except BaseException:
            await self._abandon(request)
            raise
        return request.unwrap()

    async def _abandon(self, request: Request) -> None:
        """Recalls its work, or takes it out of the line, and returns when all of that has ended, cancelled or not."""
        self._spoken.inside(self._line.abandon, request)
        with trio.CancelScope(shield=True):
            await request.wait_ended()

    def _go_on(self) -> None:
        """Opens the gate, after what a verb has cut: in the other order a step might begin between the two."""
        gate = self._router.gate
        if gate.paused:
            gate.paused = False
            self._router.time.go_on()
            gate.look_again()
            if self._router.events.wanted:
                self._router.events.publish(Resumed())
