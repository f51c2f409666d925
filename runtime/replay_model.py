"""A model that plays calls from a cassette, for tests and programs that must run without a provider.

The rule to know: only what was asked word for word is answered. Several calls with the same messages are played in the
order in which they were recorded, the last of them for ever.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from .cassette import Recording, Secrets, read, recording_of
from .chat_model import ChatRequest, Delta, EndDelta
from .errors import BrokenStream, ModelError

_SHOWN = 40


class ReplayModel:
    """A ChatModel that plays the file at `path`; `secrets` are those that it was recorded with.

    Raises InvalidFile for what is no cassette, OSError.
    """

    def __init__(self, path: str | os.PathLike[str], *, secrets: Iterable[str] = ()) -> None:
        self._path = Path(path)
        self._secrets = Secrets(secrets)
        self._all = read(self._path)
        self._waiting: dict[str, deque[Recording]] = {}
        for recording in self._all:
            self._waiting.setdefault(recording.digest, deque()).append(recording)

    @property
    def name(self) -> str:
        """The name of the model that was recorded first."""
        return self._all[0].model if self._all else "replay"

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Delta]]:
        """The deltas of the recorded reply, in their time if it was kept.

        Raises ModelError for a request that was not recorded, with what is different in the nearest that was; and
        BrokenStream behind what there is of a reply that was not read to its end.
        """
        await trio.lowlevel.checkpoint()
        asked = recording_of(self.name, request, (), self._secrets)
        found = self._waiting.get(asked.digest)
        if found is None:
            raise ModelError(f"{self._path}: {_missing(asked, self._all)}", fault="caller", may_retry=False)
        yield _Playing(found.popleft() if len(found) > 1 else found[0])

    def __repr__(self) -> str:
        return f"<ReplayModel {self._path}, {len(self._all)} calls>"


class _Playing:
    """The deltas of one recording, in their time; each is a checkpoint."""

    def __init__(self, recording: Recording) -> None:
        self._waiting = deque(recording.deltas)
        self._ended = False

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self

    async def __anext__(self) -> Delta:
        await trio.lowlevel.checkpoint()
        if self._ended:
            raise StopAsyncIteration
        if not self._waiting:
            said = "the reply was not read any further when it was recorded"
            raise BrokenStream(said, fault="caller", may_retry=False)
        after, delta = self._waiting.popleft()
        if after:
            await trio.sleep(after)
        self._ended = isinstance(delta, EndDelta)
        return delta


def _missing(asked: Recording, recordings: list[Recording]) -> str:
    """Why nothing was found."""
    if not recordings:
        return "no call is recorded"
    nearest = max(recordings, key=lambda one: _likeness(asked, one))
    return f"none of {len(recordings)} recorded calls is this one; the nearest differs in {_difference(asked, nearest)}"


def _likeness(asked: Recording, other: Recording) -> tuple[int, int, int]:
    """How many messages are the same, how much of the next is, and how near they are in number: more is nearer."""
    same = _same(asked.messages, other.messages)
    further = 0
    if same < min(len(asked.messages), len(other.messages)):
        further = _same(asked.messages[same]["content"], other.messages[same]["content"])
    return same, further, -abs(len(asked.messages) - len(other.messages))


def _difference(asked: Recording, other: Recording) -> str:
    """What first is different in two calls that are not the same."""
    ours, theirs = asked.messages, other.messages
    same = _same(ours, theirs)
    if same == len(ours) == len(theirs):
        return f"the schema of the reply: recorded {_short(other.schema)}, asked {_short(asked.schema)}"
    if same == min(len(ours), len(theirs)):
        return f"the number of messages: recorded {len(theirs)}, asked {len(ours)}, the first {same} being the same"
    mine, its = ours[same], theirs[same]
    place = f"message {same + 1} of {len(ours)}"
    if mine["role"] != its["role"]:
        return f"{place}, the role: recorded {its['role']}, asked {mine['role']}"
    at = _same(mine["content"], its["content"])
    if mine["content"] == its["content"]:
        return f"{place} ({mine['role']}), what is shown with it"
    start = max(0, at - _SHOWN // 2)
    recorded, now = its["content"][start : at + _SHOWN], mine["content"][start : at + _SHOWN]
    return f"{place} ({mine['role']}), from character {at} on: recorded {recorded!r}, asked {now!r}"


def _same(one: Any, other: Any) -> int:
    """How many items two sequences have in common at their beginning."""
    for at, (mine, its) in enumerate(zip(one, other, strict=False)):
        if mine != its:
            return at
    return min(len(one), len(other))


def _short(schema: dict[str, Any] | None) -> str:
    text = "none" if schema is None else str(schema)
    return text if len(text) <= 2 * _SHOWN else text[: 2 * _SHOWN] + "…"
