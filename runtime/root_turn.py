"""RootTurn: the turn by which the user's request is asked of the root, and asked again. All of it is sync."""

from __future__ import annotations

from .directory import Entry
from .errors import CallboardError, PostRefused
from .ids import Ids
from .json_value import frozen
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


def next_turn(ended: Turn, request: Request, router: Router, ids: Ids) -> tuple[Turn, Entry] | None:
    """Asks once more who gave an answer to which the request objects: in the same round, out of the same budget.

    None if the answer stands: there is no objection, no answer, nobody who waits, or no way to ask again.
    """
    if ended.recalled or not isinstance(ended.result, Post):
        return None
    words = request.objection(ended.result)
    if words is None:
        return None
    post_id, at = ids.create_at("post")
    marks = Marks(at=at, system_message=words.system_message, extra=frozen(words.extra))
    post = Post(post_id, USER, ended.role, words.message, (), marks)
    turn = Turn(post, None, request.variables.copy(), foreground=True, budget=ended.budget)
    turn.outer = ended.outer
    try:
        turn.budget.check_room()
        return turn, router.open(turn)
    except CallboardError:  # the objection is then the sender's to read
        return None
