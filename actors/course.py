"""Course: what a role has said and learnt in one turn, as its posts tell it.

The rule to know: it is read from memory and kept nowhere else. So what was put back to the model counts for the whole
turn, whatever the number of its attempts, and for no other turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from callboard.prompts.reply_format import Reply
from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.post import Post
from callboard.runtime.round import Round

_Said: TypeAlias = tuple[str, frozenset[tuple[AttachmentType, str | tuple[str, ...]]]]

_ALWAYS_NEW = ("intervention", "nudge")
"""Kinds of posts that say something new though they say it twice."""


class Course:
    """The posts of one role from the request on."""

    def __init__(self, rounds: Sequence[Round], request: Post, role: str) -> None:
        posts = [post for one in rounds for post in one.post_list]
        began = next((number for number, post in enumerate(posts) if post.id == request.id), 0)
        self._posts = posts[began:]
        self._request = request.id
        self._role = role

    @property
    def corrections(self) -> int:
        """How many replies of this turn were put back to the model."""
        own = (post for post in self._posts if post.marks.in_reply_to == self._request)
        return sum(_is_correction(post) for post in own if post.send_from == post.send_to == self._role)

    def repeats(self, said: str, reply: Reply | None) -> bool:
        """Whether this reply was given before, and nothing has come since that had not been there before it."""
        for number in reversed(range(len(self._posts))):
            if self._says(self._posts[number], said, reply):
                before = {_key(post) for post in self._posts[: number + 1]}
                return all(_key(post) in before for post in self._posts[number + 1 :])
        return False

    def _says(self, post: Post, said: str, reply: Reply | None) -> bool:
        if post.send_from != self._role or post.marks.state == "partial":
            return False
        if any(one.content == said for one in post.get_attachment(AttachmentType.invalid_response)):
            return True
        if reply is None or post.send_to not in (self._role, reply.send_to):
            return False
        return _said(post.message, post.attachment_list) == _said(reply.message, reply.attachments)


def correction(said: str, told: str) -> tuple[Attachment, Attachment]:
    """What a note holds with which a reply is put back to the model: what it said, and what it is told of that."""
    return (
        Attachment.create(AttachmentType.invalid_response, said),
        Attachment.create(AttachmentType.revise_message, told),
    )


def _is_correction(post: Post) -> bool:
    types = [one.type for one in post.attachment_list]
    return AttachmentType.invalid_response in types and AttachmentType.revise_message in types


def _said(message: str, attachments: Iterable[Attachment]) -> _Said:
    said = ((one.type, one.content) for one in attachments if one.type is not AttachmentType.revise_message)
    return message, frozenset(said)


def _key(post: Post) -> object:
    """Equal for posts that say the same; two calls of a tool do, if they were given and have brought the same."""
    if post.marks.kind in _ALWAYS_NEW:
        return post.id
    calls = tuple(_without_id(one) for one in post.get_attachment(AttachmentType.function))
    rest = [one for one in post.attachment_list if one.type is not AttachmentType.function]
    return post.send_from, post.send_to, post.marks.kind, calls, _said(post.message, rest)


def _without_id(call: Attachment) -> str:
    """What a note about a call says, but for which call it was."""
    try:
        note = json.loads(str(call.content))
    except (ValueError, RecursionError):
        return str(call.content)
    if isinstance(note, dict):
        note.pop("call", None)
    return json.dumps(note, sort_keys=True)
