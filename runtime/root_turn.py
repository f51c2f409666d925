"""RootTurn: the turn by which the user's request is asked of the root. All of it is sync."""

from __future__ import annotations

from .errors import PostRefused
from .limits import Budget
from .post import USER, Marks, Post
from .request import Request
from .router import Router
from .turn import Turn, current_turn


def as_seen(router: Router, post: Post) -> tuple[Post, PostRefused | None]:
    """What the host's hook lets stand of a post of the user's: of one that it refuses, an empty one."""
    try:
        return router.inspect(post), None
    except PostRefused as refusal:
        marks = Marks(at=post.marks.at, words=post.marks.words)
        return Post(post.id, post.send_from, post.send_to, "", (), marks), refusal


def first_turn(request: Request, post: Post, budget: Budget) -> Turn:
    """The turn with which a request's round begins, in the variables of whoever asked for it."""
    outer = request.variables.get(current_turn) if request.report is None else None
    turn = Turn(post, None, request.variables, foreground=True, budget=budget)
    turn.answer_to = USER
    turn.outer = outer
    return turn
