"""One round: what the user asked, the posts that it took, and how it ended.

The rule to know: a round never changes; memory makes the next one from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from operator import is_
from typing import Any, Literal, TypeAlias, get_args

from .ids import create_id
from .json_value import check_text
from .post import Post

RoundState: TypeAlias = Literal["created", "finished", "failed", "stopped"]

_STATES: tuple[str, ...] = get_args(RoundState)


@dataclass(frozen=True, slots=True)
class Round:
    """One round; raises ValueError for a state that does not exist and text that UTF-8 cannot hold."""

    id: str
    user_query: str
    state: RoundState
    """``created`` until it has ended."""
    post_list: tuple[Post, ...]

    def __post_init__(self) -> None:
        if self.state not in _STATES:
            raise ValueError(f"{self.state!r} is no state of a round; there are {', '.join(_STATES)}")
        check_text(self.user_query, "user_query")

    @classmethod
    def create(
        cls,
        user_query: str,
        id: str | None = None,
        state: RoundState = "created",
        post_list: Iterable[Post] = (),
    ) -> Round:
        """A new round, with a new id if none is given."""
        return cls(id or create_id("round"), user_query, state, tuple(post_list))

    def without_temporal(self) -> Round:
        """This round as later ones show it, ids kept; itself if that is all of it."""
        posts = tuple(post.without_temporal() for post in self.post_list)
        return self if all(map(is_, posts, self.post_list)) else replace(self, post_list=posts)

    def to_dict(self) -> dict[str, Any]:
        """The round as a file holds it, of plain dicts and lists."""
        return {
            "id": self.id,
            "user_query": self.user_query,
            "state": self.state,
            "post_list": [post.to_dict() for post in self.post_list],
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Round:
        """The round that `to_dict` wrote, with new ids for it and its posts.

        Raises KeyError for a missing key, ValueError and TypeError for what cannot be.
        """
        id = create_id("round")
        posts = tuple(Post.from_dict(post) for post in entry["post_list"] or ())
        return cls(id, entry["user_query"], entry["state"], posts)

    @classmethod
    def restore(cls, entry: Mapping[str, Any]) -> Round:
        """The round that `to_dict` wrote, with the ids it had; raises what `from_dict` raises."""
        posts = tuple(Post.restore(post) for post in entry["post_list"] or ())
        return cls(entry["id"], entry["user_query"], entry["state"], posts)
