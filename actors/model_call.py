"""A model call: one step of a turn, with what it used counted, and what happened on the way told as events.

The rule to know: what has come of a reply is with the caller piece by piece, and stays there whatever ends the call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

import trio

from callboard.runtime.chat_model import (
    ChatModel,
    ChatRequest,
    Delta,
    EndDelta,
    RetryingDelta,
    TextDelta,
    UsageDelta,
)
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import LimitReached, ModelError
from callboard.runtime.event import ModelRetried, UsageCounted

CUT_OFF = "length"
"""The reason that a server gives for the end of a reply that its limit of tokens cut off."""

OnText: TypeAlias = Callable[[str], object]
"""Takes a piece of the reply, in the step in which it comes; True ends the call, since enough has come."""


async def call_model(context: TurnContext, model: ChatModel, request: ChatRequest, on_text: OnText) -> None:
    """One call, whose text is handed to `on_text` as it comes; what it uses counts against the limits.

    Cancelled: the call is ended at once. A cut that is under way when the reply is complete is met before this
    returns. Raises LimitReached, and ModelError, also for a reply that was cut off at the server's limit of tokens.
    """
    context.spend(model=model.name, model_calls=1)
    call = _Call(context, model)
    reached: LimitReached | None = None
    async with context.step():
        try:
            async with model.stream(request) as deltas:
                await call.read(deltas, on_text)
        finally:
            reached = call.count()
    if reached is not None:
        raise reached
    if call.ended == CUT_OFF:
        raise ModelError(f"{model.name} cut its reply off: {CUT_OFF}", fault="caller", may_retry=False)
    await trio.lowlevel.checkpoint_if_cancelled()


class _Call:
    """What is known of one call."""

    def __init__(self, context: TurnContext, model: ChatModel) -> None:
        self.ended = ""
        """Why the reply ended; empty for one that has not."""
        self._context = context
        self._model = model
        self._used: UsageDelta | None = None

    async def read(self, deltas: AsyncIterator[Delta], on_text: OnText) -> None:
        """Reads to the end, or as far as `on_text` wants."""
        async for delta in deltas:
            match delta:
                case TextDelta(text):
                    if on_text(text) is True:
                        return
                case UsageDelta():
                    self._used = delta
                case EndDelta(reason):
                    self.ended = reason
                case RetryingDelta(reason, seconds):
                    self._context.emit(ModelRetried(self._context.role, self._model.name, reason, seconds))

    def count(self) -> LimitReached | None:
        """Counts a call that has ended, cancelled or not: an error here must not take the place of the call's own."""
        used, context, model = self._used, self._context, self._model.name
        if used is None:
            return None
        context.emit(UsageCounted(context.role, model, used.input_tokens, used.output_tokens))
        try:
            context.spend(model=model, input_tokens=used.input_tokens, output_tokens=used.output_tokens)
        except LimitReached as reached:
            return reached
        return None
