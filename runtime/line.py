"""Line: the rounds of a conversation. One runs, the others stand in line, in the order of the calls.

A round in line is held here: its post is made, recorded and put in the root's mailbox when the round begins, so no
walk, cut or search for circles meets it before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .errors import CallboardError, ConversationClosed, RequestRecalled, RoundStopped
from .event import QueueChanged, RoundBegan, RoundEnded
from .ids import Ids, current_ids
from .limits import Budget, Limits
from .memory import Memory
from .post import USER, Post
from .request import Request
from .root_turn import as_seen, first_turn, next_turn
from .round import RoundState
from .router import Router
from .signal import Signal
from .subscription import Publisher
from .turn import Turn
from .user_message import UserMessage


class Line:
    """Begins rounds and ends them; all in sync steps."""

    def __init__(self, root: str, router: Router, memory: Memory, ids: Ids) -> None:
        self._root = root
        self._ids = ids
        self._router = router
        self._memory = memory
        self._current: Request | None = None
        self._turn: Turn | None = None
        """The running round's turn; None once it is over and only others are awaited."""
        self._result: Post | Exception | None = None
        self._breaking = False
        """Whether all that runs is to end, the round with an error, before anything else begins."""
        self._waiting: list[Request] = []
        self._held = False
        """Whether what stands in line waits until somebody speaks again: the last round was stopped."""
        self._idle = Signal()
        self.replies: Publisher[Post] = Publisher()
        """Each round's last post to the user."""
        self.on_began: Callable[[Request, Turn], None] = lambda request, turn: None
        self.on_refused: Callable[[Request], None] = lambda request: None
        """Called for a request that ends before anybody could work on it."""
        self.on_idle: Callable[[], None] = lambda: None
        self.on_ended: Callable[[], None] = lambda: None
        """Called when a round has ended, before the next one begins."""
        self.limits = Limits()
        """What a round may use."""
        self.refusal: CallboardError | None = None
        """With what the user's own rounds are refused; None while they are taken."""
        self.refuse_inside = router.refuse_inside
        """Raises InsideTurn in a turn of this conversation."""

    @property
    def current(self) -> Request | None:
        """The request whose round runs and may go on; None also while only told work does, or all work is ending."""
        return self._current if self._turn is not None and not self.stopping else None

    def turn_of(self, request: Request) -> Turn | None:
        """The turn that owes this request's answer now; None if its round does not run, or the answer is there."""
        return self._turn if request is self._current else None

    @property
    def stopping(self) -> bool:
        """Whether all that runs is being ended: the round was stopped, it has failed, or the conversation closes."""
        return self._breaking or self._router.closed

    @property
    def idle(self) -> bool:
        """Whether nothing runs, told work included, and nothing in line will begin by itself."""
        return self._current is None and not self._router.turns and (self._held or not self._waiting)

    @property
    def waiting(self) -> tuple[Request, ...]:
        """What stands in line, in order."""
        return tuple(self._waiting)

    async def wait_idle(self) -> None:
        """Until `idle`. Cancelled: nothing happens to the work."""
        while not self.idle:
            await self._idle.wait()

    def add(self, request: Request) -> None:
        """Begins the request's round if none runs, else puts it in line. The user's own end a hold."""
        refusal = self.refusal if request.report is None else None
        if self._router.closed or refusal is not None:
            self._give_back(request, refusal or ConversationClosed())
        else:
            self._waiting.append(request)
            self._held = self._held and request.report is not None
            self._queue_changed(request)
            self._begin_next()

    def release(self) -> None:
        """What a stop held in line may begin."""
        self._held = False
        self._begin_next()

    def withdraw(self, request: Request, error: CallboardError | None = None) -> bool:
        """Takes a request out of the line, with its error; False if its round has begun or it is over."""
        if request not in self._waiting:
            return False
        self._waiting.remove(request)
        self._give_back(request, error or RequestRecalled(self._root, request.words.id))
        self._queue_changed(request)
        self._look_if_idle()
        return True

    def edit(self, request: Request, words: UserMessage) -> bool:
        """Replaces what a request in line says, in its place; False if its round has begun or it is over."""
        if request not in self._waiting:
            return False
        request.words = words
        self._queue_changed(request)
        return True

    def abandon(self, request: Request) -> None:
        """Nobody waits for this request any more: out of the line, or its work is recalled."""
        if not self.withdraw(request) and request is self._current and self._turn is not None:
            self._router.recall(self._turn)

    def break_off(self, error: Exception) -> None:
        """Ends all that nobody waits for but the user: told work failed, the round did, or somebody stopped it."""
        self._breaking = self._current is not None or bool(self._router.turns)
        for turn in list(self._router.turns):
            if turn.asker is None:
                self._router.recall(turn, error)

    def end_all(self, error: CallboardError) -> None:
        """Ends all that runs and what stands in line, each with this error, or with an earlier one.

        What was put in line for later outlasts a stop, and is held there.
        """
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            if request.outlasts_stop and not self._router.closed:
                self._waiting.append(request)
            else:
                self._give_back(request, error)
        self._held = bool(self._waiting)
        self.break_off(error)
        self._look_if_idle()

    def turn_ended(self, turn: Turn) -> None:
        """Follows the round's turn; ends the round once its work has."""
        if turn is self._turn:
            self._turn = turn.successor
            if self._turn is None:
                self._root_ended(turn)
        if self._result is not None and not (self._breaking and self._router.turns):
            self._end(self._result)
            self._begin_next()
        elif self._breaking and self._current is None and not self._router.turns:
            self._breaking = False
            self._begin_next()
        self._look_if_idle()

    def ask_again(self, turn: Turn) -> None:
        """Called when a turn has ended, before what it leaves is settled: an answer that is none is asked for again."""
        if turn is self._turn and self._current is not None:
            again = next_turn(turn, self._current, self._router, self._ids)
            if again is not None:
                self._turn, entry = again
                self._router.admit(self._turn, entry)

    def _root_ended(self, turn: Turn) -> None:
        assert turn.result is not None, "the user is owed an answer"
        self._result = turn.result
        if turn.account is not None:
            self.replies.publish(turn.account)
        if isinstance(turn.result, Exception) and not turn.recalled:
            self.break_off(turn.result)

    def _begin_next(self) -> None:
        while self._current is None and self._waiting and not (self._held or self.stopping):
            request = self._waiting.pop(0)
            self._queue_changed(request)
            self._begin(request)

    def _begin(self, request: Request) -> None:
        self._current = request
        request.variables.run(current_ids.set, self._ids)
        router = self._router
        router.round = request.round = self._ids.create("round")
        router.budget = Budget(self.limits, router.time.now())
        post, refusal = as_seen(router, request.first_post(self._root, self._ids))
        self._memory.begin_round(request.round, post.message)
        if router.events.wanted:
            router.events.publish(RoundBegan(request.round, post.message))
        turn = first_turn(request, post, router.budget)
        try:
            if refusal is not None:
                raise refusal
            entry = router.recipient(turn)
        except CallboardError as error:
            self._refuse(request, post, error)
        else:
            router.register(turn)
            self._turn = turn
            self.on_began(request, turn)
            router.admit(turn, entry)

    def _queue_changed(self, request: Request) -> None:
        if request.outlasts_stop and self._router.events.wanted:
            waiting = (waiting.words.id for waiting in self._waiting if waiting.outlasts_stop)
            self._router.events.publish(QueueChanged(tuple(waiting)))

    def _give_back(self, request: Request, error: CallboardError) -> None:
        """The request ends without a round."""
        request.end(error)
        self.on_refused(request)

    def _refuse(self, request: Request, post: Post, error: CallboardError) -> None:
        """The root has failed for good, or the host's hook let its post not pass: the round ends before it begins."""
        answer = replace(post.reply(str(error), kind="error"), send_to=USER)
        self._router.record(post)
        self._router.record(answer)
        self.replies.publish(answer)
        self._end(error)
        self.on_refused(request)

    def _end(self, result: Post | Exception) -> None:
        request, self._current, self._result, self._breaking = self._current, None, None, False
        assert request is not None and request.round is not None, "a round that ends has begun"
        state = _state(result)
        self._memory.end_round(state)
        if self._router.events.wanted:
            self._router.events.publish(RoundEnded(request.round, state))
        request.end(result)
        self.on_ended()

    def _look_if_idle(self) -> None:
        if self.idle:
            self._idle.fire()
            self.on_idle()


def _state(result: Post | Exception) -> RoundState:
    if isinstance(result, Post):
        return "finished"
    return "stopped" if isinstance(result, ConversationClosed | RequestRecalled | RoundStopped) else "failed"
