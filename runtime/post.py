"""A message from one role to another: the values that mailboxes, memory and files hold.

The rule to know: a post never changes. What the original's file format does not know stands in `marks`,
which a file holds as further keys, and only those that say something.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from operator import is_
from typing import Any, Literal, TypeAlias, cast, get_args

from .attachment import Attachment, AttachmentType
from .ids import create_id, create_id_at
from .json_value import EMPTY, FrozenMapping, JsonValue, check_text, thaw
from .markers import marked, unmarked
from .text import Spans, Text, check_spans, cut, parted
from .value import value

Kind: TypeAlias = Literal["message", "question", "reply", "error", "note", "intervention", "nudge"]
State: TypeAlias = Literal["whole", "partial", "not_started", "late"]

USER = "User"
"""The name under which a host's words travel."""
UNDECIDED = "Unknown"
"""The recipient of a post for which nobody has decided one."""


@value
class Marks:
    """What the runtime notes about a post."""

    in_reply_to: str | None = None
    """The id of the post that this one answers or hands on."""
    kind: Kind = "message"
    state: State = "whole"
    """How much of what its author meant to say it holds."""
    at: str = ""
    """When it was made, ISO 8601 in UTC."""
    words: str | None = None
    """The id of the UserMessage whose words it holds."""
    system_message: tuple[str, ...] = ()
    extra: FrozenMapping = EMPTY

    def made_at(self, at: str) -> Marks:
        """The same with a time; `dataclasses.replace` would cost five times as much on every note."""
        return Marks(self.in_reply_to, self.kind, self.state, at, self.words, self.system_message, self.extra)

    def to_dict(self) -> dict[str, Any]:
        """The marks that differ from the defaults, of plain dicts and lists."""
        values = ((name, getattr(self, name), default) for name, default in _DEFAULTS)
        return {name: thaw(value) for name, value, default in values if value != default}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Marks:
        """The marks among the keys of a post; raises ValueError for what cannot be."""
        return cls(
            entry.get("in_reply_to"),
            cast(Kind, _one_of(get_args(Kind), entry.get("kind", "message"), "kind")),
            cast(State, _one_of(get_args(State), entry.get("state", "whole"), "state")),
            entry.get("at") or "",
            entry.get("words"),
            tuple(entry.get("system_message") or ()),
            FrozenMapping(entry.get("extra")),
        )


_DEFAULTS = tuple((field.name, field.default) for field in fields(Marks))


def _one_of(allowed: tuple[str, ...], value: str, where: str) -> str:
    if value not in allowed:
        raise ValueError(f"{value!r} is no {where} of a post; there are {', '.join(allowed)}")
    return value


@value
class Post:
    """One message; raises ValueError for text that UTF-8 cannot hold, TypeError for what is no text."""

    id: str
    send_from: str
    send_to: str
    message: str
    attachment_list: tuple[Attachment, ...] = ()
    marks: Marks = Marks()
    temporal: Spans = ()
    """The parts of the message that rounds after this one do not show."""

    def __post_init__(self) -> None:
        check_text(self.message, "message")
        if self.temporal != ():
            check_spans(self.temporal, self.message, "temporal parts of a message")

    @classmethod
    def create(
        cls,
        message: str | Text | None,
        send_from: str,
        send_to: str = UNDECIDED,
        attachment_list: Iterable[Attachment] = (),
        *,
        marks: Marks | None = None,
    ) -> Post:
        """A new post with a new id, and the time in its marks unless they have one."""
        id, at = create_id_at("post")
        if marks is None:
            marks = Marks(at=at)
        elif not marks.at:
            marks = marks.made_at(at)
        string, spans = parted(message)
        return cls(id, send_from, send_to, string, tuple(attachment_list), marks, spans)

    def reply(
        self,
        message: str | Text | None = "",
        attachment_list: Iterable[Attachment] = (),
        *,
        kind: Kind = "reply",
        state: State = "whole",
        extra: Mapping[str, JsonValue] | None = None,
    ) -> Post:
        """A new post back to the sender of this one; raises ValueError for an extra that is no JSON."""
        id, at = create_id_at("post")
        marks = Marks(self.id, kind, state, at, extra=EMPTY if extra is None else FrozenMapping(extra))
        string, spans = parted(message)
        return Post(id, self.send_to, self.send_from, string, tuple(attachment_list), marks, spans)

    def forward(
        self, to: str, message: str | Text | None = None, attachment_list: Iterable[Attachment] | None = None
    ) -> Post:
        """A new post from the recipient of this one to a third role, with the same content unless given."""
        message = self.text if message is None else message
        attachments = self.attachment_list if attachment_list is None else attachment_list
        return Post.create(message, self.send_to, to, attachments, marks=Marks(self.id))

    @property
    def text(self) -> Text:
        """The message with its temporal parts, to be said again."""
        return Text(self.message, self.temporal)

    def with_text(self, message: str | Text) -> Post:
        """This post, its id kept, with another message."""
        string, spans = parted(message)
        return replace(self, message=string, temporal=spans)

    def without_temporal(self) -> Post:
        """This post, its id kept, as later rounds show it; itself if that is all of it."""
        attachments = tuple(attachment.without_temporal() for attachment in self.attachment_list)
        if not self.temporal and all(map(is_, attachments, self.attachment_list)):
            return self
        return replace(self, message=cut(self.message, self.temporal), attachment_list=attachments, temporal=())

    def get_attachment(self, type: AttachmentType | str) -> tuple[Attachment, ...]:
        """The attachments of that type, in order; raises ValueError if there is no such type."""
        wanted = AttachmentType(type)
        return tuple(attachment for attachment in self.attachment_list if attachment.type is wanted)

    def with_attachment(self, attachment: Attachment) -> Post:
        """This post, its id kept, with one attachment more."""
        return replace(self, attachment_list=(*self.attachment_list, attachment))

    def without_attachments(self, *types: AttachmentType | str) -> Post:
        """This post, its id kept, without the attachments of these types."""
        unwanted = {AttachmentType(type) for type in types}
        kept = tuple(attachment for attachment in self.attachment_list if attachment.type not in unwanted)
        return replace(self, attachment_list=kept)

    def to_dict(self) -> dict[str, Any]:
        """The post as a file holds it, of plain dicts and lists."""
        message, beside = marked(self.message, self.temporal)
        return {
            "id": self.id,
            "message": message,
            "send_from": self.send_from,
            "send_to": self.send_to,
            "attachment_list": [attachment.to_dict() for attachment in self.attachment_list],
            **beside,
            **self.marks.to_dict(),
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Post:
        """The post that `to_dict` wrote, with a new id; its attachments keep theirs.

        Raises KeyError for a missing key, ValueError and TypeError for what cannot be.
        """
        return cls.restore({**entry, "id": create_id("post")})

    @classmethod
    def restore(cls, entry: Mapping[str, Any]) -> Post:
        """The post that `to_dict` wrote, with the id it had; raises what `from_dict` raises."""
        message, spans = parted(unmarked(entry["message"], entry))
        attachments = tuple(Attachment.from_dict(attachment) for attachment in entry["attachment_list"] or ())
        marks = Marks.from_dict(entry)
        return cls(entry["id"], entry["send_from"], entry["send_to"], message, attachments, marks, spans)
