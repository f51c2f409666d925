"""What a post carries beside its message: typed pieces that roles write and read.

The rule to know: the content is a plain string, save for ``artifact_paths``, where it is a tuple of paths; which parts
of it are temporal stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from .ids import create_id
from .json_value import JsonValue, check_text, freeze, thaw
from .markers import KEY, marked, unmarked
from .shared_memory import SharedMemoryEntry
from .text import Spans, Text, check_spans, cut


class AttachmentType(StrEnum):
    """The types an attachment may have; each name is the value that files hold."""

    init_plan = "init_plan"
    plan = "plan"
    current_plan_step = "current_plan_step"
    plan_reasoning = "plan_reasoning"
    stop = "stop"

    thought = "thought"
    reply_type = "reply_type"
    reply_content = "reply_content"
    verification = "verification"
    code_error = "code_error"
    execution_status = "execution_status"
    execution_result = "execution_result"
    artifact_paths = "artifact_paths"
    revise_message = "revise_message"
    function = "function"

    web_exploring_plan = "web_exploring_plan"
    web_exploring_screenshot = "web_exploring_screenshot"
    web_exploring_link = "web_exploring_link"

    invalid_response = "invalid_response"
    text = "text"
    shared_memory_entry = "shared_memory_entry"
    image_url = "image_url"


_MIGRATION = "write two attachments in its place: {} and {}"
_RETIRED = {
    "python": _MIGRATION.format("reply_type with the content python", "reply_content with the code"),
    "sample": _MIGRATION.format("reply_type with the content text", "reply_content with the text"),
    "text": _MIGRATION.format("reply_type with the content text", "reply_content with the text"),
}


def attachment_type(name: str) -> AttachmentType:
    """The type of that name; raises ValueError if there is none, or if it is retired, with what to write."""
    if name in _RETIRED:
        retired = str.__str__(name)
        raise ValueError(f"attachments of type {retired!r} are not taken any more; {_RETIRED[retired]}")
    try:
        return AttachmentType(name)
    except ValueError:
        known = ", ".join(type for type in AttachmentType if type not in _RETIRED)
        raise ValueError(f"{name!r} is no attachment type; there are {known}") from None


@dataclass(frozen=True, slots=True)
class Attachment:
    """One piece; raises ValueError and TypeError for a type, content or extra that cannot be."""

    id: str
    type: AttachmentType
    content: str | tuple[str, ...]
    extra: SharedMemoryEntry | JsonValue = None
    """The entry, for a ``shared_memory_entry``; for others any JSON value, frozen."""
    temporal: Spans = ()
    """The parts of the content that later rounds do not show; paths have none."""

    def __post_init__(self) -> None:
        attachment_type(self.type)
        if self.type is AttachmentType.artifact_paths:
            object.__setattr__(self, "content", _paths(self.content))
            if self.temporal:
                raise ValueError("artifact_paths have no temporal parts")
        else:
            check_text(self.content, "content")
        if self.temporal != ():
            check_spans(self.temporal, str(self.content), f"temporal parts of {self.type}")
        if self.type is AttachmentType.shared_memory_entry:
            if not isinstance(self.extra, SharedMemoryEntry):
                raise ValueError("the extra of a shared_memory_entry must be a SharedMemoryEntry")
        elif self.extra is not None:
            object.__setattr__(self, "extra", freeze(self.extra, "extra"))

    @classmethod
    def create(
        cls,
        type: AttachmentType | str,
        content: str | Text | Sequence[str],
        id: str | None = None,
        extra: SharedMemoryEntry | JsonValue = None,
    ) -> Attachment:
        """A new attachment, with a new id if none is given; raises ValueError for an unknown type."""
        if isinstance(content, Text):
            return cls(id or create_id("atta"), attachment_type(type), content.string, extra, content.spans)
        text = content if isinstance(content, str) else tuple(content)
        return cls(id or create_id("atta"), attachment_type(type), text, extra)

    def without_temporal(self) -> Attachment:
        """This attachment, its id kept, as later rounds show it; itself if that is all of it."""
        if not self.temporal:
            return self
        return replace(self, content=cut(str(self.content), self.temporal), temporal=())

    def to_dict(self) -> dict[str, Any]:
        """The attachment as a file holds it, of plain dicts and lists."""
        extra = self.extra.to_dict() if isinstance(self.extra, SharedMemoryEntry) else thaw(self.extra)
        content, beside = marked(self.content, self.temporal) if isinstance(self.content, str) else (self.content, {})
        return {"id": self.id, "type": self.type.value, "content": thaw(content), "extra": extra, **beside}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Attachment:
        """The attachment that `to_dict` wrote, with a new id if it has none.

        Raises KeyError for another missing key, ValueError and TypeError for what cannot be.
        """
        type_, extra = attachment_type(entry["type"]), entry.get("extra")
        if type_ is AttachmentType.shared_memory_entry and isinstance(extra, Mapping):
            extra = SharedMemoryEntry.from_dict(extra)
        content = entry["content"]
        if type_ is not AttachmentType.artifact_paths or entry.get(KEY):
            content = unmarked(content, entry)
        return cls.create(type_, content, entry.get("id"), extra)

    def __str__(self) -> str:
        content = self.content if isinstance(self.content, str) else ", ".join(self.content)
        return f"{self.type.value.upper()}: {content}"


def _paths(content: str | Sequence[str]) -> tuple[str, ...]:
    paths = (content,) if isinstance(content, str) else tuple(content)
    for number, path in enumerate(paths):
        check_text(path, f"content[{number}]")
    return paths
