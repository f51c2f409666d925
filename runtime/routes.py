"""Routes: which turns there are, and how they begin, are cut, recalled and ended. Everything here is one sync step."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable

from .dead_letters import DeadLetters
from .directory import Directory, Entry
from .errors import ConversationClosed, RequestRecalled
from .event import AttemptCut, Event
from .gate import Gate
from .limits import UNLIMITED
from .post import Post
from .server import Server
from .subscription import Publisher
from .turn import Turn
from .usage import Ledger
from .waits import refuse_cycle, refuse_inside
from .working_time import WorkingTime


class Routes:
    """Knows every turn that is not over. `on_ended` is called in the step in which one ends."""

    def __init__(self, directory: Directory, record: Callable[[Post], None], events: Publisher[Event]) -> None:
        self.directory = directory
        self.record = record
        """Adds a post to memory. No wake, no checkpoint."""
        self.events = events
        self.servers: dict[str, Server] = {}
        """The runtime's own actors, memory and supervisor."""
        self.turns: dict[Turn, None] = {}
        """Every turn that is not over, in the order of their beginning."""
        self.on_ended: Callable[[Turn], None] = lambda turn: None
        self.dead_letters = DeadLetters(events)
        self.gate = Gate()
        self.time = WorkingTime()
        self.budget = UNLIMITED
        """That of the round which runs, or ran last: for work that nobody's request is waiting for."""
        self.round = ""
        """The id of that round."""
        self.ledger = Ledger()
        self.on_boundary: Callable[[], None] = lambda: None
        """Called whenever a turn may have come to a boundary: what waits for that may go on."""
        self.answer: Callable[[Turn], Awaitable[None]]
        """Works on a question that the one asked has sent back, in the task of the ask."""
        self.inspect: Callable[[Post], Post] = lambda post: post
        """The host's look at every post that travels; what it gives travels instead. Raises PostRefused."""
        self.tell_timeout = 5.0
        self.closed = False
        self._cutting: Turn | None = None
        """The turn whose scope is being cancelled."""

    def open(self, turn: Turn) -> Entry:
        """Registers the turn, records its post as the host lets it pass. Raises what `recipient` does, PostRefused."""
        entry = self.recipient(turn)
        turn.post = self.inspect(turn.post)
        self.register(turn)
        return entry

    def recipient(self, turn: Turn) -> Entry:
        """Who shall work on it. Raises UnknownRole, AskCycle, RoleFailed, ConversationClosed."""
        if self.closed:
            raise ConversationClosed
        entry = self.directory.find(turn.post.send_to)
        if entry.failed is not None:
            raise copy.copy(entry.failed)
        refuse_cycle(self.directory, turn, entry)
        return entry

    def register(self, turn: Turn) -> None:
        """From now on the turn is waited for; its post is recorded."""
        self.turns[turn] = None
        if turn.asker is not None:
            turn.asker.waits[turn] = None
        self.record(turn.post)

    def admit(self, turn: Turn, entry: Entry) -> None:
        """Puts the post in its mailbox though that may be full: a round's first post, or one that was handed on."""
        self._put(turn, entry, entry.mailbox.admit)

    def hand_on(self, turn: Turn, post: Post) -> None:
        """The new turn takes this one's place in its asker's waits. Raises what `open` raises, and nothing is changed.

        Told: it is told on.
        """
        successor = Turn(post, turn.asker, turn.variables.copy(), foreground=turn.foreground, budget=turn.budget)
        successor.report_to = turn.report_to
        successor.answer_to = turn.answer_to if turn.asked else post.send_from
        successor.outer = turn.outer
        entry = self.open(successor)
        turn.hand_on(successor)
        turn.account = successor.post
        self.admit(successor, entry)

    def recall(self, turn: Turn, error: Exception | None = None) -> list[Turn]:
        """Ends the work for a request that nobody waits for any more, and all below it; gives the turns it ended."""
        if turn.state == "ended":
            return []
        turn.end_error = turn.end_error or error
        if turn.state == "running":
            first, turn.recalled = not turn.recalled, True
            if first or error:
                return self.interrupt(turn)
            return [turn, *self._recall_below(turn)]
        turn.recalled = True
        self.directory.entry_of(turn.role).mailbox.recall(turn.post.id)
        if turn.asked:
            turn.account = turn.answer(state="not_started")
            self.record(turn.account)
        else:
            self.dead_letters.add(turn.post, "recalled before it was begun")
        self.finish(turn, turn.end_error or RequestRecalled(turn.role, turn.post.id))
        return [turn]

    def interrupt(self, turn: Turn, words: str | None = None) -> list[Turn]:
        """Cuts the attempt; what it waits for is recalled in the same step. Gives all turns cut, outermost first.

        Cancelling goes from the outside in: an asker must be cancelled before a recalled request could wake it.
        Recording goes from the inside out, as each attempt ends. What a block that is let finish waits for goes on.
        """
        self._cutting, before = turn, self._cutting
        turn.interrupt("recalled" if words is None else f"intervention {words}")
        self._cutting = before
        if self.events.wanted:
            self.events.publish(AttemptCut(turn.role, turn.post.id, turn.attempts, words))
        return [turn, *self._recall_below(turn)]

    def finish(self, turn: Turn, result: Post | Exception | None) -> None:
        """In one step: the turn is over, its asker is woken, and whoever follows turns is told."""
        del self.turns[turn]
        turn.end(result)
        if turn.recalled and turn.end_error is None and isinstance(result, Post):
            self.dead_letters.add(result, "nobody waited for it any more")
        self.on_ended(turn)

    def refuse_inside(self, verb: str) -> None:
        """Raises InsideTurn in a turn of this conversation, or of one that was opened inside one of its turns."""
        refuse_inside(self.turns, verb)

    def turns_of(self, role: str) -> list[Turn]:
        """The turns of one role, the running one first."""
        turns = [turn for turn in self.turns if turn.role == role]
        return sorted(turns, key=lambda turn: turn.state != "running")

    def _recall_below(self, turn: Turn) -> list[Turn]:
        """What a block that is let finish waits for goes on, save the questions of a recalled turn."""
        unanswered = turn.questions if turn.recalled else ()
        ended = [below for below in turn.waits if not below.sheltered or below in unanswered]
        return [cut for below in ended for cut in self.recall(below)]

    def _asker_cancelled(self, asker: Turn, turn: Turn) -> None:
        # What is cut with its asker `interrupt` recalls itself, as it gives all that it has cut.
        if asker is not self._cutting or turn.latest.sheltered:
            self.recall(turn.latest)

    def _put(self, turn: Turn, entry: Entry, put: Callable[[str, Turn], None]) -> None:
        # A task runs its next step in what `context` then is. Set while the receiver is parked it costs nothing;
        # set by the receiver itself it would take effect only after one more trip through the scheduler.
        if entry.mailbox.receiver is not None:
            entry.mailbox.receiver.context = turn.variables
        put(turn.post.id, turn)
        if entry.start is not None:
            entry.start()
