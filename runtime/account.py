"""Account: what a recalled turn tells its asker beside the text it had: what it was asked, had done, and was cut in.

It is made at the cut, from what memory holds; a turn that nobody interrupts pays nothing but the ids of what it asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from .attachment import AttachmentType
from .json_value import JsonValue
from .post import Post
from .turn import Turn

STEPS = 20
"""So many of the last steps stand in an account."""
TEXT = 120
"""So many characters of a text."""
_ANSWERS = {"reply": "answered", "error": "failed"}
_CUT_OFF = {"partial": "interrupted", "not_started": "not_started"}


def account_of(turn: Turn, user_words: tuple[JsonValue, ...], posts: Iterable[Post]) -> Mapping[str, JsonValue]:
    """What stands in `extra` of the account, from the role's posts since the request.

    `asked`, `steps` (notes, calls of tools, and what other roles were asked, each with its outcome), `left_out` (how
    many steps before these), `cut` (what the interruption ended) and `user_words`; only those that say something.
    """
    asked = frozenset(turn.asked_ids)
    steps: list[dict[str, JsonValue]] = []
    before = 0
    for post in posts:
        if post.marks.kind in ("intervention", "nudge"):
            before = len(steps)
        elif step := _step(post, turn.post.id, asked):
            steps.append(step)
    cut = [_name(step) for step in steps[before:] if step.get("outcome") in _CUT_OFF.values()]
    content: dict[str, JsonValue] = {
        "asked": _shortened(turn.post.without_temporal().message),
        "steps": tuple(steps[-STEPS:]),
        "left_out": len(steps[:-STEPS]),
        "cut": tuple(dict.fromkeys(filter(None, cut))),
        "user_words": user_words,
    }
    return {key: value for key, value in content.items() if value}


def _step(post: Post, request: str, asked: frozenset[str]) -> dict[str, JsonValue] | None:
    """What a post says was done for the request; None for what is no end of a step of it."""
    marks = post.marks
    if marks.in_reply_to in asked and post.send_from != post.send_to:
        outcome = _CUT_OFF.get(marks.state) or _ANSWERS.get(marks.kind, marks.kind)
        return {"role": post.send_from, "outcome": outcome}
    if marks.in_reply_to != request or marks.kind != "note" or marks.state == "late":
        return None
    for call in post.get_attachment(AttachmentType.function):
        return _call(call.content)
    # An account stays in the rounds of who asked, and temporal text does not.
    post = post.without_temporal()
    said = post.message or next((f"{one.type.value}: {one.content}" for one in post.attachment_list), "")
    if not said:
        return None
    return {"note": _shortened(said), **({"outcome": "interrupted"} if marks.state == "partial" else {})}


def _call(content: Any) -> dict[str, JsonValue] | None:
    try:
        note = json.loads(content)
        return {"tool": str(note["tool"]), "outcome": str(note["outcome"])}
    except (KeyError, TypeError, ValueError):  # its beginning, or a note of the role's own
        return None


def _name(step: Mapping[str, JsonValue]) -> JsonValue:
    return step.get("tool") or step.get("role")


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TEXT else f"{line[: TEXT - 1]}…"
