"""The edge to language models: one protocol, the values that cross it, and nothing of any provider.

A reply is a stream of typed deltas. Leaving the stream's block, for whatever reason, ends the request at the provider.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeAlias

from .json_value import FrozenMapping
from .value import value


@value
class ImagePart:
    """An image that is shown with a message."""

    url: str
    """An address that the provider can read, or a data: URL."""


@value
class FilePart:
    """A file that is handed over with a message."""

    name: str
    url: str
    """A data: URL."""


Part: TypeAlias = ImagePart | FilePart


@value
class Message:
    """One message of a chat, as providers have it."""

    role: Literal["system", "user", "assistant"]
    content: str
    parts: tuple[Part, ...] = ()
    """What is shown behind the text."""


@value
class ReplySchema:
    """What the text of a reply has to be: JSON of this schema. Models hold to it as far as their provider can."""

    name: str
    """Letters, digits, `_` and `-`; providers want one."""
    schema: FrozenMapping


@value
class ChatRequest:
    """One model call."""

    role: str
    """The name of the role that calls, by which scripted models find their lines."""
    messages: tuple[Message, ...]
    schema: ReplySchema | None = None


@value
class TextDelta:
    """A piece of the reply."""

    text: str


@value
class ReasoningDelta:
    """A piece of what the model thinks before it replies; no part of the reply."""

    text: str


@value
class UsageDelta:
    """What the call has used up to now, in tokens."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    """Of the input, those that the provider had kept from an earlier call."""


@value
class RetryingDelta:
    """The request failed before anything came, and is made again after so many seconds."""

    reason: str
    seconds: float


@value
class FallbackDelta:
    """The request failed before anything came, and is made to another model, of this name."""

    reason: str
    model: str


@value
class EndDelta:
    """The reply is complete, or was cut off: `reason` is the provider's, such as stop or length."""

    reason: str


Delta: TypeAlias = TextDelta | ReasoningDelta | UsageDelta | RetryingDelta | FallbackDelta | EndDelta


class ChatModel(Protocol):
    """A model that replies. One object serves any number of roles and conversations at once."""

    @property
    def name(self) -> str:
        """The model's name, for events and logs."""

    def stream(self, request: ChatRequest) -> AbstractAsyncContextManager[AsyncIterator[Delta]]:
        """`async with model.stream(request) as deltas: async for delta in deltas: …`, the last being an EndDelta.

        Cancelled, or the block left early: the request is ended at once. Raises ModelError, on entering or between
        deltas; a stream that breaks off without an EndDelta raises it too.
        """
