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
    FallbackDelta,
    RetryingDelta,
    TextDelta,
    UsageDelta,
)
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import LimitReached, ModelError
from callboard.runtime.model_event import ModelCalled, ModelReplaced, ModelRetried

CUT_OFF = "length"
"""The reason that a server gives for the end of a reply that its limit of tokens cut off."""

OnText: TypeAlias = Callable[[str], object]
"""Takes a piece of the reply, in the step in which it comes; True ends the call, since enough has come."""


class ReplyCutOff(ModelError):
    """The caller's fault: the reply is longer than the server's limit of tokens; ask for less, or allow more."""


async def call_model(context: TurnContext, model: ChatModel, request: ChatRequest, on_text: OnText) -> None:
    """One call, whose text is handed to `on_text` as it comes; what it uses counts against the limits.

    A call that is made again, or to another model, counts as a call more. Cancelled: the call is ended at once. A cut
    that is under way when the reply is complete is met before this returns. Raises LimitReached, ModelError, and
    ReplyCutOff for a reply that was cut off at the server's limit of tokens.
    """
    context.spend(model=model.name, model_calls=1)
    reached: LimitReached | None = None
    async with context.step():
        call = _Call(context, model.name)
        try:
            async with model.stream(request) as deltas:
                await call.read(deltas, on_text)
        finally:
            reached = call.count()
    if reached is not None:
        raise reached
    if call.ended == CUT_OFF:
        raise ReplyCutOff(f"{call.model} cut its reply off: {CUT_OFF}", fault="caller", may_retry=False)
    await trio.lowlevel.checkpoint_if_cancelled()


class _Call:
    """What is known of one call, from its beginning on."""

    def __init__(self, context: TurnContext, model: str) -> None:
        self.ended = ""
        """Why the reply ended; empty for one that has not."""
        self.model = model
        """The name of the model that was called last."""
        self._context = context
        self._began = trio.current_time()
        self._first: float | None = None
        self._used: UsageDelta | None = None

    async def read(self, deltas: AsyncIterator[Delta], on_text: OnText) -> None:
        """Reads to the end, or as far as `on_text` wants."""
        async for delta in deltas:
            match delta:
                case RetryingDelta() | FallbackDelta():
                    self._again(delta)
                    continue
                case UsageDelta():
                    self._used = delta
                case EndDelta(reason):
                    self.ended = reason
            if self._first is None:
                self._first = trio.current_time() - self._began
            if not isinstance(delta, TextDelta):
                self._context.step_goes_on()
            elif on_text(delta.text) is True:
                return

    def _again(self, delta: RetryingDelta | FallbackDelta) -> None:
        """Tells of another call, and counts it. Raises LimitReached if it is one too many."""
        context, role = self._context, self._context.role
        match delta:
            case RetryingDelta(reason, seconds):
                context.emit(ModelRetried(role, self.model, reason, seconds))
                context.step_goes_on(seconds)
            case FallbackDelta(reason, model):
                context.emit(ModelReplaced(role, self.model, reason, model))
                context.step_goes_on()
                self.model = model
        context.spend(model=self.model, model_calls=1)

    def count(self) -> LimitReached | None:
        """Counts a call that has ended, cancelled or not: an error here must not take the place of the call's own."""
        context, used = self._context, self._used
        read, written, cached = (None, None, None) if used is None else _tokens(used)
        price = context.price_of(self.model)
        cost = price.of(*_tokens(used)) if price is not None and used is not None else 0.0
        seconds = trio.current_time() - self._began
        context.emit(ModelCalled(context.role, self.model, self._first, seconds, read, written, cached, cost))
        if used is None:
            return None
        try:
            context.spend(model=self.model, input_tokens=used.input_tokens, output_tokens=used.output_tokens, cost=cost)
        except LimitReached as reached:
            return reached
        return None


def _tokens(used: UsageDelta) -> tuple[int, int, int]:
    return used.input_tokens, used.output_tokens, used.cached_tokens
