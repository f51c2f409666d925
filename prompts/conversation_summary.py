"""ConversationSummary: what a model has to say of rounds, and how it is found in its reply.

The rule to know: a reply that is no such object is refused whole; half a summary would lose what the other half held.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

S = TypeVar("S", bound="ConversationSummary")
NotBlank = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_SHOWN = 200
_MOST_STRAYS = 50
"""Of braces that begin no object: each costs a look at the rest of the reply."""


class InvalidSummary(ValueError):
    """The model's fault: its reply holds no summary. The text says what is wrong, and where."""


class ConversationSummary(BaseModel):
    """What was said, in short."""

    model_config = ConfigDict(frozen=True)

    summary: NotBlank = Field(alias="ConversationSummary")

    def told(self) -> str:
        """The text that stands for the rounds, in a prompt and as what the next summary begins with."""
        return self.summary


class Variable(BaseModel):
    """Something that code made and later code may use."""

    model_config = ConfigDict(frozen=True)

    name: NotBlank
    type: str
    description: str


class CodeSummary(ConversationSummary):
    """What was said in short, and what the code has left."""

    variables: tuple[Variable, ...] = Field(alias="Variables")

    def told(self) -> str:
        """The summary, then a line for each variable."""
        lines = [f"- {one.name} ({one.type}): {one.description}" for one in self.variables]
        return "\n".join([self.summary, "Variables:", *lines] if lines else [self.summary])


def read_summary(text: str, kind: type[S]) -> S:
    """The last JSON object in a reply that is such a summary, whatever stands round it. Raises InvalidSummary."""
    problem = f"there is no JSON object in the reply: {text[:_SHOWN]!r}"
    for found in reversed(list(_objects(text))):
        try:
            return kind.model_validate(found)
        except ValidationError as error:
            problem = _described(error)
    raise InvalidSummary(problem)


def _objects(text: str) -> Iterator[dict[str, object]]:
    """Every JSON object that does not stand in another."""
    decoder = json.JSONDecoder(strict=False)
    start, strays = text.find("{"), 0
    while start >= 0 and strays < _MOST_STRAYS:
        try:
            found, end = decoder.raw_decode(text, start)
            yield found
        except (ValueError, RecursionError):
            end = start + 1
            strays += 1
        start = text.find("{", end)


def _described(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'the summary'}: {one['msg']}"[:_SHOWN] for one in errors[:5])
