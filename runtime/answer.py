"""Answer: what `receive` returned, addressed to who waits for it."""

from __future__ import annotations

from dataclasses import replace

from .errors import NoReply
from .post import Post
from .turn import Turn


def checked_answer(turn: Turn, returned: Post | None) -> Post | None:
    """What was returned, addressed to who waits. Raises what is wrong with it."""
    if returned is None:
        if turn.asked:
            raise NoReply(turn.role, turn.post.id)
        return None
    if not isinstance(returned, Post):
        raise TypeError(f"receive of {turn.role} returned {type(returned).__name__}, not a Post or None")
    if returned.send_from != turn.role:
        raise ValueError(f"{turn.role} returned a post in the name of {returned.send_from!r}")
    if returned.send_to == turn.role and turn.asked:
        raise NoReply(turn.role, turn.post.id)
    marks = returned.marks
    if returned.send_to == turn.answer_to and marks.in_reply_to == turn.post.id:
        return returned
    if returned.send_to in (turn.post.send_from, turn.answer_to):
        marks = replace(marks, in_reply_to=turn.post.id)
        return replace(returned, send_to=turn.answer_to, marks=marks)
    return returned
