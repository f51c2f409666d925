"""The deltas of one reply out of the bytes of its stream: what all providers' streams of events have in common.

The rule to know: an EndDelta is made only when the server said that the reply is complete. Fields and events that are
not known are left out.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, TypeVar

from ..chat_model import Delta, EndDelta, ReasoningDelta, TextDelta
from ..errors import BrokenStream
from .http_error import HttpErrors
from .line_reader import LINE_LIMIT, EventReader

_DONE = "[DONE]"
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_FIRST_HALF = re.compile("[\ud800-\udbff]$")

D = TypeVar("D", TextDelta, ReasoningDelta)


class DeltaReader(ABC):
    """Turns the bytes of a stream into deltas, the EndDelta apart, which `end` gives."""

    def __init__(self, errors: HttpErrors, line_limit: int = LINE_LIMIT) -> None:
        self.done = False
        """Whether the server said that nothing more comes."""
        self.errors = errors
        self._events = EventReader(line_limit)
        self._halves: dict[type[TextDelta | ReasoningDelta], str] = {}

    def feed(self, data: bytes) -> Iterator[Delta]:
        """The deltas that these bytes complete; read them all before the next `feed`. Raises ModelError."""
        for event in self._events.feed(data):
            if event == _DONE:
                self.done = True
            if not self.done:
                yield from self.deltas(self._parsed(event))

    @abstractmethod
    def deltas(self, body: dict[str, Any]) -> Iterator[Delta]:
        """The deltas of one event. Sets `done` behind the last."""

    @abstractmethod
    def end(self) -> EndDelta:
        """The last delta. Raises ModelError if the stream ended before the reply was complete, or was refused."""

    def finish(self) -> Iterator[Delta]:
        """What is left, with the last delta. Raises what `end` raises."""
        for kind in self._halves:
            yield kind(_REPLACEMENT)
        yield self.end()

    def broken_off(self) -> BrokenStream:
        """The error of a stream that ended before the reply was complete."""
        return self.errors.broken("the stream ended before the reply was complete", may_retry=True)

    def piece(self, kind: type[D], text: str) -> Iterator[D]:
        """The text as a delta, if it is one that UTF-8 can hold.

        JSON can write half a surrogate pair: the first half waits for its second in the next piece, and one that is
        left alone becomes a replacement character.
        """
        text = self._halves.pop(kind, "") + text
        if _HALF_PAIR.search(text) is not None:
            if half := _FIRST_HALF.search(text):
                self._halves[kind], text = half[0], text[:-1]
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if text:
            yield kind(text)

    def _parsed(self, event: str) -> dict[str, Any]:
        try:
            body = json.loads(event)
        except (ValueError, RecursionError) as error:
            raise self.errors.broken(f"an event that is no JSON: {event}") from error
        if not isinstance(body, dict):
            raise self.errors.broken(f"an event that is no object: {event}")
        if body.get("error"):
            raise self.errors.of_body(body)
        return body
