"""The deltas of one reply out of the bytes of its stream, in the format of OpenAI's chat completions.

The rule to know: an EndDelta is made only when the server said that the reply is complete, by a finish reason or by
`[DONE]`. Fields and events that are not known are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..chat_model import Delta, EndDelta, ReasoningDelta, TextDelta, UsageDelta
from .http_error import HttpErrors
from .line_reader import EventReader

_DONE = "[DONE]"
_HALF_PAIR = re.compile("[\ud800-\udfff]")


class DeltaReader:
    """Turns the bytes of a stream into deltas, the EndDelta apart, which `end` gives."""

    def __init__(self, errors: HttpErrors) -> None:
        self.done = False
        """Whether the server said that nothing more comes."""
        self._errors = errors
        self._events = EventReader()
        self._reason: str | None = None

    def feed(self, data: bytes) -> Iterator[Delta]:
        """The deltas that these bytes complete; read them all before the next `feed`. Raises ModelError."""
        for event in self._events.feed(data):
            if event == _DONE:
                self.done = True
            if not self.done:
                yield from self._deltas(self._parsed(event))

    def end(self) -> EndDelta:
        """The last delta. Raises ModelError if the stream ended before the reply was complete."""
        if self._reason is None and not self.done:
            raise self._errors.broken("the stream ended before the reply was complete", may_retry=True)
        return EndDelta(self._reason or "stop")

    def _parsed(self, event: str) -> dict[str, Any]:
        try:
            body = json.loads(event)
        except (ValueError, RecursionError) as error:
            raise self._errors.broken(f"an event that is no JSON: {event}") from error
        if not isinstance(body, dict):
            raise self._errors.broken(f"an event that is no object: {event}")
        if body.get("error"):
            raise self._errors.of_body(body)
        return body

    def _deltas(self, body: dict[str, Any]) -> Iterator[Delta]:
        match body.get("choices"):
            case [{} as choice, *_]:
                yield from self._choice(choice)
        match body.get("usage"):
            case {"prompt_tokens": int(read), "completion_tokens": int(written)}:
                yield UsageDelta(read, written)

    def _choice(self, choice: dict[str, Any]) -> Iterator[Delta]:
        match choice.get("delta"):
            case {"reasoning_content": str(text)} | {"reasoning": str(text)} if text:
                yield ReasoningDelta(_whole(text))
        match choice.get("delta"):
            case {"content": str(text)} if text:
                yield TextDelta(_whole(text))
        match choice.get("finish_reason"):
            case str(reason) if reason:
                self._reason = _whole(reason)


def _whole(text: str) -> str:
    """The text with a replacement character for half a surrogate pair, which JSON can write and UTF-8 cannot."""
    if _HALF_PAIR.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
