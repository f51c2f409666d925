"""AsyncioStreamedReply: `async for` in an asyncio task over a reply that grows in trio's thread."""

from __future__ import annotations

from functools import partial

from ..streaming import Piece, StreamedReply
from .asyncio_bridge import AsyncioBridge
from .asyncio_subscription import AsyncioSubscription
from .streamed_reply import Pieces, StreamedReplyHandle


class AsyncioStreamedReply(StreamedReplyHandle):
    """`async for piece in reply`: text, and markers where the text read before is no longer what will be answered.

    The iteration ends with the round, and raises its error if it has one. Each piece is a checkpoint. Cancelled:
    nothing was taken.
    """

    def __init__(self, bridge: AsyncioBridge, handled: StreamedReply) -> None:
        super().__init__(handled)
        self._pieces: AsyncioSubscription[Piece] = AsyncioSubscription(bridge, partial(Pieces, handled))

    def __aiter__(self) -> AsyncioStreamedReply:
        return self

    async def __anext__(self) -> Piece:
        """The next piece: all text up to the next marker that has come. Raises the error of the round at its end."""
        piece = await anext(self._pieces, None)
        if piece is None:
            self._raise_error()
            raise StopAsyncIteration
        return self._take(piece)
