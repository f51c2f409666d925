"""Queued: a round that the user has put in line for later, as the host sees it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from .line import Line
from .post import Post
from .request import Request
from .user_message import UserMessage

QueuedState = Literal["waiting", "begun", "over"]


class Queued:
    """Until its round begins it can be read, edited and withdrawn; after that only its reply can be waited for."""

    __slots__ = ("_line", "_request")

    def __init__(self, request: Request, line: Line) -> None:
        self._request = request
        self._line = line

    @property
    def id(self) -> str:
        """The id of the message, which an edit keeps."""
        return self._request.words.id

    @property
    def message(self) -> UserMessage:
        """What the round will be asked, or was."""
        return self._request.words

    @property
    def position(self) -> int | None:
        """How many rounds begin before it, the running one not counted; None once it has begun or is over."""
        waiting = self._line.waiting
        return waiting.index(self._request) if self._request in waiting else None

    @property
    def state(self) -> QueuedState:
        """Waiting in line; begun; or over, which a withdrawn one is, too."""
        if self._request.ended:
            return "over"
        return "waiting" if self._request.round is None else "begun"

    def edit(self, message: str | UserMessage) -> bool:
        """Replaces the text, or all of the message but its id, in its place in line.

        False, and nothing changed, if its round has begun or it is over. Raises InsideTurn.
        """
        self._line.refuse_inside("edit")
        words = self._request.words
        changed = replace(words, message=message) if isinstance(message, str) else replace(message, id=words.id)
        return self._line.edit(self._request, changed)

    def withdraw(self) -> bool:
        """Takes it out of the line; `reply` raises RequestRecalled. False if its round has begun or it is over.

        Raises InsideTurn.
        """
        self._line.refuse_inside("withdraw")
        return self._line.withdraw(self._request)

    async def reply(self) -> Post:
        """The round's answer; raises what `send` raises. Cancelled: the round stays in line, or goes on."""
        await self._request.wait_ended()
        return self._request.unwrap()

    def __repr__(self) -> str:
        return f"<Queued {self.id}: {self.state}>"
