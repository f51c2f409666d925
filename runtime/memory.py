"""Memory: the actor that keeps every post and answers questions about them, and the functions that ask it.

What is recorded goes into one ordered log without a wake, and is filed when memory is asked. Answers are frozen values
that share structure with what memory holds; rounds before the last are filed once and never built again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from .context import TurnContext
from .event import Event, PostRecorded
from .post import Post
from .round import Round, RoundState
from .server import Server
from .shared_memory import EntryType, SharedMemoryEntry
from .subscription import Publisher
from .transcript import Transcript
from .user_message import UserMessage

MEMORY = "memory"


async def get_role_rounds(context: TurnContext, role: str, include_failure_rounds: bool = False) -> tuple[Round, ...]:
    """The conversation's rounds, each with the posts from or to `role`; failed rounds only if asked for.

    A round without such a post is kept, empty. Everything recorded before the answer is in it. Cancelled: nothing
    happened. For a role's own rounds, interventions in them count as seen.
    """
    rounds: tuple[Round, ...] = await context.query(MEMORY, _RoleRounds(role, include_failure_rounds, context.role))
    return rounds


async def get_shared_memory_entries(context: TurnContext, entry_type: EntryType) -> tuple[SharedMemoryEntry, ...]:
    """The entries of one type that hold now, at most one a role, the newest last.

    Those of failed and stopped rounds are dropped. A role's entry of scope `round` hides its `conversation` entry in
    that round. Cancelled: nothing happened.
    """
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


class _FiledRound:
    """One round as it grows: all its posts, and per role those from or to it."""

    def __init__(self, head: Round) -> None:
        self.head = head
        self.posts: list[Post] = []
        self.by_role: dict[str, list[Post]] = {}

    def add(self, post: Post) -> None:
        self.posts.append(post)
        self.by_role.setdefault(post.send_from, []).append(post)
        if post.send_to != post.send_from:
            self.by_role.setdefault(post.send_to, []).append(post)

    def view(self, posts: Iterable[Post]) -> Round:
        return replace(self.head, post_list=tuple(posts))


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
        self._rounds: list[_FiledRound] = []
        self._unread: dict[str, list[str]] = {}
        self._views: dict[str, tuple[int, int]] = {}
        """Where a role's view begins after a reset: the round's number and the posts of it to leave out."""
        self._finished: dict[tuple[str, bool], tuple[list[Round], int]] = {}

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

    def begin_view(self, role: str) -> None:
        """The role knows nothing of what was recorded before; the posts stay in the transcript."""
        self._log.append(_ViewBegins(role))

    def transcript(self) -> Transcript:
        """All that is recorded, as one frozen value."""
        self._file()
        rounds = tuple(filed.view(filed.posts) for filed in self._rounds)
        names = (name for filed in self._rounds for post in filed.posts for name in (post.send_from, post.send_to))
        return Transcript(self.id, rounds, (), tuple(dict.fromkeys(names)))

    def role_rounds(self, role: str, include_failure_rounds: bool = False) -> tuple[Round, ...]:
        """What `get_role_rounds` answers."""
        self._file()
        if not self._rounds:
            return ()
        done, upto = self._finished.setdefault((role, include_failure_rounds), ([], 0))
        last = len(self._rounds) - 1
        for number in range(upto, last):
            done += (one.without_temporal() for one in self._seen_by(role, number, include_failure_rounds))
        self._finished[role, include_failure_rounds] = (done, last)
        return (*done, *self._seen_by(role, last, include_failure_rounds))

    def shared_entries(self, entry_type: EntryType) -> tuple[SharedMemoryEntry, ...]:
        """What `get_shared_memory_entries` answers."""
        self._file()
        newest: dict[tuple[str, str], SharedMemoryEntry] = {}
        for filed in self._rounds:
            if filed.head.state in ("failed", "stopped"):
                continue
            for post in filed.posts:
                for entry in _entries(post, entry_type):
                    if entry.scope == "conversation" or filed is self._rounds[-1]:
                        newest.pop((post.send_from, entry.scope), None)
                        newest[post.send_from, entry.scope] = entry
        return tuple(
            entry for (role, scope), entry in newest.items() if scope == "round" or (role, "round") not in newest
        )

    def since(self, role: str, post_id: str) -> list[Post]:
        """The posts from or to a role that were recorded after that one, in order."""
        self._file()
        found: list[Post] = []
        for filed in reversed(self._rounds):
            for post in reversed(filed.by_role.get(role, ())):
                if post.id == post_id:
                    return found[::-1]
                found.append(post)
        return found[::-1]

    def _seen_by(self, role: str, number: int, include_failure_rounds: bool) -> list[Round]:
        filed = self._rounds[number]
        first, left_out = self._views.get(role, (0, 0))
        if number < first or (filed.head.state == "failed" and not include_failure_rounds):
            return []
        posts = filed.by_role.get(role, [])
        return [filed.view(posts[left_out:] if number == first else posts)]

    def _answer(self, question: _RoleRounds | _SharedEntries) -> object:
        match question:
            case _RoleRounds(role, include_failure_rounds, reader):
                rounds = self.role_rounds(role, include_failure_rounds)
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
                    if entry.marks.kind in ("intervention", "nudge") and entry.marks.words is not None:
                        self._unread.setdefault(entry.send_to, []).append(entry.marks.words)
                case _RoundBegins(head):
                    self._rounds.append(_FiledRound(head))
                case _RoundEnds(state):
                    self._rounds[-1].head = replace(self._rounds[-1].head, state=state)
                case _ViewBegins(role):
                    self._begin_view(role)
                case UserMessage():
                    pass  # its posts follow, one for each role that is reached

    def _begin_view(self, role: str) -> None:
        last = len(self._rounds) - 1
        self._views[role] = (last, len(self._rounds[last].by_role.get(role, ())))
        self._unread.pop(role, None)
        for failures in (False, True):
            self._finished.pop((role, failures), None)


def _entries(post: Post, entry_type: EntryType) -> Iterable[SharedMemoryEntry]:
    for attachment in post.attachment_list:
        if isinstance(attachment.extra, SharedMemoryEntry) and attachment.extra.type == entry_type:
            yield attachment.extra
