"""Account text: what became of somebody's work: how far it came, where it was cut, why it failed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from callboard.runtime.json_value import JsonValue
from callboard.runtime.post import Post

from .library import Library


def tell_done(post: Post) -> Iterator[str]:
    """What an interrupted role had been asked, and had done, as its account tells it."""
    extra = post.marks.extra
    if asked := extra.get("asked"):
        yield f"[{post.send_from} had been asked: {asked}]"
    if steps := [_step(one) for one in _listed(post, "steps")]:
        left_out = extra.get("left_out")
        more = [f"{left_out} steps"] if left_out else []
        yield f"[{post.send_from} had done: {'; '.join([*more, *steps])}]"


def tell_heard(post: Post) -> Iterator[str]:
    """The user's words that an interrupted role had received, as its account tells them."""
    for one in _listed(post, "user_words"):
        yield f"[the user had told {post.send_from}: {one.get('message')}]"


def tell_state(post: Post) -> str:
    """How much of what its author meant to say a post holds; empty if it is all."""
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


def tell_failure(post: Post, templates: Library) -> str:
    """Who failed, and why; of a limit, what it allowed."""
    sender, extra = post.send_from, post.marks.extra
    match extra.get("limit"), extra.get("size"):
        case "seconds", int() | float() as seconds:
            return templates.render("fw.msg_timeout", name=sender, message=f"it had {seconds:g} seconds")
        case str() as limit, int() | float() as size:
            reached = templates.render("fw.msg_limit", limit=f"{size:g} {limit.replace('_', ' ')}")
            return f"{templates.render('fw.error', name=sender, message='')}\n{reached}"
    why = post.message.removeprefix(f"{sender} failed").removeprefix(": ")
    return templates.render("fw.error", name=sender, message=why)


def _step(step: Mapping[str, JsonValue]) -> str:
    """A note, a tool or a role that was asked, and what came of it."""
    how = str(step.get("outcome", "")).replace("_", " ")
    if "note" in step:
        return f"noted {json.dumps(step['note'], ensure_ascii=False)}{f' ({how})' if how else ''}"
    did = f"called {step['tool']}" if "tool" in step else f"asked {step.get('role')}"
    return f"{did} ({how})"


def _listed(post: Post, key: str) -> Iterator[Mapping[str, JsonValue]]:
    entries = post.marks.extra.get(key)
    yield from (one for one in (entries if isinstance(entries, tuple) else ()) if isinstance(one, Mapping))
