"""The composer: what a role has been through, as the messages that its model is sent.

The rule to know: the role's own words are assistant messages in the reply format, all else are user messages; what the
runtime has to say stands in square brackets on a line of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal, TypeAlias

from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.chat_model import Message
from callboard.runtime.json_value import JsonValue
from callboard.runtime.post import USER, Post
from callboard.runtime.round import Round

from .library import fill_json, template
from .reply_format import MESSAGE, attachment_texts, post_to_text, response_text

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
_NOT_WRITTEN = frozenset(AttachmentType) - _WRITTEN
_HANDED_OVER = frozenset({AttachmentType.artifact_paths, AttachmentType.image_url})
"""What another role's post shows beside its message."""


def compose(system: str, role: str, rounds: Sequence[Round]) -> tuple[Message, ...]:
    """The system message, then all that the role said and was told, in order; user and assistant alternate.

    The same rounds give the same messages. They end with a user message unless the role itself spoke last.
    """
    posts = _without_repeats(role, (post for one in rounds for post in one.post_list))
    lines = (line for post in posts for line in _lines(post, role) if line[1])
    merged = (
        Message(author, "\n\n".join(text for _, text in group))
        for author, group in groupby(lines, key=lambda line: line[0])
    )
    return (Message("system", system), *merged)


def _without_repeats(role: str, posts: Iterable[Post]) -> Iterator[Post]:
    """The posts; the role's replies without the attachments that its notes on the same request have shown."""
    noted: set[tuple[str | None, AttachmentType, str | tuple[str, ...]]] = set()
    for post in posts:
        request = post.marks.in_reply_to
        keys = [(request, one.type, one.content) for one in post.attachment_list]
        if post.send_from == role and request is not None:
            if post.send_to == role:
                noted.update(keys)
            elif not noted.isdisjoint(keys):
                new = (one for one, key in zip(post.attachment_list, keys, strict=True) if key not in noted)
                post = replace(post, attachment_list=tuple(new))
        yield post


def _lines(post: Post, role: str) -> Iterator[Line]:
    if role not in (post.send_from, post.send_to):
        return
    if post.marks.kind == "error":
        yield "user", _failure(post)
    elif post.send_from == role:
        yield from _own(post)
    else:
        yield "user", _told(post)


def _own(post: Post) -> Iterator[Line]:
    """What the role said or noted, and what came of it."""
    written = post.without_attachments(*_NOT_WRITTEN)
    is_whole = post.marks.state in ("whole", "late")
    yield "assistant", post_to_text(written) if is_whole and post.send_to != post.send_from else _noted(written)
    for refused in post.get_attachment(AttachmentType.invalid_response):
        yield "assistant", _content(refused)
    yield "user", _outcomes(one for one in post.attachment_list if one.type not in _WRITTEN | _APART)
    if written.message or written.attachment_list or post.send_to != post.send_from:
        yield "user", _mark(post)


def _noted(written: Post) -> str:
    """As a reply without a recipient; words alone as they are, since they may be any part of a reply."""
    if not written.attachment_list:
        return written.message
    said = {MESSAGE: written.message} if written.message else {}
    return response_text({**attachment_texts(written.attachment_list), **said})


def _told(post: Post) -> str:
    match post.marks.kind:
        case "intervention" if post.send_from != USER:
            return _from(post.send_from, ["[says this in the middle of your work]", post.message])
        case "intervention":
            return _words("fw.intervention", post)
        case "question":
            return _from(post.send_from, ["[asks you, and waits for your answer]", *_said(post)])
        case "nudge":
            return fill_json("fw.msg_nudge")
    if post.marks.words is not None or post.send_from == USER:
        return _words("fw.user_message", post)
    return _from(post.send_from, _said(post))


def _words(name: str, post: Post) -> str:
    contents = [one.content for one in post.attachment_list if one.type is not AttachmentType.shared_memory_entry]
    listed = [text for content in contents for text in ([content] if isinstance(content, str) else content)]
    values: dict[str, JsonValue] = {
        **post.marks.extra,
        "message": post.message,
        "system_message": post.marks.system_message,
        "attachments": tuple(listed),
        "extra": post.marks.extra,
    }
    text = template(name)
    return fill_json(name, **{slot: value for slot, value in values.items() if f"{{{{{slot}}}}}" in text})


def _said(post: Post) -> Iterator[str]:
    """What another role said; of work that was cut off, all that it had."""
    is_partial = post.marks.state == "partial"
    shown = [one for one in post.attachment_list if one.type in _HANDED_OVER or is_partial]
    yield from _done(post)
    yield post.message
    yield _outcomes(one for one in shown if one.type is not AttachmentType.shared_memory_entry)
    yield from _heard(post)
    yield _mark(post)


def _done(post: Post) -> Iterator[str]:
    """What an interrupted role had been asked, and had done, as its account tells it."""
    extra = post.marks.extra
    if asked := extra.get("asked"):
        yield f"[{post.send_from} had been asked: {asked}]"
    if steps := [_step(one) for one in _listed(post, "steps")]:
        left_out = extra.get("left_out")
        more = [f"{left_out} steps"] if left_out else []
        yield f"[{post.send_from} had done: {'; '.join([*more, *steps])}]"


def _step(step: Mapping[str, JsonValue]) -> str:
    """A note, a tool or a role that was asked, and what came of it."""
    how = str(step.get("outcome", "")).replace("_", " ")
    if "note" in step:
        return f"noted {json.dumps(step['note'], ensure_ascii=False)}{f' ({how})' if how else ''}"
    did = f"called {step['tool']}" if "tool" in step else f"asked {step.get('role')}"
    return f"{did} ({how})"


def _heard(post: Post) -> Iterator[str]:
    """The user's words that an interrupted role had received, as its account tells them."""
    for one in _listed(post, "user_words"):
        yield f"[the user had told {post.send_from}: {one.get('message')}]"


def _listed(post: Post, key: str) -> Iterator[Mapping[str, JsonValue]]:
    entries = post.marks.extra.get(key)
    yield from (one for one in (entries if isinstance(entries, tuple) else ()) if isinstance(one, Mapping))


def _mark(post: Post) -> str:
    match post.marks.state:
        case "partial":
            cut = post.marks.extra.get("cut")
            where = f", in {', '.join(map(str, cut))}" if isinstance(cut, tuple) and cut else ""
            return f"[{post.send_from} was interrupted here{where}]"
        case "not_started":
            return f"[{post.send_from} was called off before it had begun]"
        case "late":
            return "[this came after the interruption]"
    return ""


def _failure(post: Post) -> str:
    says = f"{post.send_from} failed"
    why = post.message.removeprefix(says).removeprefix(": ")
    return f"[{says}: {why}]" if why else f"[{says}]"


def _outcomes(attachments: Iterable[Attachment]) -> str:
    return "\n".join(map(_outcome, attachments))


def _outcome(attachment: Attachment) -> str:
    content = _content(attachment)
    return f"{attachment.type.value}:{chr(10) if chr(10) in content else ' '}{content}"


def _content(attachment: Attachment) -> str:
    return attachment.content if isinstance(attachment.content, str) else "\n".join(attachment.content)


def _from(sender: str, parts: Iterable[str]) -> str:
    return "\n".join([f"From: {sender}", *filter(None, parts)])
