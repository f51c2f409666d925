"""A transcript for people: its rounds as Markdown, each post under who said it to whom.

The rule to know: all that somebody wrote stands in a quote or in a fence that it cannot end, so no text can pass for
another post or another round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .attachment import Attachment, AttachmentType
from .post import Post
from .round import Round
from .text import Spans

_MOST_OF_A_LINK = 200
"""Characters of an image's address that are shown: many hold the whole image."""


def markdown_of(rounds: Iterable[Round]) -> str:
    """The rounds, numbered from 1, with all their posts."""
    return "\n".join(line for number, round_ in enumerate(rounds, 1) for line in _round(number, round_))


def one_line(text: str) -> str:
    """The text on one line, as a name in a heading or a list."""
    return re.sub(r"([\\`*_<\[\]])", r"\\\1", " ".join(text.split()))


def _round(number: int, round_: Round) -> Iterator[str]:
    yield f"## Round {number}: {round_.state}\n"
    if round_.user_query and (not round_.post_list or round_.post_list[0].message != round_.user_query):
        yield _quoted(round_.user_query)
    for post in round_.post_list:
        yield from _post(post)


def _post(post: Post) -> Iterator[str]:
    marks = post.marks
    notes = [note for note in (marks.kind, marks.state.replace("_", " ")) if note not in ("message", "whole")]
    to = "to itself" if post.send_to == post.send_from else f"to **{one_line(post.send_to)}**"
    said = _remarks([*notes, *_temporal(post.temporal)])
    yield f"**{one_line(post.send_from)}** {to}{said}\n"
    if post.message:
        yield _quoted(post.message)
    for attachment in post.attachment_list:
        yield from _attachment(attachment)


def _attachment(attachment: Attachment) -> Iterator[str]:
    yield f"{attachment.type.value.replace('_', ' ')}{_remarks(_temporal(attachment.temporal))}:\n"
    content = attachment.content if isinstance(attachment.content, str) else "\n".join(attachment.content)
    if attachment.type is AttachmentType.image_url and len(content) > _MOST_OF_A_LINK:
        content = f"{content[:_MOST_OF_A_LINK]}…"
    yield _fenced(content)


def _temporal(spans: Spans) -> list[str]:
    count = sum(span.end - span.start for span in spans)
    return [f"{count:,} characters for this round alone"] if count else []


def _remarks(notes: list[str]) -> str:
    return f" ({', '.join(notes)})" if notes else ""


def _quoted(text: str) -> str:
    return "".join(f"> {line}\n" for line in text.splitlines())


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}\n"
