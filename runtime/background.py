"""Background: requests whose starter does not wait. Their turns are the conversation's, their reports the starter's.

While a round runs, a report waits in the starter's mailbox, and what the starter makes of it is recorded. If none runs,
or the round ends before the report was taken, the report opens a round of its own, whose answer is for the user.
"""

from __future__ import annotations

from contextvars import Context, copy_context
from typing import TypeAlias

from .errors import RequestRecalled, UnknownRole
from .line import Line
from .post import Post
from .request import Request
from .router import Router
from .turn import Turn
from .user_message import UserMessage

_Key: TypeAlias = tuple[str, str]


class _Started:
    """One such request, until its report has been taken."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.variables: Context = copy_context()
        """The starter's, in which the report is taken."""
        self.report: Turn | Request | None = None

    @property
    def open(self) -> bool:
        """Whether it is under way, or its report has not been taken."""
        report = self.report
        if report is None:
            return not self.turn.latest.over
        if isinstance(report, Turn):
            return report.state == "queued"
        return report.round is None and not report.ended


class Background:
    """Of one conversation."""

    def __init__(self, router: Router, line: Line) -> None:
        self._router = router
        self._line = line
        self._started: dict[_Key, _Started] = {}
        """By starter and name: a role has one request under way to another."""

    def start(self, post: Post, starter: Turn) -> Post:
        """The request that is under way, or a new one.

        Raises UnknownRole, PostRefused, LimitReached, RequestRecalled for a starter that nobody waits for any more.
        """
        key = (post.send_from, post.send_to)
        known = self._started.get(key)
        if known is not None and known.open:
            return known.turn.post
        if starter.recalled:  # nothing starts for nobody
            raise RequestRecalled(starter.role, starter.post.id)
        self._router.budget.check_room()
        turn = Turn(post, None, copy_context(), foreground=False, budget=self._router.budget)
        turn.report_to = starter.role
        turn.outer = starter.outer
        entry = self._router.open(turn)
        self._started[key] = _Started(turn)
        self._router.admit(turn, entry)
        return turn.post

    def turn_ended(self, turn: Turn) -> None:
        """Delivers the report of a turn that was started in the background."""
        if turn.report_to is None or turn.successor is not None or turn.recalled or turn.account is None:
            return
        started = next((one for one in self._started.values() if one.turn.latest is turn), None)
        if started is None:
            return
        if self._line.stopping or not self._can_take(turn.report_to):
            self._router.dead_letters.add(turn.account, f"{turn.report_to} takes no report any more")
        elif self._line.current is None:
            self._open_round(started, turn.account)
        else:
            self._tell(started, turn.account, turn.report_to)

    def round_ended(self) -> None:
        """Reports that nobody has taken open rounds of their own."""
        for started in list(self._started.values()):
            report = started.report
            if isinstance(report, Turn) and report.state == "queued" and not self._line.stopping:
                self._router.directory.entry_of(report.role).mailbox.recall(report.post.id)
                del self._router.turns[report]
                report.end(None)
                self._open_round(started, report.post)

    def _can_take(self, starter: str) -> bool:
        try:
            return self._router.directory.find(starter).failed is None
        except UnknownRole:
            return False

    def _tell(self, started: _Started, report: Post, starter: str) -> None:
        turn = Turn(report, None, started.variables.copy(), foreground=False, budget=self._router.budget)
        started.report = turn
        self._router.turns[turn] = None
        self._router.admit(turn, self._router.directory.find(starter))

    def _open_round(self, started: _Started, report: Post) -> None:
        request = Request(UserMessage(report.message, id=report.id), report)
        request.variables = started.variables.copy()
        started.report = request
        self._line.add(request)
