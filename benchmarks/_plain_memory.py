"""A memory as one would write it first: everything is read from the beginning, and copied, on every call."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from callboard.runtime.post import Post
from callboard.runtime.shared_memory import SharedMemoryEntry


@dataclass
class PlainAttachment:
    """As an attachment, but it can be changed, and so must be copied."""

    id: str
    type: str
    content: object
    extra: object


@dataclass
class PlainPost:
    """As a post."""

    id: str
    send_from: str
    send_to: str
    message: str
    attachment_list: list[PlainAttachment]

    @classmethod
    def of(cls, post: Post) -> PlainPost:
        """What stands in one of ours."""
        attachments = [PlainAttachment(one.id, one.type, one.content, one.extra) for one in post.attachment_list]
        return cls(post.id, post.send_from, post.send_to, post.message, attachments)


@dataclass
class PlainRound:
    """As a round."""

    id: str
    user_query: str
    state: str = "created"
    post_list: list[PlainPost] = field(default_factory=list)


class PlainMemory:
    """Gives away copies, so that nobody can change what it holds."""

    def __init__(self) -> None:
        self.rounds: list[PlainRound] = []

    def role_rounds(self, role: str) -> list[PlainRound]:
        """Every round but failed ones, with copies of the posts from and to the role."""
        return [
            PlainRound(
                one.id,
                one.user_query,
                one.state,
                [copy.deepcopy(post) for post in one.post_list if role in (post.send_from, post.send_to)],
            )
            for one in self.rounds
            if one.state != "failed"
        ]

    def shared_entries(self, type: str) -> list[SharedMemoryEntry]:
        """Of each role its last entry that holds."""
        latest: dict[str, SharedMemoryEntry] = {}
        for one in self.rounds:
            for post in one.post_list if one.state not in ("failed", "stopped") else ():
                for attachment in post.attachment_list:
                    entry = attachment.extra
                    if not isinstance(entry, SharedMemoryEntry) or entry.type != type:
                        continue
                    if entry.scope == "conversation" or one is self.rounds[-1]:
                        latest.pop(post.send_from, None)
                        latest[post.send_from] = entry
        return list(latest.values())
