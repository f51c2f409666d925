"""Above: what stands above a context and serves it, as the context sees it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from .options import ConversationOptions
from .post import Post
from .receipt import Delivery, Receipt
from .summaries import Summaries
from .turn import Turn
from .user_message import UserMessage


class Startable(Protocol):
    """What can be started as a subordinate: an `Actor`."""

    name: str
    subordinates: Sequence[Any]


class Above(Protocol):
    """What stands above a context and serves it."""

    @property
    def options(self) -> ConversationOptions:
        """What the host has set."""

    @property
    def summaries(self) -> Summaries:
        """What the conversation has of summaries."""

    def saw(self, role: str, words_ids: Iterable[str]) -> None:
        """The role has read these words."""

    async def start_subordinate(self, superior: str, actor: Startable | str, *, name: str, reset: bool) -> str:
        """See `TurnContext.start_subordinate`."""

    async def end_subordinate(self, superior: str, name: str) -> None:
        """See `TurnContext.end_subordinate`."""

    async def ask_user(self, post: Post, turn: Turn, answering: Turn) -> Post:
        """Lets the host answer a question, if the round waits for `answering`."""

    def start_background(self, post: Post, starter: Turn) -> Post:
        """See `TurnContext.start_background`."""

    def intervene(
        self, turn: Turn, role: str, message: str | UserMessage, broadcast_level: int, delivery: Delivery
    ) -> Receipt:
        """See `TurnContext.intervene`."""
