"""Role view: each post as the role that sent or got it is shown it.

The rule to know: posts are read once each, in their order, and what is shown of one depends on those before it alone.
The role's own words are assistant messages in the reply format, all else are user messages; what the runtime has to
say stands in square brackets on a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal, TypeAlias

from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.chat_model import Message
from callboard.runtime.json_value import JsonValue
from callboard.runtime.post import USER, Post

from .account_text import tell_done, tell_failure, tell_heard, tell_state
from .called_tool import tell_call
from .library import Library
from .parts import names_of, parts_of
from .reply_format import MESSAGE, attachment_texts, post_to_text, response_text
from .standing_plan import StandingPlan

Line: TypeAlias = tuple[Literal["user", "assistant"], str]

_WRITTEN = frozenset(
    {
        AttachmentType.init_plan,
        AttachmentType.plan,
        AttachmentType.current_plan_step,
        AttachmentType.plan_reasoning,
        AttachmentType.stop,
        AttachmentType.thought,
        AttachmentType.reply_type,
        AttachmentType.reply_content,
        AttachmentType.web_exploring_plan,
    }
)
"""What a role itself thought or wrote; the other types tell what came of it."""
_APART = frozenset({AttachmentType.invalid_response, AttachmentType.shared_memory_entry})
"""Shown as it was written, and not at all."""
_HANDED_OVER = frozenset({AttachmentType.artifact_paths, AttachmentType.image_url})
"""What another role's post shows beside its message."""


class RoleView:
    """One reading of one role's posts."""

    def __init__(self, role: str, templates: Library) -> None:
        self._role = role
        self._templates = templates
        self._noted: set[tuple[str | None, AttachmentType, str | tuple[str, ...]]] = set()
        self._plan = StandingPlan(role)

    def messages(self, post: Post) -> tuple[Message, ...]:
        """What the role is shown of this post; nothing, if it is not the role's or has nothing to say."""
        if self._role not in (post.send_from, post.send_to):
            return ()
        cancels = self._plan.read(post)
        if post.marks.kind == "error":
            return (Message("user", tell_failure(post, self._templates)),)
        if post.send_from == self._role:
            return self._own(self._without_repeats(post))
        text, parts = self._told(post, cancels), parts_of(post.attachment_list)
        return (Message("user", text, parts),) if text or parts else ()

    def skip(self, post: Post) -> None:
        """Reads a post of which nothing is shown; what is shown of those after it stays as it would be."""
        if self._role in (post.send_from, post.send_to):
            self._plan.read(post)
            if post.send_from == self._role == post.send_to:
                self._without_repeats(post)

    def _without_repeats(self, post: Post) -> Post:
        """The post; a reply without the attachments that the role's notes on the same request have shown."""
        request = post.marks.in_reply_to
        if request is None:
            return post
        keys = [(request, one.type, one.content) for one in post.attachment_list]
        if post.send_to == self._role:
            self._noted.update(keys)
        elif not self._noted.isdisjoint(keys):
            return _with(
                post, [one for one, key in zip(post.attachment_list, keys, strict=True) if key not in self._noted]
            )
        return post

    def _own(self, post: Post) -> tuple[Message, ...]:
        """What the role said or noted, and what came of it."""
        written = _with(post, [one for one in post.attachment_list if one.type in _WRITTEN])
        is_whole = post.marks.state in ("whole", "late")
        says = [post_to_text(written) if is_whole and post.send_to != post.send_from else _noted(written)]
        says += [_content(one) for one in post.attachment_list if one.type is AttachmentType.invalid_response]
        outcomes = [one for one in post.attachment_list if one.type not in _WRITTEN | _APART]
        comes = [self._outcomes(outcomes, post.send_from)]
        if written.message or written.attachment_list or post.send_to != post.send_from or post.marks.state == "late":
            comes.append(tell_state(post))
        said, came, parts = _joined(says), _joined(comes), parts_of(outcomes)
        own = (Message("assistant", said),) if said else ()
        return (*own, Message("user", came, parts)) if came or parts else own

    def _told(self, post: Post, cancels_plan: bool) -> str:
        cancelled = self._templates.render("fw.plan_cancelled") if cancels_plan else ""
        match post.marks.kind:
            case "intervention" if post.send_from != USER:
                called_off = f"[{cancelled}]" if cancelled else ""
                return _from(post.send_from, ["[says this in the middle of your work]", post.message, called_off])
            case "intervention":
                return self._words("fw.intervention", post, cancelled)
            case "question":
                return _from(post.send_from, ["[asks you, and waits for your answer]", *self._said(post)])
            case "nudge":
                return self._templates.render("fw.msg_nudge")
            case "reply" if post.send_from != USER:
                message = "\n".join(filter(None, self._said(post)))
                return self._templates.render("fw.msg_from_subordinate", name=post.send_from, message=message)
        if post.marks.words is not None or post.send_from == USER:
            return self._words("fw.user_message", post, "")
        return _from(post.send_from, self._said(post))

    def _words(self, name: str, post: Post, cancelled: str) -> str:
        shown = (one for one in post.attachment_list if one.type is not AttachmentType.shared_memory_entry)
        values: dict[str, JsonValue] = {
            "message": post.message,
            "system_message": post.marks.system_message,
            "standing_plan": cancelled,
            "attachments": tuple(text for one in shown for text in names_of(one)),
            "extra": post.marks.extra,
        }
        return self._templates.render(name, **values)

    def _said(self, post: Post) -> Iterator[str]:
        """What another role said; of work that was cut off, all that it had."""
        is_partial = post.marks.state == "partial"
        shown = [one for one in post.attachment_list if one.type in _HANDED_OVER or is_partial]
        yield from tell_done(post)
        yield post.message
        told = (one for one in shown if one.type is not AttachmentType.shared_memory_entry)
        yield self._outcomes(told, post.send_from)
        yield from tell_heard(post)
        yield tell_state(post)

    def _outcomes(self, attachments: Iterable[Attachment], author: str) -> str:
        return "\n".join(self._outcome(one, author) for one in attachments)

    def _outcome(self, attachment: Attachment, author: str) -> str:
        if attachment.type is AttachmentType.revise_message:
            return _content(attachment)
        if attachment.type is AttachmentType.function:
            told = tell_call(attachment, author, self._templates)
            if told is not None:
                return told
        content = "\n".join(names_of(attachment))
        return f"{attachment.type.value}:{chr(10) if chr(10) in content else ' '}{content}"


def _with(post: Post, attachments: list[Attachment]) -> Post:
    """The post with these of its attachments, and no others."""
    return post if len(attachments) == len(post.attachment_list) else replace(post, attachment_list=tuple(attachments))


def _noted(written: Post) -> str:
    """As a reply without a recipient; words alone as they are, since they may be any part of a reply."""
    if not written.attachment_list:
        return written.message
    said = {MESSAGE: written.message} if written.message else {}
    return response_text({**attachment_texts(written.attachment_list), **said})


def _content(attachment: Attachment) -> str:
    return attachment.content if isinstance(attachment.content, str) else "\n".join(attachment.content)


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, texts))


def _from(sender: str, parts: Iterable[str]) -> str:
    return "\n".join([f"From: {sender}", *filter(None, parts)])
