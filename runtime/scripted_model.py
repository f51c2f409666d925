"""A model that plays replies from a script: for tests of roles, and for programs that must run without a provider.

Each role has a script of its own, played step by step. A step is taken when a stream is entered, and counts as played
even if the stream is left before its end, unless its Reply says `again`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from types import TracebackType
from typing import TypeAlias

import trio

from .chat_model import ChatRequest, Delta, EndDelta, ReasoningDelta, TextDelta, UsageDelta
from .errors import ModelError
from .value import value


@value
class Reply:
    """A reply of the script, with the way in which it comes."""

    text: str
    pieces: int = 4
    """Into how many deltas of near-equal length the text is cut; fewer if it has fewer characters."""
    delay: float = 0.0
    """Seconds between two pieces, the reasoning being one."""
    reasoning: str = ""
    """Comes first, as one ReasoningDelta; none if it is empty."""
    usage: tuple[int, int] | None = None
    """Input and output tokens, which come after the text; None for a model that does not count."""
    reason: str = "stop"
    """The reason of the EndDelta."""
    again: bool = False
    """Played again for the next request of its role if the stream is left before the EndDelta."""


Line: TypeAlias = str | Reply | Exception
Step: TypeAlias = Line | Callable[[ChatRequest], Line]
"""A whole reply, a reply with its details, an error to raise, or a function that makes one of these of the request."""


class ScriptedModel:
    """A ChatModel that plays `scripts`, by the name of the role that asks.

    `with model:` ends with `check_finished`, unless the block raises.
    """

    def __init__(self, scripts: Mapping[str, Sequence[Step]], *, name: str = "scripted") -> None:
        for role, script in scripts.items():
            if isinstance(script, str):
                raise TypeError(f"the script of {role!r} is a string; give a list of steps")
        self._name = name
        self._steps = {role: deque(script) for role, script in scripts.items()}
        self._lengths = {role: len(script) for role, script in scripts.items()}
        self._requests: list[ChatRequest] = []

    @property
    def name(self) -> str:
        """The model's name, for events and logs."""
        return self._name

    @property
    def requests(self) -> tuple[ChatRequest, ...]:
        """All requests up to now, in the order in which they came; those beyond the script too."""
        return tuple(self._requests)

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Delta]]:
        """Plays the next step of the role that asks.

        Cancelled on entering: no step is taken. Raises what the step says, and ModelError beyond the script.
        """
        await trio.lowlevel.checkpoint()
        self._requests.append(request)
        step = self._take(request.role)
        reply = _resolved(step, request)
        playing = _Playing(reply)
        try:
            yield playing
        finally:
            if reply.again and not playing.ended:
                self._steps[request.role].appendleft(step)

    def check_finished(self) -> None:
        """Raises AssertionError, naming roles and steps, if a script has not been played to its end."""
        left = {role: list(steps) for role, steps in self._steps.items() if steps}
        if left:
            parts = [f"{role!r} has {len(steps)} of {self._lengths[role]}: {steps}" for role, steps in left.items()]
            raise AssertionError(f"steps left over: {'; '.join(parts)}")

    def __enter__(self) -> ScriptedModel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.check_finished()

    def __repr__(self) -> str:
        left = ", ".join(f"{role}: {len(steps)}" for role, steps in self._steps.items())
        return f"<ScriptedModel {self._name!r}, steps left: {left or 'none'}>"

    def _take(self, role: str) -> Step:
        steps = self._steps.get(role)
        if steps:
            return steps.popleft()
        length = self._lengths.get(role, 0)
        message = f"{role!r} asks for more than its script has: {length} step{'' if length == 1 else 's'}"
        raise ModelError(message, fault="caller", may_retry=False)


class _Playing:
    """The deltas of one reply, in its time; each is a checkpoint."""

    def __init__(self, reply: Reply) -> None:
        self.ended = False
        self._delay = reply.delay
        self._waiting = deque(_deltas(reply))
        self._pieces = 0

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self

    async def __anext__(self) -> Delta:
        await trio.lowlevel.checkpoint()
        if not self._waiting:
            raise StopAsyncIteration
        if isinstance(self._waiting[0], TextDelta | ReasoningDelta):
            if self._pieces:
                await trio.sleep(self._delay)
            self._pieces += 1
        delta = self._waiting.popleft()
        self.ended = not self._waiting
        return delta


def _resolved(step: Step, request: ChatRequest) -> Reply:
    """The reply of a step. Raises the error, if the step is one."""
    line = step if isinstance(step, str | Reply | Exception) else step(request)
    match line:
        case Exception():
            raise line
        case str():
            return Reply(line)
    return line


def _deltas(reply: Reply) -> list[Delta]:
    deltas: list[Delta] = [ReasoningDelta(reply.reasoning)] if reply.reasoning else []
    deltas += [TextDelta(piece) for piece in _pieces(reply.text, reply.pieces)]
    if reply.usage is not None:
        deltas.append(UsageDelta(*reply.usage))
    return [*deltas, EndDelta(reply.reason)]


def _pieces(text: str, count: int) -> list[str]:
    """The text in at most `count` pieces of at least one character, their lengths differing by at most one."""
    count = max(1, min(count, len(text)))
    cuts = [len(text) * number // count for number in range(count + 1)]
    return [text[start:stop] for start, stop in pairwise(cuts) if start < stop]
