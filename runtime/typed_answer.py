"""TypedAnswer: an answer that has to be a value of a type: what the root is told of that, and what its answer says.

The rule to know: the answer is the message of the root's reply: JSON, which may stand in a fence, or the bare text
where that is a value of the type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from .errors import InvalidAnswer, describe
from .post import Post
from .user_message import UserMessage

T = TypeVar("T")
ASKED_AGAIN = 2
"""How often a question is put again whose answer was none."""
SCHEMA = "answer_schema"
"""Under which name the JSON schema stands in the `extra` of the question's post."""
_FENCED = re.compile(r"^[ \t]*```(?:json)?[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL | re.IGNORECASE)
_ERRORS = 5
_SHOWN = 200


class TypedAnswer(Generic[T]):
    """One question's. Raises TypeError for a type of which pydantic can make no JSON schema."""

    def __init__(self, returns: type[T]) -> None:
        try:
            self._adapter: TypeAdapter[T] = TypeAdapter(returns)
            self._schema: Mapping[str, Any] = self._adapter.json_schema()
        except PydanticUserError as error:
            raise TypeError(f"no answer can be told to be a {returns!r}: {error.message}") from error
        self._asked_again = 0

    def ask(self, message: str | UserMessage) -> UserMessage:
        """The question, with what its answer has to be: in words for a model, and as a schema for any role."""
        words = UserMessage(message) if isinstance(message, str) else message
        told = (*words.system_message, self._told())
        return replace(words, system_message=told, extra={**words.extra, SCHEMA: self._schema})

    def object(self, answer: Post) -> UserMessage | None:
        """What to say to a root whose answer is none, so that it gives another; None if it is one, or the last."""
        try:
            self.read(answer)
        except InvalidAnswer as invalid:
            if self._asked_again < ASKED_AGAIN:
                self._asked_again += 1
                return self.ask(f"This was no valid answer: {invalid.problem}. Give the whole answer again.")
        except Exception:
            return None  # the type's own validation is broken, which whoever asked learns from `read`
        return None

    def read(self, answer: Post) -> T:
        """The value. Raises InvalidAnswer, and what the validation of the type raises beside ValueError."""
        problem = ""
        for text in _candidates(answer.message):
            try:
                return self._adapter.validate_json(text)
            except ValidationError as error:
                problem = problem or _describe(error)
        try:
            return self._adapter.validate_python(answer.message)
        except ValidationError:
            raise InvalidAnswer(answer.send_from, answer.id, answer.message, problem) from None

    def _told(self) -> str:
        schema = json.dumps(self._schema, ensure_ascii=False)
        return f"The message of your final answer must be JSON that fits this JSON schema, and nothing else: {schema}"


def _candidates(text: str) -> Iterator[str]:
    """Where the JSON may stand: in the last fence, in an earlier one, or nowhere but in the whole text."""
    yield from reversed(_FENCED.findall(text))
    yield text


def _describe(error: ValidationError) -> str:
    """What is wrong, and where, for a model to read."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    said = [f"{'.'.join(map(str, one['loc'])) or 'the answer'}: {one['msg']}"[:_SHOWN] for one in errors[:_ERRORS]]
    left_out = [f"and {len(errors) - _ERRORS} more"] if len(errors) > _ERRORS else []
    return describe(ValueError("; ".join([*said, *left_out]))).removeprefix("ValueError: ")
