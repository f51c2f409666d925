"""Cassette: a file of model calls, a line of JSON for each, by which they can be played again without the model.

The rule to know: a call is found by the digest of its messages and its schema, both without secrets; so what reads a
cassette is told the same secrets as what wrote it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from .chat_model import ChatRequest, Delta, EndDelta, ImagePart, Part, ReasoningDelta, TextDelta, UsageDelta
from .errors import InvalidFile
from .json_value import thaw
from .value import value

Timed = tuple[float, Delta]
"""Seconds after the delta before, and the delta."""

_HIDDEN = "[secret]"
_LONGEST_ADDRESS = 200
_START = b'{"digest": "'
"""What every line begins with."""


@value
class Recording:
    """One call."""

    digest: str
    model: str
    messages: tuple[dict[str, Any], ...]
    schema: dict[str, Any] | None
    deltas: tuple[Timed, ...]


class Secrets:
    """Texts that no file may hold."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = sorted(texts, key=len, reverse=True)
        if "" in self._texts:
            raise ValueError("a secret is a text that is not empty")

    def hidden(self, text: str) -> str:
        """The text without them."""
        for secret in self._texts:
            text = text.replace(secret, _HIDDEN)
        return text

    def __repr__(self) -> str:
        return f"<Secrets, {len(self._texts)}>"


def recording_of(model: str, request: ChatRequest, deltas: Sequence[Timed], secrets: Secrets) -> Recording:
    """A call as it is kept; with no deltas, what it is looked up by."""
    messages = tuple(
        {
            "role": message.role,
            "content": secrets.hidden(message.content),
            **({"parts": [_part(part, secrets) for part in message.parts]} if message.parts else {}),
        }
        for message in request.messages
    )
    schema = None if request.schema is None else {"name": request.schema.name, "schema": thaw(request.schema.schema)}
    key = json.dumps({"messages": messages, "schema": schema}, sort_keys=True)
    digest = sha256(key.encode()).hexdigest()
    return Recording(digest, model, messages, schema, tuple(_without(secrets, deltas)))


def append(path: Path, recording: Recording) -> None:
    """Adds a line to the file, which is made if need be, in one write. Raises OSError."""
    line = {
        "digest": recording.digest,
        "model": recording.model,
        "messages": recording.messages,
        "schema": recording.schema,
        "deltas": [_written(*timed) for timed in recording.deltas],
    }
    data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        # A program that ended in the middle of a write has left half a line, which must not spoil this one.
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, b"\n" + data if torn else data)
    finally:
        os.close(descriptor)


def read(path: Path) -> list[Recording]:
    """All calls of a file, oldest first; a line that was not written to its end is left out.

    Raises InvalidFile, with the line, for what is no cassette; OSError.
    """
    lines = path.read_bytes().split(b"\n")
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(_recording(json.loads(line)))
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) and line[: len(_START)] in _START:
                continue
            raise InvalidFile("is no recorded call", path=str(path), line=number) from error
    return found


def _recording(line: dict[str, Any]) -> Recording:
    deltas = tuple(_read(delta) for delta in line["deltas"])
    return Recording(line["digest"], line["model"], tuple(line["messages"]), line["schema"], deltas)


def _part(part: Part, secrets: Secrets) -> dict[str, str]:
    """A part with its address, and a digest in place of data."""
    url = secrets.hidden(part.url)
    if len(url) > _LONGEST_ADDRESS:
        url = f"{url.partition(',')[0][:_LONGEST_ADDRESS]},sha256:{sha256(part.url.encode()).hexdigest()}"
    return {"image": url} if isinstance(part, ImagePart) else {"file": part.name, "url": url}


def _without(secrets: Secrets, deltas: Sequence[Timed]) -> Iterable[Timed]:
    """The deltas, those of a run of text as one where a secret stands in it: it may be cut over several."""
    run: list[tuple[float, TextDelta | ReasoningDelta]] = []
    for after, delta in deltas:
        if run and type(delta) is not type(run[0][1]):
            yield from _run(run, secrets)
            run = []
        if isinstance(delta, TextDelta | ReasoningDelta):
            run.append((after, delta))
        else:
            yield after, delta
    yield from _run(run, secrets)


def _run(run: Sequence[tuple[float, TextDelta | ReasoningDelta]], secrets: Secrets) -> Iterable[Timed]:
    whole = "".join(delta.text for _, delta in run)
    hidden = secrets.hidden(whole)
    if hidden == whole:
        return run
    return [(sum(after for after, _ in run), type(run[0][1])(hidden))]


def _written(after: float, delta: Delta) -> dict[str, Any]:
    timing = {"after": round(after, 4)} if after else {}
    match delta:
        case TextDelta(text):
            return {"text": text, **timing}
        case ReasoningDelta(text):
            return {"reasoning": text, **timing}
        case UsageDelta(read, written, cached):
            return {"usage": [read, written, cached], **timing}
        case EndDelta(reason):
            return {"end": reason, **timing}
    raise TypeError(f"a {type(delta).__name__} is no part of a reply")


def _read(delta: dict[str, Any]) -> Timed:
    after = float(delta.get("after", 0.0))
    match delta:
        case {"text": str(text)}:
            return after, TextDelta(text)
        case {"reasoning": str(text)}:
            return after, ReasoningDelta(text)
        case {"usage": [int(read), int(written), int(cached)]}:
            return after, UsageDelta(read, written, cached)
        case {"end": str(reason)}:
            return after, EndDelta(reason)
    raise ValueError("no delta")
