"""End watch: holds against one conversation that an end ends everything.

A stop, a failure and the closing end all work, background work included; a conversation that calls itself idle has
none; what was put in line for later outlasts a stop. What does not hold is told to `found` in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import trio

from .conversation import Conversation
from .errors import RoundStopped
from .event import AttemptBegan, AttemptCut, Event, PostRecorded, QueueChanged, RoundBegan, RoundEnded
from .post import Post
from .request import Request
from .turn import Turn
from .waits import answering


class EndWatch:
    """Looks at what runs when the end comes, and at what became of it."""

    def __init__(self, conversation: Conversation, found: Callable[[str], None]) -> None:
        self._router = conversation._router
        self._line = conversation._line
        self._found = found
        self._to_end: tuple[Turn, ...] = ()
        """Turns that nobody waits for, as they were when all began to be ended."""
        self._enqueued: dict[Request, str] = {}
        """What stood in line for later, with what it said."""
        self._questions: dict[str, tuple[Turn, float]] = {}
        """Questions, by their post: who is to answer, and when they were asked."""
        self._cut_at: dict[Turn, float] = {}
        """When turns were cut that were in no block which is let finish."""
        self._line.on_idle = _before(self._line.on_idle, self._idle)
        self.looks: Mapping[type[Event], Callable[[Any], None]] = {
            AttemptBegan: lambda event: self._look_if_ending(),
            AttemptCut: self._attempt_cut,
            PostRecorded: self._post_recorded,
            QueueChanged: lambda event: self._queue_changed(),
            RoundBegan: lambda event: self._round_began(),
            RoundEnded: lambda event: self._round_ended(),
        }
        """What is called for which event."""

    def judge(self) -> None:
        """What the end of the conversation leaves open."""
        self._look_at_the_ended()
        for request, said in self._enqueued.items():
            if request.round is None and isinstance(request._result, RoundStopped):
                self._found(f"a stop ended the round {said!r} that was put in line for later")

    def _look_if_ending(self) -> None:
        if self._line.stopping and not self._to_end:
            self._to_end = tuple(turn for turn in self._router.turns if turn.asker is None)

    def _round_began(self) -> None:
        """Where only work beside a round was ended, this is the first that shows that it is over."""
        left = [turn for turn in self._to_end if turn.state != "ended"]
        if left:
            self._found(f"a round began over {left}, which were to end")
        self._look_at_the_ended()

    def _round_ended(self) -> None:
        if self._to_end and self._router.turns:
            self._found(f"the round was ended over {list(self._router.turns)}")
        self._look_at_the_ended()

    def _look_at_the_ended(self) -> None:
        spared = [turn for turn in self._to_end if not turn.recalled]
        if spared:
            self._found(f"all was ended but {spared}")
        self._to_end = ()

    def _idle(self) -> None:
        if self._router.turns:
            self._found(f"the conversation calls itself idle over {list(self._router.turns)}")

    def _queue_changed(self) -> None:
        self._enqueued |= {request: request.words.message for request in self._line.waiting if request.outlasts_stop}

    def _attempt_cut(self, event: AttemptCut) -> None:
        self._look_if_ending()
        for turn in self._router.turns:
            if turn.post.id == event.post and not turn.shields:
                self._cut_at.setdefault(turn, trio.current_time())

    def _post_recorded(self, event: PostRecorded) -> None:
        self._look_if_ending()
        post = event.post
        if post.marks.kind == "question":
            question = next(reversed(self._router.turns), None)
            if question is not None and question.post is post and question.asker is not None:
                above = answering(question.asker).asker
                if above is not None:
                    self._questions[post.id] = (above, trio.current_time())
        elif post.marks.state == "not_started":
            self._look_at_question(post)

    def _look_at_question(self, outcome: Post) -> None:
        """One that was not begun is over in the instant in which nobody was left to answer it."""
        above, asked = self._questions.get(outcome.marks.in_reply_to or "", (None, 0.0))
        cut = self._cut_at.get(above, trio.current_time()) if above is not None else trio.current_time()
        if asked <= cut < trio.current_time():
            self._found(f"a question stood open {trio.current_time() - cut} s after {above} could not answer it")


def _before(function: Callable[[], None], first: Callable[[], None]) -> Callable[[], None]:
    def both() -> None:
        first()
        function()

    return both
