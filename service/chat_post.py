"""Chat post: a recorded post as lines of a chat: who speaks to whom, the words, and what it carries."""

from __future__ import annotations

from collections.abc import Iterator

from callboard.actors.given import Given, is_note
from callboard.runtime import Attachment, AttachmentType, Post
from callboard.runtime.post import USER

from .chat_screen import Line, Style
from .post_tree import said_in

MOST_ROWS = 12
"""How many lines of code, output or a plan are shown; the transcript has all."""

_SHOWN = ("plan_reasoning", "plan", "thought", "reply_content", "code_error", "execution_result", "artifact_paths")
_SHOWN_AS = {"plan_reasoning": "thought", "reply_content": "code", "execution_result": "output"}
_BAR = "  │ "


def lines_of(post: Post) -> Iterator[Line]:
    """What a post says; nothing for the user's own words, which were shown when they were said."""
    match post.marks.kind, post.marks.state:
        case "intervention" | "nudge", _:
            return
        case _, _ if post.send_from == USER:
            return
        case _, "partial" if not said_in(post):
            yield Line(f"{post.send_from} was cut with nothing written", "dim")
        case _, "partial":
            yield Line(f"{post.send_from} was cut; this is kept", "dim")
            yield from _body(post, "dim")
        case _, "not_started":
            yield Line(f"{post.send_from} had not started", "dim")
        case "error", _:
            yield Line(f"{post.send_from} failed", "bad")
            yield Line(post.message, "bad", "  ")
        case "note", _ if is_note(post):
            yield from _given(Given.from_note(post), post.send_from)
        case "note", _:
            yield Line(post.send_from, "dim")
            yield from _body(post, "dim")
        case "reply", _ if post.send_to == USER:
            yield Line(post.send_from, "bold")
            yield Line(post.message, margin="  ")
        case _:
            yield Line(f"{post.send_from} → {post.send_to}", "bold")
            yield from _body(post, "plain", again=post.marks.kind == "reply")


def _given(given: Given, role: str) -> Iterator[Line]:
    """The lessons that a role is given, with how alike they are, so that a person can see why."""
    if given.lessons:
        found = ", ".join(f"{id} {score:.2f}" for id, score in given.lessons)
        yield Line(f"{role} is given lessons: {found}", "dim")


def _body(post: Post, style: Style, *, again: bool = False) -> Iterator[Line]:
    """The attachments, unless they were shown as notes before, and the message."""
    for attachment in () if again else post.attachment_list:
        if attachment.type in _SHOWN and _text(attachment):
            yield Line(_SHOWN_AS.get(attachment.type, attachment.type.replace("_", " ")), "dim", "  ")
            last = attachment.type is AttachmentType.execution_result
            yield Line(shortened(_text(attachment), last=last), "dim", _BAR)
    if post.message:
        yield Line(shortened(post.message), style, "  ")


def _text(attachment: Attachment) -> str:
    content = attachment.content
    return "\n".join(map(str, content)) if isinstance(content, tuple) else str(content).strip("\n")


def shortened(text: str, *, last: bool = False) -> str:
    """The first lines of it, or the last, and how many more there are."""
    rows = text.split("\n")
    more = len(rows) - MOST_ROWS
    told = [f"(+{more} lines; the transcript has them)"]
    if more <= 1:
        return text
    return "\n".join([*told, *rows[more:]] if last else [*rows[:MOST_ROWS], *told])
