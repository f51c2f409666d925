"""ConversationView: what a host can read of a conversation, at any time. Nothing here steers it."""

from __future__ import annotations

from .directory import ConversationStatistics
from .event import DeadLetter, DraftGrew, Event, EventsDropped
from .line import Line
from .memory import Memory
from .post import Post
from .round import Round
from .router import Router
from .subscription import Subscription
from .transcript import Transcript
from .usage import ConversationUsage


class ConversationView:
    """The reading half of `Conversation`."""

    def __init__(self, router: Router, line: Line, memory: Memory) -> None:
        self._router = router
        self._line = line
        self._memory = memory

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self._memory.id

    @property
    def paused(self) -> bool:
        """Whether turns stop at their next boundary."""
        return self._router.gate.paused

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

    @property
    def usage(self) -> ConversationUsage:
        """What it has used up to now, in all, by role and by round."""
        return self._router.ledger.report()

    def __repr__(self) -> str:
        state = "closed" if self._router.closed else "idle" if self._line.idle else "running"
        return f"<Conversation {self.id} {state}{', paused' if self.paused else ''}>"
