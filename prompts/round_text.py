"""Round text: rounds as a model reads them that is no role of theirs, such as one that summarises.

The rule to know: they are JSON, so that nothing which anybody said can look like another post.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.post import Post
from callboard.runtime.round import Round


def written(rounds: Iterable[Round]) -> str:
    """One line for each round, and none for a round without posts."""
    return "\n".join(
        json.dumps({"user_query": one.user_query, "posts": [_told(post) for post in one.post_list]}, ensure_ascii=False)
        for one in rounds
        if one.post_list
    )


def _told(post: Post) -> Mapping[str, Any]:
    marks = post.marks
    said = {
        "state": "" if marks.state == "whole" else marks.state,
        "system_message": list(marks.system_message),
        "message": post.message,
        **_attached(post),
    }
    return {"from": post.send_from, "to": post.send_to, **{key: value for key, value in said.items() if value}}


def _attached(post: Post) -> Mapping[str, str]:
    """By type; what roles share has its own way to them."""
    attached: dict[str, str] = {}
    for one in post.attachment_list:
        if one.type is not AttachmentType.shared_memory_entry:
            attached[one.type.value] = "\n".join(filter(None, (attached.get(one.type.value), _content(one))))
    return attached


def _content(attachment: Attachment) -> str:
    """An image is named and not shown."""
    content = attachment.content if isinstance(attachment.content, str) else "\n".join(attachment.content)
    is_data = attachment.type is AttachmentType.image_url and content[:5].lower() == "data:"
    return "an image" if is_data else content
