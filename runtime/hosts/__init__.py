"""For programs that do not run on trio: TrioHost for asyncio, BlockingHost for code that blocks."""

from .asyncio_board import AsyncioBoard
from .asyncio_conversation import AsyncioConversation
from .asyncio_receipt import AsyncioQueued, AsyncioReceipt
from .asyncio_streamed_reply import AsyncioStreamedReply
from .asyncio_subscription import AsyncioSubscription
from .blocking_board import BlockingBoard
from .blocking_conversation import BlockingConversation
from .blocking_host import BlockingHost
from .blocking_receipt import BlockingQueued, BlockingReceipt
from .blocking_streamed_reply import BlockingStreamedReply
from .blocking_subscription import BlockingSubscription
from .trio_host import TrioHost

__all__ = [
    "AsyncioBoard",
    "AsyncioConversation",
    "AsyncioQueued",
    "AsyncioReceipt",
    "AsyncioStreamedReply",
    "AsyncioSubscription",
    "BlockingBoard",
    "BlockingConversation",
    "BlockingHost",
    "BlockingQueued",
    "BlockingReceipt",
    "BlockingStreamedReply",
    "BlockingSubscription",
    "TrioHost",
]
