"""InvalidSettings: all that is wrong with a project's settings, told as one error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from callboard.prompts.template import near
from callboard.runtime.errors import InvalidFile

from .settings_file import Place, SettingsFile

_REMEDIES = {
    "string_type": "write a text, in quotes if it looks like something else",
    "string_too_short": "write a text",
    "bool_type": "write true or false",
    "int_type": "write a whole number",
    "float_type": "write a number",
    "dict_type": "write a mapping of keys and values here",
    "model_type": "write a mapping of keys and values here",
    "model_attributes_type": "write a mapping of keys and values here",
    "tuple_type": "write a list here",
    "is_instance_of": "give it in Python",
    "string_pattern_mismatch": "write the name of the variable, in capitals, and never the key itself",
}

HIDDEN = "key"
"""The key of a provider itself, which the file is not asked for."""


class InvalidSettings(InvalidFile):
    """The file's fault: `faults` are all that were found, and the error speaks of the first."""

    def __init__(self, faults: Sequence[InvalidFile]) -> None:
        first = faults[0]
        super().__init__(first.message, path=first.path, line=first.line, key=first.key, remedy=first.remedy)
        self.faults = tuple(faults)

    def __str__(self) -> str:
        more = len(self.faults) - 1
        return super().__str__() + (f" (and {more} more; `callboard check` lists them)" if more else "")

    def __reduce__(self) -> tuple[object, ...]:
        return InvalidSettings, (self.faults,)


def faults_of(error: ValidationError, file: SettingsFile, model: type[BaseModel]) -> Iterator[InvalidFile]:
    """What pydantic found, each where it stands in the file; no value is shown."""
    for one in error.errors(include_url=False, include_input=False, include_context=False):
        place = tuple(part for part in one["loc"] if part != "[key]")
        yield file.fault(place, *_told(one, place, model))


def _told(error: ErrorDetails, place: Place, model: type[BaseModel]) -> tuple[str, str]:
    """The message and the remedy."""
    match error["type"]:
        case "extra_forbidden":
            return "there is no such key", f"write {_meant(str(place[-1]), _keys_at(model, place[:-1]))}"
        case "missing":
            return "this key is missing", f"write {place[-1]}:"
    message = error["msg"].removeprefix("Value error, ").replace("Input should", "it should")
    if error["type"] == "string_pattern_mismatch":
        message = "this is no name of an environment variable"
    return message, _REMEDIES.get(error["type"], "correct the value")


def _meant(name: str, keys: tuple[str, ...]) -> str:
    """The key that could be meant, then all others."""
    known = [key for key in keys if key != HIDDEN]
    return near("key_env" if HIDDEN in name.lower() and "key_env" in known else name, known)


def _keys_at(model: type[BaseModel], place: Place) -> tuple[str, ...]:
    """The keys that the mapping at that place may have."""
    kind: Any = model
    for part in place:
        if _is_model(kind):
            field = kind.model_fields.get(part)
            kind = _bare(field.annotation) if field else None
        else:
            values = [one for one in get_args(kind) if one is not Ellipsis]
            kind = _bare(values[-1]) if values else None
    return tuple(kind.model_fields) if _is_model(kind) else ()


def _bare(kind: Any) -> Any:
    """A type without what it is annotated with, and without None."""
    while get_origin(kind) in (Annotated, Union, UnionType):
        kind = next(one for one in get_args(kind) if one is not NoneType)
    return kind


def _is_model(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
