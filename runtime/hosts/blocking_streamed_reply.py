"""BlockingStreamedReply: `for` in code that blocks over a reply that grows in trio's thread."""

from __future__ import annotations

from functools import partial

from ..streaming import Piece, StreamedReply
from .blocking_bridge import BlockingBridge
from .blocking_subscription import BlockingSubscription
from .streamed_reply import Pieces, StreamedReplyHandle


class BlockingStreamedReply(StreamedReplyHandle):
    """`for piece in reply`: text, and markers where the text read before is no longer what will be answered.

    The iteration ends with the round, and raises its error if it has one. Interrupted: nothing was taken.
    """

    def __init__(self, bridge: BlockingBridge, handled: StreamedReply) -> None:
        super().__init__(handled)
        self._pieces: BlockingSubscription[Piece] = BlockingSubscription(bridge, partial(Pieces, handled))

    def __iter__(self) -> BlockingStreamedReply:
        return self

    def __next__(self) -> Piece:
        """The next piece: all text up to the next marker that has come. Raises the error of the round at its end."""
        piece = next(self._pieces, None)
        if piece is None:
            self._raise_error()
            raise StopIteration
        return self._take(piece)
