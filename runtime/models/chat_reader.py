"""The deltas of a stream in the format of OpenAI's chat completions.

The rule to know: the arguments of a tool call are the text of the reply. A tool is offered only as the form of the
reply, so a model that calls one is replying.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..chat_model import Delta, EndDelta, ReasoningDelta, TextDelta, UsageDelta
from .delta_reader import DeltaReader
from .http_error import HttpErrors
from .line_reader import LINE_LIMIT

_FILTERED = "content_filter"


class ChatReader(DeltaReader):
    """Reads one reply, which is complete with a finish reason or with `[DONE]`."""

    def __init__(self, errors: HttpErrors, line_limit: int = LINE_LIMIT) -> None:
        super().__init__(errors, line_limit)
        self._reason: str | None = None
        self._refusal = ""
        self._call: object = None

    def end(self) -> EndDelta:
        """As the stream said. A reply that the provider refused, or filtered, raises ContentRefused."""
        if self._refusal:
            raise self.errors.refused(f"the model refused: {self._refusal}")
        if self._reason == _FILTERED:
            raise self.errors.refused("the provider's filter ended the reply")
        if self._reason is None and not self.done:
            raise self.broken_off()
        return EndDelta(self._reason or "stop")

    def deltas(self, body: dict[str, Any]) -> Iterator[Delta]:
        """What one event brings."""
        match body.get("choices"):
            case [{} as choice, *_]:
                yield from self._choice(choice)
        match body.get("usage"):
            case {"prompt_tokens": int(read), "completion_tokens": int(written)} as usage:
                yield UsageDelta(read, written, _cached(usage))

    def _choice(self, choice: dict[str, Any]) -> Iterator[Delta]:
        delta = choice.get("delta")
        match delta:
            case {"reasoning_content": str(text)} | {"reasoning": str(text)} if text:
                yield from self.piece(ReasoningDelta, text)
        match delta:
            case {"content": str(text)} if text:
                yield from self.piece(TextDelta, text)
            case {"refusal": str(text)}:
                self._refusal += text
        match delta:
            case {"tool_calls": [*calls]}:
                yield from self._arguments(calls)
        match choice.get("finish_reason"):
            case str(reason) if reason:
                self._reason = reason.encode(errors="replace").decode()

    def _arguments(self, calls: list[Any]) -> Iterator[Delta]:
        """Pieces of the arguments of the first call; a model that calls twice has replied with the first."""
        for call in calls:
            match call:
                case {"function": {"arguments": arguments}}:
                    place = call.get("index", 0)
                    self._call = place if self._call is None else self._call
                    if place == self._call and arguments:
                        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
                        yield from self.piece(TextDelta, text)


def _cached(usage: object) -> int:
    """The tokens that the provider had kept, under the names that providers have for them."""
    match usage:
        case {"prompt_tokens_details": {"cached_tokens": int(cached)}} | {"prompt_cache_hit_tokens": int(cached)}:
            return cached
    return 0
