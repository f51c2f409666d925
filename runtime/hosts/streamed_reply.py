"""Streamed replies: what a host reads of a reply while it grows, in trio's thread and in its own.

Nothing is read ahead: what nobody has taken waits in trio's StreamedReply, which joins it, drops what is void, and is
bounded. So a host reads what a reader in trio would read.
"""

from __future__ import annotations

from ..post import Post
from ..streaming import Piece, Skipped, StreamedReply
from .handle import Handle


class Pieces:
    """The half in trio's thread. It ends with the round, whatever that ends with: the host's half raises it."""

    def __init__(self, reply: StreamedReply) -> None:
        self._reply = reply

    def __aiter__(self) -> Pieces:
        return self

    async def __anext__(self) -> Piece:
        """The next piece. Cancelled: nothing was taken."""
        try:
            return await anext(self._reply)
        except Exception:
            raise StopAsyncIteration from None


class StreamedReplyHandle(Handle[StreamedReply]):
    """The half in the host's thread, but for how it waits."""

    def __init__(self, handled: StreamedReply) -> None:
        super().__init__(handled)
        self._read: list[str] = []

    @property
    def text(self) -> str:
        """All that was read since the last marker: what a user should see now."""
        return "".join(self._read)

    @property
    def post(self) -> Post:
        """The finished reply. Raises what the round ended with, and RuntimeError while it has not ended."""
        return self._handled.post

    def _take(self, piece: Piece) -> Piece:
        if isinstance(piece, str):
            self._read.append(piece)
        elif not isinstance(piece, Skipped):
            self._read.clear()
        return piece

    def _raise_error(self) -> None:
        """That of the round, if it has one."""
        self._handled.post  # noqa: B018 (it raises)
