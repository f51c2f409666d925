"""FiledRound: one round as memory holds it, while it grows: all its posts, and what each role sees of them.

The rule to know: what was once built for a role is given again until a post of that role, or the round's end, makes
another of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from .post import Post
from .round import Round, RoundState


class FiledRound:
    """Changed by memory alone; what it gives out never changes."""

    __slots__ = ("_by_role", "_seen", "head", "posts")

    def __init__(self, head: Round) -> None:
        self.head = head
        """The round without its posts."""
        self.posts: list[Post] = []
        self._by_role: dict[str, list[Post]] = {}
        self._seen: dict[str, Round] = {}

    def add(self, post: Post) -> None:
        """Files a post under its sender and its recipient; a note once."""
        self.posts.append(post)
        self._file(post.send_from, post)
        if post.send_to != post.send_from:
            self._file(post.send_to, post)

    def end(self, state: RoundState) -> None:
        """The round is over; posts may still come."""
        self.head = self._holding((), state)
        self._seen.clear()

    def whole(self) -> Round:
        """The round with all its posts."""
        return self._holding(self.posts, self.head.state)

    def posts_of(self, role: str) -> Sequence[Post]:
        """The posts from or to a role, in order."""
        return self._by_role.get(role, ())

    def seen_by(self, role: str, left_out: int = 0) -> Round:
        """The round with the posts from or to a role but the first `left_out`: the same object while nothing is new."""
        seen = self._seen.get(role)
        if seen is None:
            seen = self._seen[role] = self._holding(self.posts_of(role)[left_out:], self.head.state)
        return seen

    def forget(self, role: str) -> None:
        """What was built for this role is not given again."""
        self._seen.pop(role, None)

    def _file(self, role: str, post: Post) -> None:
        self._by_role.setdefault(role, []).append(post)
        self._seen.pop(role, None)

    def _holding(self, posts: Sequence[Post], state: RoundState) -> Round:
        return Round(self.head.id, self.head.user_query, state, tuple(posts))
