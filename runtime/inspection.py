"""Inspection: the host's hook on everything that is asked, told or replied, to guard, redact or audit it."""

from __future__ import annotations

from collections.abc import Callable

from .errors import PostRefused
from .post import Post

Hook = Callable[[Post], Post | None]


def inspection(hook: Hook | None) -> Callable[[Post], Post]:
    """What travels of a post: itself where the hook gives None, else what it gives.

    The function raises PostRefused for what the hook raises, and for a post with another id, sender, recipient or kind,
    or one that answers another.
    """
    if hook is None:
        return _unchanged

    def inspect(post: Post) -> Post:
        try:
            return _checked(post, hook(post))
        except Exception as error:
            raise PostRefused(post.send_from, post.send_to, error) from error

    return inspect


def _unchanged(post: Post) -> Post:
    return post


def _checked(post: Post, seen: Post | None) -> Post:
    if seen is None:
        return post
    if not isinstance(seen, Post):
        raise TypeError(f"the hook returned {type(seen).__name__}, not a Post or None")
    if _envelope(seen) != _envelope(post):
        raise ValueError("the hook may change what a post says, not its id, sender or recipient, nor what it is")
    return seen


def _envelope(post: Post) -> tuple[str | None, ...]:
    """What the runtime goes by."""
    marks = post.marks
    return post.id, post.send_from, post.send_to, marks.kind, marks.state, marks.in_reply_to, marks.words
