"""Course: what the roles of a conversation did at which time, worked out of its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from callboard.runtime import Post
from callboard.runtime.event import AttemptBegan, AttemptCut, DraftGrew, Event, PostRecorded, WordsAccepted
from callboard.runtime.post import USER

from .post_tree import kept_in


@dataclass(slots=True)
class Span:
    """A stretch of one attempt, in which the role works, or waits for whom it asked."""

    role: str
    begin: float
    waits: bool
    end: float | None = None
    """None while it lasts."""
    cut: bool = False
    """Whether it ended because the attempt was cut."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The beginning of an attempt."""

    role: str
    at: float
    number: int
    task: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """A post on its way."""

    at: float
    source: str
    target: str
    kind: Literal["ask", "reply", "words"]


@dataclass(frozen=True, slots=True)
class Mark:
    """What happened at one moment: a piece of work, partial work that was kept, what the user said or heard."""

    at: float
    role: str
    kind: Literal["piece", "kept", "said", "heard"]
    text: str = ""


@dataclass(slots=True)
class Course:
    """The whole; the lanes are the user and the roles, in order of their first work."""

    lanes: list[str] = field(default_factory=lambda: [USER])
    spans: list[Span] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    end: float = 0.0
    """The time of the last event, from the first one on."""


def course_of(events: Iterable[tuple[float, Event]]) -> Course:
    """The course that timed events tell, its times counted from the first of them."""
    recorder = _Recorder()
    first: float | None = None
    for at, event in events:
        first = at if first is None else first
        recorder.note(at - first, event)
    return recorder.course


class _Recorder:
    def __init__(self) -> None:
        self.course = Course()
        self._open: dict[str, Span] = {}
        """The span that lasts, by role."""
        self._messages: dict[str, str] = {}

    def note(self, at: float, event: Event) -> None:
        """Adds what one event says."""
        self.course.end = max(self.course.end, at)
        match event:
            case AttemptBegan(role, post, number):
                self._begin(role, at, waits=False)
                self.course.attempts.append(Attempt(role, at, number, self._messages.get(post, "")))
            case AttemptCut(role):
                self._end(role, at, cut=True)
            case DraftGrew(role):
                self.course.marks.append(Mark(at, role, "piece"))
            case WordsAccepted(words):
                self.course.marks.append(Mark(at, USER, "said", words.message))
            case PostRecorded(post):
                self._post(at, post)

    def _post(self, at: float, post: Post) -> None:
        self._messages[post.id] = post.message
        match post.marks.kind, post.marks.state:
            case _, "partial":
                self.course.marks.append(Mark(at, post.send_from, "kept", kept_in(post)))
            case "intervention", _:
                self.course.arrows.append(Arrow(at, post.send_from, post.send_to, "words"))
            case "message", _:
                self._ask(at, post)
            case (("reply" | "error"), "whole"):
                self._reply(at, post)

    def _ask(self, at: float, post: Post) -> None:
        self.course.arrows.append(Arrow(at, post.send_from, post.send_to, "ask"))
        if post.send_from == USER:
            self.course.marks.append(Mark(at, USER, "said", post.message))
        elif self._end(post.send_from, at):
            self._begin(post.send_from, at, waits=True)

    def _reply(self, at: float, post: Post) -> None:
        self.course.arrows.append(Arrow(at, post.send_from, post.send_to, "reply"))
        self._end(post.send_from, at)
        if post.send_to == USER:
            self.course.marks.append(Mark(at, USER, "heard", post.message))
        elif self._end(post.send_to, at):
            self._begin(post.send_to, at, waits=False)

    def _begin(self, role: str, at: float, *, waits: bool) -> None:
        if role not in self.course.lanes:
            self.course.lanes.append(role)
        self._open[role] = Span(role, at, waits)
        self.course.spans.append(self._open[role])

    def _end(self, role: str, at: float, *, cut: bool = False) -> bool:
        """Whether there was a span to end."""
        span = self._open.pop(role, None)
        if span is not None:
            span.end, span.cut = at, cut
        return span is not None
