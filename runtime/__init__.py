"""The runtime of callboard: roles as trio actors, conversations that are interrupted and go on.

It knows no template, no role and no model provider. What is listed here is for everybody; everything else is imported
from its module, and what a module does not explain to its callers is private, whatever its spelling.
"""

from .actor import Actor
from .attachment import Attachment, AttachmentType
from .board import Board
from .chat_model import ChatModel
from .context import TurnContext
from .conversation import Conversation
from .errors import CallboardError, RoleFailed
from .limits import Limits
from .memory import get_role_rounds, get_shared_memory_entries
from .opening import open_conversation
from .post import Post
from .receipt import Receipt
from .round import Round
from .shared_memory import SharedMemoryEntry
from .tool import Tool
from .transcript import Transcript
from .user_message import UserMessage

__all__ = [
    "Actor",
    "Attachment",
    "AttachmentType",
    "Board",
    "CallboardError",
    "ChatModel",
    "Conversation",
    "Limits",
    "Post",
    "Receipt",
    "RoleFailed",
    "Round",
    "SharedMemoryEntry",
    "Tool",
    "Transcript",
    "TurnContext",
    "UserMessage",
    "get_role_rounds",
    "get_shared_memory_entries",
    "open_conversation",
]
