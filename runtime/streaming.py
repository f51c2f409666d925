"""Streaming: the reply of one round, piece by piece as it grows.

The rule to know: a reader that is slow gets larger pieces; it never keeps a role waiting.
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

import trio

from .draft import TEXT
from .event import AttemptBegan, DraftGrew, Event
from .line import Line
from .post import Post
from .request import Request
from .signal import Signal
from .subscription import Publisher, Subscription
from .value import value

_FRAGMENT = 4096
"""Characters up to which small pieces that nobody has read yet become one."""


@value
class Restarted:
    """What was read since the last marker is void: after an interruption, or handed on, the answer begins anew."""

    role: str
    attempt: int


@value
class Taken:
    """What was read since the last marker was a step of the work and no part of the answer; new text begins."""


@value
class Skipped:
    """The reader was so far behind that so many characters are missing here; they stand in the post at the end."""

    characters: int


Piece: TypeAlias = str | Restarted | Taken | Skipped


class StreamedReply:
    """`async for piece in reply`: text, and markers where the text read before is no longer what will be answered.

    The iteration ends with the round, and raises its error if it has one. Each piece is a checkpoint. Cancelled:
    nothing was taken.
    """

    def __init__(self, request: Request, line: Line, buffer: int) -> None:
        self._request = request
        self._line = line
        self._buffer = buffer
        self._unread: deque[str | Restarted | Taken] = deque()
        self._characters = 0
        self._skipped = 0
        self._marker: Restarted | Taken | None = None
        """The last of the markers that were dropped: it is told before what was skipped."""
        self._began = False
        self._grown = False
        """Whether text has grown since the last marker."""
        self._read: list[str] = []
        self._changed = Signal()
        self.growth: Subscription[Event] | None = None
        """How it follows the events of the conversation; it lives as long as this holds it."""
        request.followers += (self._changed.fire,)

    @property
    def text(self) -> str:
        """All that was read since the last marker: what a user should see now."""
        return "".join(self._read)

    @property
    def post(self) -> Post:
        """The finished reply. Raises what the round ended with, and RuntimeError while it has not ended."""
        if not self._request.ended:
            raise RuntimeError("the reply is not finished; read its pieces first")
        return self._request.unwrap()

    def __aiter__(self) -> StreamedReply:
        return self

    async def __anext__(self) -> Piece:
        """The next piece: all text up to the next marker that has come. Raises the error of the round at its end."""
        await trio.lowlevel.checkpoint()
        while not (self._unread or self._skipped or self._marker):
            if self._request.ended:
                self._request.unwrap()
                raise StopAsyncIteration
            await self._changed.wait()
        piece = self._next()
        if isinstance(piece, str):
            self._read.append(piece)
        elif not isinstance(piece, Skipped):
            self._read.clear()
        return piece

    def follow(self, events: Publisher[Event]) -> None:
        """Sees what happens from now on, until `leave`."""
        self.growth = events.subscribe(_Growth(self))

    def leave(self) -> None:
        """Sees nothing any more; what it has can be read."""
        self.growth = None
        self._request.followers = tuple(other for other in self._request.followers if other != self._changed.fire)

    def see(self, event: Event) -> None:
        """Looks at an event as it happens; takes what concerns the turn that owes the answer."""
        turn = self._line.turn_of(self._request)
        if turn is None:
            return
        match event:
            case DraftGrew(post=post, text=text, type=kind) if post == turn.post.id and kind == TEXT:
                if self._grown and turn.draft is not None and turn.draft.just_begun:
                    self._put(Taken())
                self._grown = True
                self._put(text)
            case AttemptBegan(role, post, attempt) if post == turn.post.id:
                if self._began:
                    self._void()
                    self._put(Restarted(role, attempt))
                self._began = True
                self._grown = False

    def _put(self, piece: str | Restarted | Taken) -> None:
        last = self._unread[-1] if self._unread else None
        if isinstance(piece, str) and isinstance(last, str) and len(last) < _FRAGMENT:
            self._unread[-1] = last + piece
        else:
            self._unread.append(piece)
        self._characters += len(piece) if isinstance(piece, str) else 0
        while self._characters > self._buffer:
            self._drop_one()
        self._changed.fire()

    def _drop_one(self) -> None:
        """The oldest goes first; of a piece that alone is too large, its beginning."""
        oldest = self._unread.popleft()
        if not isinstance(oldest, str):
            self._marker = self._marker if isinstance(self._marker, Restarted) else oldest
            return
        dropped = min(len(oldest), self._characters - self._buffer)
        if dropped < len(oldest):
            self._unread.appendleft(oldest[dropped:])
        self._characters -= dropped
        self._skipped += dropped

    def _void(self) -> None:
        self._unread.clear()
        self._characters = self._skipped = 0
        self._marker = None

    def _next(self) -> Piece:
        if self._marker is not None:
            marker, self._marker = self._marker, None
            return marker
        if self._skipped:
            skipped, self._skipped = self._skipped, 0
            return Skipped(skipped)
        if not isinstance(first := self._unread[0], str):
            self._unread.popleft()
            return first
        pieces = []
        while self._unread and isinstance(piece := self._unread[0], str):
            self._unread.popleft()
            pieces.append(piece)
        text = "".join(pieces)
        self._characters -= len(text)
        return text

    def __repr__(self) -> str:
        state = "finished" if self._request.ended else "growing"
        return f"<StreamedReply {state}, {self._characters} characters unread>"


class _Growth(Subscription[Event]):
    """Hands each event over in the step in which it happens; the reply keeps what it needs."""

    def __init__(self, reply: StreamedReply) -> None:
        super().__init__()
        self._reply = reply

    def put(self, item: Event) -> None:
        self._reply.see(item)
