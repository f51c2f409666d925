"""For programs that do not run on trio: TrioHost for asyncio, BlockingHost for code that blocks."""

from .asyncio_conversation import AsyncioConversation
from .asyncio_receipt import AsyncioQueued, AsyncioReceipt
from .asyncio_subscription import AsyncioSubscription
from .blocking_conversation import BlockingConversation
from .blocking_host import BlockingHost
from .blocking_receipt import BlockingQueued, BlockingReceipt
from .blocking_subscription import BlockingSubscription
from .trio_host import TrioHost

__all__ = [
    "AsyncioConversation",
    "AsyncioQueued",
    "AsyncioReceipt",
    "AsyncioSubscription",
    "BlockingConversation",
    "BlockingHost",
    "BlockingQueued",
    "BlockingReceipt",
    "BlockingSubscription",
    "TrioHost",
]
