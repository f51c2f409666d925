"""Post tree: the posts of a round as lines, each below the request it belongs to."""

from __future__ import annotations

from collections.abc import Iterator

from callboard.runtime import Post, Round

from .plain_text import fit, lines_in


def tree_of(round_: Round, width: int) -> Iterator[str]:
    """The posts of a round; what was cut and what was kept is marked."""
    depths: dict[str, int] = {}
    """How deep each request stands, by its id."""
    serving: dict[str, int] = {}
    """How deep the newest request to each role stands."""
    for post in round_.post_list:
        marks = post.marks
        if marks.in_reply_to in depths:
            depth = depths[marks.in_reply_to] + 1
        elif marks.kind == "intervention":
            depth = serving.get(post.send_to, 0) + 1
        else:
            depth = serving.get(post.send_from, -1) + 1
            depths[post.id] = serving[post.send_to] = depth
        if (text := said_in(post)) or marks.state != "whole" or marks.kind != "note":
            head = "  " * depth + f"{post.send_from} > {post.send_to}" + _marked(post)
            yield f"{head}: {fit(text, width - len(head) - 2)}" if text else head


def said_in(post: Post) -> str:
    """The message of a post; without one, the texts of its attachments."""
    return post.message or "\n".join(str(piece.content) for piece in post.attachment_list)


def kept_in(post: Post) -> str:
    """How much a post holds, in words."""
    return lines_in(said_in(post).splitlines())


def _marked(post: Post) -> str:
    match post.marks.kind, post.marks.state:
        case _, "partial":
            return f"  [CUT, kept {kept_in(post)}]"
        case _, "not_started":
            return "  [CUT before it began]"
        case "message" | "reply", _:
            return ""
        case kind, _:
            return f"  [{kind}]"
