"""InvalidAnswer: the error of who asked for an answer of a type."""

from __future__ import annotations

from .callboard_error import CallboardError

_SHOWN = 300


class InvalidAnswer(CallboardError):
    """The fault of `role`: what it `said` in the post `post_id` is none of the type, for `problem`; ask otherwise."""

    def __init__(self, role: str, post_id: str, said: str, problem: str) -> None:
        super().__init__(role, post_id, said, problem)
        self.role = role
        self.post_id = post_id
        self.said = said
        self.problem = problem

    def __str__(self) -> str:
        left_out = len(self.said) - _SHOWN
        said = self.said if left_out <= 0 else f"{self.said[:_SHOWN]}… ({left_out} characters more)"
        return f"{self.role} gave no valid answer: {self.problem}; it said: {said}"
