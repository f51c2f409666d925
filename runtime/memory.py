"""Memory: the actor that keeps every post and answers questions about them, and the functions that ask it.

What is recorded goes into one ordered log without a wake, and is filed when memory is asked. Answers are frozen values
that share structure with what memory holds: asking costs what is new since the last time, however long the conversation
is. The current round is the one that began last, whatever became of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .context import TurnContext
from .event import Event, PostRecorded
from .filed_round import FiledRound
from .post import Post
from .role_rounds import RoleHistory
from .round import Round, RoundState
from .server import Server
from .shared_entries import SharedEntries
from .shared_memory import EntryType, SharedMemoryEntry, check_type
from .subscription import Publisher
from .transcript import Transcript
from .user_message import UserMessage

MEMORY = "memory"


async def get_role_rounds(context: TurnContext, role: str, include_failure_rounds: bool = False) -> Sequence[Round]:
    """The conversation's rounds, oldest first, each with the posts from or to `role`; none give an empty tuple.

    Failed rounds are left out unless asked for; stopped ones, and one without such a post, are kept. Temporal parts of
    messages and attachments are shown in the current round alone. Everything recorded before the answer is in it, and
    nothing later; a slice of it is a tuple. Asking costs what is new since the role's rounds were last asked for: of
    the current round its list of posts, of those before it nothing. Cancelled: nothing happened. For a role's own
    rounds, interventions in them count as seen.
    """
    rounds: Sequence[Round] = await context.query(MEMORY, _RoleRounds(role, include_failure_rounds, context.role))
    return rounds


async def get_shared_memory_entries(context: TurnContext, entry_type: EntryType) -> tuple[SharedMemoryEntry, ...]:
    """The entries of one type that hold now, at most one a role, the newest last: take that if you want one.

    Those of failed and stopped rounds are dropped. A role's entry of scope `round` hides its `conversation` entry in
    that round. Cancelled: nothing happened. Raises ValueError for a type that does not exist.
    """
    check_type(entry_type)
    entries: tuple[SharedMemoryEntry, ...] = await context.query(MEMORY, _SharedEntries(entry_type))
    return entries


@dataclass(frozen=True, slots=True)
class _RoleRounds:
    role: str
    include_failure_rounds: bool
    reader: str


@dataclass(frozen=True, slots=True)
class _SharedEntries:
    type: EntryType


@dataclass(frozen=True, slots=True)
class _RoundBegins:
    round: Round


@dataclass(frozen=True, slots=True)
class _RoundEnds:
    state: RoundState


@dataclass(frozen=True, slots=True)
class _ViewBegins:
    role: str


_LogEntry = Post | UserMessage | _RoundBegins | _RoundEnds | _ViewBegins


class Memory:
    """The log, the filed rounds, and the answers. Changed by the runtime alone, in sync steps."""

    def __init__(self, conversation_id: str, events: Publisher[Event]) -> None:
        self.server = Server(MEMORY, self._answer)
        self.on_read: Callable[[str, Iterable[str]], None] = lambda role, words_ids: None
        """Told which words a role has read in its own rounds."""
        self.id = conversation_id
        """The conversation's id."""
        self._events = events
        self._round = ""
        self._log: list[_LogEntry] = []
        self._rounds: list[FiledRound] = []
        self._histories: dict[str, RoleHistory] = {}
        self._shared = SharedEntries()
        self._unread: dict[str, list[str]] = {}

    def record(self, post: Post) -> None:
        """Adds a post to the log. No wake."""
        self._log.append(post)
        if self._events.wanted:
            self._events.publish(PostRecorded(post, self._round))

    def accept(self, words: UserMessage) -> None:
        """Adds the user's words, before anything is cut for them."""
        self._log.append(words)

    def begin_round(self, round_id: str, user_query: str) -> None:
        """What is recorded from now on belongs to this round."""
        self._round = round_id
        self._log.append(_RoundBegins(Round(round_id, user_query, "created", ())))

    def end_round(self, state: RoundState) -> None:
        """The last round is over."""
        self._log.append(_RoundEnds(state))

    def close(self) -> None:
        """Nothing more is recorded: a last round that nobody has ended was abandoned by a crash, and is stopped."""
        self._file()
        if self._rounds and self._rounds[-1].head.state == "created":
            self.end_round("stopped")

    def begin_view(self, role: str) -> None:
        """The role knows nothing of what was recorded before; the posts stay in the transcript."""
        self._log.append(_ViewBegins(role))

    def transcript(self) -> Transcript:
        """All that is recorded, as one frozen value."""
        self._file()
        rounds = tuple(filed.whole() for filed in self._rounds)
        names = (name for filed in self._rounds for post in filed.posts for name in (post.send_from, post.send_to))
        return Transcript(self.id, rounds, (), tuple(dict.fromkeys(names)))

    def role_rounds(self, role: str, include_failure_rounds: bool = False) -> tuple[Round, ...]:
        """What `get_role_rounds` answers, as a tuple of its own."""
        return tuple(self._rounds_of(role, include_failure_rounds))

    def shared_entries(self, entry_type: EntryType) -> tuple[SharedMemoryEntry, ...]:
        """What `get_shared_memory_entries` answers."""
        self._file()
        return self._shared.of(entry_type)

    def since(self, role: str, post_id: str) -> list[Post]:
        """The posts from or to a role that were recorded after that one, in order."""
        self._file()
        found: list[Post] = []
        for filed in reversed(self._rounds):
            for post in reversed(filed.posts_of(role)):
                if post.id == post_id:
                    return found[::-1]
                found.append(post)
        return found[::-1]

    def _rounds_of(self, role: str, include_failure_rounds: bool) -> Sequence[Round]:
        self._file()
        history = self._histories.get(role)
        if history is None:
            history = self._histories[role] = RoleHistory()
        return history.of(role, self._rounds, include_failure_rounds)

    def _answer(self, question: _RoleRounds | _SharedEntries) -> object:
        match question:
            case _RoleRounds(role, include_failure_rounds, reader):
                rounds = self._rounds_of(role, include_failure_rounds)
                if reader == role and (unread := self._unread.pop(role, None)):
                    self.on_read(role, unread)
                return rounds
            case _SharedEntries(entry_type):
                return self.shared_entries(entry_type)

    def _file(self) -> None:
        log, self._log = self._log, []
        for entry in log:
            match entry:
                case Post():
                    self._rounds[-1].add(entry)
                    self._shared.add(entry)
                    if entry.marks.kind in ("intervention", "nudge") and entry.marks.words is not None:
                        self._unread.setdefault(entry.send_to, []).append(entry.marks.words)
                case _RoundBegins(head):
                    self._rounds.append(FiledRound(head))
                    self._shared.begin_round()
                case _RoundEnds(state):
                    self._rounds[-1].end(state)
                    self._shared.end_round(state)
                case _ViewBegins(role):
                    self._begin_view(role)
                case UserMessage():
                    pass  # its posts follow, one for each role that is reached

    def _begin_view(self, role: str) -> None:
        self._unread.pop(role, None)
        current = self._rounds[-1]
        current.forget(role)
        self._histories[role] = RoleHistory(len(self._rounds) - 1, len(current.posts_of(role)))
