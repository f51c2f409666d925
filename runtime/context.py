"""TurnContext: what a role may do during one attempt. Used after its attempt it raises AttemptEnded.

What it does above its own layer (subordinates, words that were read) is the protocol `Above`, given to it from there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import trio
from pydantic_core import to_json

from .attachment import Attachment, AttachmentType
from .directory import Entry
from .draft import Draft
from .errors import AttemptEnded, ToolFailed, describe
from .event import CallOutcome, DraftGrew, Event, ToolBegan, ToolEnded
from .ids import create_id
from .post import Marks, Post
from .router import Router
from .shared_memory import EntryScope, EntryType, SharedMemoryEntry
from .tool import Tool
from .turn import Turn
from .user_message import UserMessage


class Startable(Protocol):
    """What can be started as a subordinate: an `Actor`."""

    name: str
    subordinates: Sequence[Any]


class Above(Protocol):
    """What stands above a context and serves it."""

    @property
    def round(self) -> str:
        """The id of the round that is running, or ran last."""

    def saw(self, role: str, words_ids: Iterable[str]) -> None:
        """The role has read these words."""

    async def start_subordinate(self, superior: str, actor: Startable, *, reset: bool) -> str:
        """See `TurnContext.start_subordinate`."""

    async def end_subordinate(self, superior: str, name: str) -> None:
        """See `TurnContext.end_subordinate`."""


@dataclass(frozen=True, slots=True)
class LiveContext:
    """What an actor's `live` is handed: whose lifetime it opens."""

    conversation: str
    """The conversation's id."""
    role: str
    superior: str | None


class TurnContext:
    """One attempt's access to the conversation. Tasks that a role starts in a nursery of its own may share it."""

    __slots__ = ("_above", "_entry", "_router", "_turn", "attempt")

    def __init__(self, turn: Turn, entry: Entry, router: Router, above: Above) -> None:
        self._turn = turn
        self._entry = entry
        self._router = router
        self._above = above
        self.attempt = turn.attempts
        """1, or more after interruptions of this turn."""

    @property
    def role(self) -> str:
        """The name under which this role was started."""
        return self._entry.name

    @property
    def subordinates(self) -> tuple[str, ...]:
        """The names of the roles started under this one, in the order of their start."""
        return tuple(self._entry.subordinates)

    @property
    def state(self) -> Any:
        """What this actor's `live` gave; None for an actor without one."""
        return self._entry.state

    @property
    def round(self) -> str:
        """The id of the round into which this attempt records."""
        return self._above.round

    @property
    def user_words(self) -> tuple[UserMessage, ...]:
        """What the user said to this turn while it was worked on, newest last. Reading counts as seeing."""
        turn = self._live()
        if turn.heard:
            self._above.saw(turn.role, [words.id for words in turn.heard])
        return tuple(words.message for words in turn.heard)

    @property
    def draft(self) -> Draft:
        """What this attempt has so far: interrupted, its text is kept as a partial post."""
        turn = self._live()
        if turn.draft is None:
            turn.draft = Draft(turn.role, self.attempt, self._draft_grew)
        return turn.draft

    async def ask(self, name: str, message: str = "", attachments: Iterable[Attachment] = ()) -> Post:
        """The reply of another role.

        Cancelled: the request is recalled at once, and this waits until all work for it has ended. Raises UnknownRole,
        AskCycle if that role waits for this one, NoReply if it returned None, RoleFailed if it failed.
        """
        turn = self._live()
        await trio.lowlevel.checkpoint_if_cancelled()
        return await self._router.ask(Post.create(message, turn.role, name, tuple(attachments)), turn)

    async def tell(self, name: str, message: str = "", attachments: Iterable[Attachment] = ()) -> None:
        """Delivers a post and goes on; nobody waits for what the role makes of it. Tell last: an attempt may repeat.

        A checkpoint only if the mailbox is full; no room in time makes it a dead letter. Cancelled: it may have been
        told. Raises UnknownRole.
        """
        turn = self._live()
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._router.tell(Post.create(message, turn.role, name, tuple(attachments)), turn)

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> Any:
        """What the tool returns.

        Its start and its outcome are recorded as notes: done, failed, interrupted with its progress, or not started.
        Cancelled: the tool is, and what it had reported is kept. Raises ToolFailed, with what the tool raised as its
        cause; so too for wrong arguments and for a call that took too long.
        """
        call = create_id("call")
        self._note_call(tool, call, {"arguments": arguments})
        self._publish(ToolBegan(self.role, self._turn.post.id, tool.name, call))
        outcome: CallOutcome = "not_started"
        detail: dict[str, Any] = {}
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            outcome = "interrupted"
            result = await tool.run(arguments, lambda text: self.draft.progress(tool.name, text, call))
            outcome, detail = "done", {"result": result}
            return result
        except Exception as error:
            outcome, detail = "failed", {"error": describe(error)}
            raise ToolFailed(tool.name, call, error) from error
        finally:
            progress = self.draft.take_progress(tool.name, call)
            kept = {"progress": progress} if progress and outcome != "done" else {}
            self._note_call(tool, call, {"outcome": outcome, **detail, **kept})
            self._publish(ToolEnded(self.role, self._turn.post.id, tool.name, call, outcome))

    def record(self, message: str = "", *attachments: Attachment) -> Post:
        """Keeps a finished piece of work as a note of this role. Sync: no cancellation falls between."""
        turn = self._live()
        post = Post.create(
            message, turn.role, turn.role, attachments, marks=Marks(kind="note", in_reply_to=turn.post.id)
        )
        self._router.record(post)
        return post

    def share(
        self,
        type: EntryType,
        content: str,
        scope: EntryScope = "round",
        note: str = "",
    ) -> SharedMemoryEntry:
        """Puts an entry into shared memory, for this round or the conversation; a later one of the role replaces it."""
        entry = SharedMemoryEntry.create(type, content, scope)
        self.record("", Attachment.create(AttachmentType.shared_memory_entry, note, extra=entry))
        return entry

    async def start_subordinate(self, actor: Startable, *, reset: bool = False) -> str:
        """The name of a role under this one, started unless it is there; safe to repeat in a new attempt.

        It lives until it is ended, this role is, or the conversation; `reset` lets it forget its earlier rounds.
        Cancelled: it was started or it was not, and the next attempt finds out by asking again. Raises DuplicateName
        if the name is another superior's.
        """
        turn = self._live()
        return await self._above.start_subordinate(turn.role, actor, reset=reset)

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

    def _note_call(self, tool: Tool, call: str, content: dict[str, Any]) -> None:
        note = {"call": call, "tool": tool.name, **content}
        try:
            text = to_json(note, fallback=repr).decode()
        except ValueError:  # half a surrogate pair, which UTF-8 cannot hold: escaped it can be kept
            text = json.dumps(note, default=repr)
        self.record("", Attachment.create(AttachmentType.function, text))

    def _draft_grew(self, text: str, type: str) -> None:
        self._publish(DraftGrew(self._turn.role, self._turn.post.id, text, type))

    def _publish(self, event: Event) -> None:
        events = self._router.events
        if events.wanted:
            events.publish(event)

    def _live(self) -> Turn:
        turn = self._turn
        if turn.attempts != self.attempt or turn.state != "running":
            raise AttemptEnded(turn.role, self.attempt)
        return turn

    def __repr__(self) -> str:
        return f"<TurnContext {self.role} attempt {self.attempt}>"
