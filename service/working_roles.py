"""Working roles: who works for whom, and what each role is doing, worked out of a conversation's events."""

from __future__ import annotations

from collections.abc import Iterator

from callboard.runtime import Actor, Post
from callboard.runtime.actor import actor_tree
from callboard.runtime.event import ActorEnded, ActorStarted, AttemptBegan, AttemptCut, Event, PostRecorded, RoundEnded

from .plain_text import fit


class WorkingRoles:
    """The roles below `root`, and those that are started on the way."""

    def __init__(self, root: Actor) -> None:
        self._superiors: dict[str, str | None] = {
            name: superior for name, (_, superior) in actor_tree(root, None).items()
        }
        self._posts: dict[str, Post] = {}
        """The posts of the round, by id."""
        self._working: dict[str, tuple[str, str]] = {}
        """By role, the id of the post that it works on, and how far it is."""
        self._asked: dict[str, str] = {}
        """By role, whom it waits for."""

    def note(self, event: Event) -> None:
        """Takes in one event."""
        match event:
            case ActorStarted(role, superior):
                self._superiors[role] = superior
            case ActorEnded(role, ""):
                self._superiors.pop(role, None)
            case AttemptBegan(role, post, attempt):
                self._working[role] = post, "works" if attempt == 1 else f"works, attempt {attempt}"
                self._asked.pop(role, None)
            case AttemptCut(role, post, words=words):
                self._working[role] = post, "is being recalled" if words is None else "is being interrupted"
            case PostRecorded(post):
                self._note_post(post)
            case RoundEnded():
                self._posts.clear()
                self._working.clear()
                self._asked.clear()

    def lines(self, width: int) -> Iterator[str]:
        """A line for each role, below its superior."""
        for role, superior in self._superiors.items():
            if superior is None or superior not in self._superiors:
                yield from self._below(role, "", width)

    def _below(self, role: str, margin: str, width: int) -> Iterator[str]:
        yield margin + fit(f"{role}: {self._doing(role)}", width - len(margin))
        for other, superior in self._superiors.items():
            if superior == role:
                yield from self._below(other, margin + "  ", width)

    def _doing(self, role: str) -> str:
        if role not in self._working:
            return "at rest"
        id, how = self._working[role]
        waits = f", waits for {self._asked[role]}" if role in self._asked else ""
        post = self._posts.get(id)
        return f"{how}{waits}: {post.message}" if post else how + waits

    def _note_post(self, post: Post) -> None:
        self._posts[post.id] = post
        match post.marks.kind:
            case "message" if post.marks.in_reply_to is None and post.send_from in self._working:
                self._asked[post.send_from] = post.send_to
            case "reply" | "error":
                if self._working.get(post.send_from, ("",))[0] == post.marks.in_reply_to:
                    del self._working[post.send_from]
                if self._asked.get(post.send_to) == post.send_from:
                    del self._asked[post.send_to]
