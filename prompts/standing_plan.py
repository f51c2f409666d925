"""Standing plan: whether the role is following a plan, so that words which override it can say that it is cancelled.

The rule to know: a plan stands from the post that holds it, an unfinished one too, until the role has answered whoever
asked, has failed, or has been told otherwise.
"""

from __future__ import annotations

from callboard.runtime.attachment import AttachmentType
from callboard.runtime.post import Post

_PLANS = frozenset({AttachmentType.init_plan, AttachmentType.plan})


class StandingPlan:
    """Read post by post, in their order."""

    __slots__ = ("_questions", "_role", "_stands")

    def __init__(self, role: str) -> None:
        self._role = role
        self._questions: set[str] = set()
        """Those the role was asked in the middle of its work: answering one ends no plan."""
        self._stands = False

    def read(self, post: Post) -> bool:
        """Whether this post cancels a plan that stood."""
        if post.send_from == self._role:
            self._stands = self._stands_after(post)
        elif post.marks.kind == "question":
            self._questions.add(post.id)
        elif post.marks.kind == "intervention":
            cancelled, self._stands = self._stands, False
            return cancelled
        return False

    def _stands_after(self, post: Post) -> bool:
        marks = post.marks
        is_answer = post.send_to != self._role and marks.in_reply_to is not None and marks.kind != "question"
        if is_answer and marks.in_reply_to not in self._questions and marks.state in ("whole", "late"):
            return False
        return self._stands or _holds_plan(post)


def _holds_plan(post: Post) -> bool:
    return any(one.type in _PLANS and str(one.content).strip() for one in post.attachment_list)
