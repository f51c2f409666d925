"""The files of lessons: their fields as TaskWeaver has them, read and written.

    # callboard: source 1f4d…, text 93b0…
    exp_id: greet
    experience_text: "- Answer politely."
    raw_experience_path: null
    embedding_model: hashed-2048
    embedding: [0.01, -0.02]

The rule to know: TaskWeaver takes no sixth field, so the digests of what a lesson and its vector were made of stand in
a comment. A file without it is taken at its word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from callboard.runtime.embedder import Matrix
from callboard.runtime.errors import InvalidFile
from callboard.runtime.json_value import check_text
from callboard.runtime.transcript_file import dump, line_of, parse

NO_VECTOR: Matrix = np.empty(0, np.float32)

_FIELDS = ("exp_id", "experience_text", "raw_experience_path", "embedding_model", "embedding")
_ORIGIN = re.compile(r"# callboard: source (?P<source>[0-9a-f]{32}|-), text (?P<text>[0-9a-f]{32}|-)\r?\n")
_VECTOR = "\nembedding:"


@dataclass(frozen=True, slots=True)
class Record:
    """What an `exp_{id}.yaml` holds."""

    id: str
    text: str
    raw_path: str | None = None
    embedder: str | None = None
    """The id of the embedder that made the vector."""
    vector: Matrix = field(default_factory=lambda: NO_VECTOR, compare=False)
    """One row; empty if there is none."""
    source: str = ""
    """The digest of the file that the text was made of; empty if nobody noted it."""
    embedded: str = ""
    """The digest of the text that the vector was made of; empty if nobody noted it."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields that nobody here knows, written back as they were."""

    def fits(self, embedder: str, dimension: int) -> bool:
        """Whether the vector is of this embedder, of that length, and of this text."""
        of_text = self.embedded in ("", digest(self.text.encode()))
        return of_text and self.embedder == embedder and self.vector.size == dimension


def digest(data: bytes) -> str:
    """What tells one content from another, wherever its lines were ended."""
    return sha256(data.replace(b"\r\n", b"\n")).hexdigest()[:32]


def read_record(data: bytes, id: str) -> Record:
    """The lesson that the bytes of an `exp_{id}.yaml` hold. Raises InvalidFile, with line and key."""
    text = decode(data)
    fields, vector = _read_fast(text) or _read_slowly(text)
    said = _check_fields(fields, text, id)
    model = fields.get("embedding_model")
    origin = _ORIGIN.match(text)
    source, embedded = (mark if mark != "-" else "" for mark in origin.group("source", "text")) if origin else ("", "")
    raw_path = fields.get("raw_experience_path")
    return Record(
        id,
        said,
        None if raw_path is None else str(raw_path),
        None if model is None else str(model),
        vector,
        source,
        embedded,
        {key: value for key, value in fields.items() if key not in _FIELDS},
    )


def read_text_of(data: bytes, id: str) -> str:
    """The lesson that the bytes of a `handcrafted_exp_{id}.yaml` hold. Raises InvalidFile, with line and key."""
    text = decode(data)
    return _check_fields(_mapping(parse(text)), text, id)


def write_record(record: Record) -> bytes:
    """The bytes of the file."""
    said = {
        "exp_id": record.id,
        "experience_text": record.text,
        "raw_experience_path": record.raw_path,
        "embedding_model": record.embedder,
        **record.extra,
    }
    origin = f"# callboard: source {record.source or '-'}, text {record.embedded or '-'}\n"
    return origin.encode() + dump(said) + f"embedding: [{_numbers(record.vector)}]\n".encode()


def write_handcrafted(id: str, text: str) -> bytes:
    """The bytes of the file of a lesson that a person wrote."""
    return dump({"exp_id": id, "experience_text": text})


def decode(data: bytes) -> str:
    """The text of a file, without a byte order mark. Raises InvalidFile, with the line, for what is no UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidFile("this is no UTF-8", line=line, remedy="save the file as UTF-8") from error


def _read_fast(text: str) -> tuple[dict[str, Any], Matrix] | None:
    """The fields by YAML, the numbers at the end as JSON, eight times faster; None if the file is not so plain."""
    head, found, tail = text.rpartition(_VECTOR)
    tail = tail.strip()
    if tail.startswith("- "):
        tail = f"[{tail[2:]}]".replace("\n- ", ",")
    if not found or not tail.startswith("["):
        return None
    try:
        fields = _mapping(parse(head))
        return None if "embedding" in fields else (fields, _vector(json.loads(tail)))
    except (ValueError, RecursionError, InvalidFile):  # read slowly, it is read or says on which line it cannot be
        return None


def _read_slowly(text: str) -> tuple[dict[str, Any], Matrix]:
    fields = _mapping(parse(text))
    try:
        return fields, _vector(fields.get("embedding") or [])
    except ValueError as error:
        remedy = "remove the key, and it is made anew"
        raise InvalidFile(str(error), line=line_of(text, ("embedding",)), key="embedding", remedy=remedy) from error


def _vector(numbers: object) -> Matrix:
    """Of length 1, if it has any; raises ValueError for what is no list of numbers."""
    if not isinstance(numbers, list) or not set(map(type, numbers)) <= {int, float}:
        raise ValueError("this is no list of numbers")
    long = np.array(numbers, np.float64)
    length = float(np.sqrt(long @ long))
    if not np.isfinite(length):
        raise ValueError("the numbers are too large, or none")
    return (long / length if length else long).astype(np.float32)


def _numbers(vector: Matrix) -> str:
    """As YAML reads them back: without a point, `1e-05` would be text."""
    shortest = vector.astype("U24").tolist()
    return ", ".join(
        number.replace("e", ".0e") if "e" in number and "." not in number else number for number in shortest
    )


def _mapping(data: object) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise InvalidFile("this is no mapping of fields", line=1, remedy="write exp_id and experience_text")
    return data


def _check_fields(fields: Mapping[str, Any], text: str, id: str) -> str:
    """The lesson's text; raises InvalidFile if it is none, or if the id is another than the file's name says."""
    said = fields.get("exp_id")
    # A date or a number that reads as the id does is the id: people do not quote them.
    if said is None or isinstance(said, bool | float | list | dict) or str(said) != id:
        message = "the id is missing" if said is None else f"the id is {said!r}, and the file is named for {id!r}"
        remedy = f'write exp_id: "{id}", or rename the file'
        raise InvalidFile(message, line=line_of(text, ("exp_id",)), key="exp_id", remedy=remedy)
    lesson = fields.get("experience_text")
    try:
        check_text(lesson, "experience_text")
        if not str(lesson).strip():
            raise ValueError("the lesson is empty")
    except (TypeError, ValueError) as error:
        line = line_of(text, ("experience_text",))
        remedy = "write the lesson as text, behind | if it has several lines"
        raise InvalidFile(str(error), line=line, key="experience_text", remedy=remedy) from error
    return str(lesson)
