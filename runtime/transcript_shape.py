"""What a transcript must look like before anything is made of it, and how to say what does not.

The rule to know: `find_fault` looks, and never makes; the first fault is the answer, with its place and
a remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple, NotRequired, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Strict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

# pydantic refuses the TypedDict of typing before Python 3.12.
from typing_extensions import TypedDict

from .attachment import Attachment, attachment_type
from .json_value import freeze
from .markers import KEY, first_misplaced
from .post import Kind, State
from .round import RoundState
from .text import Lifetime

Place: TypeAlias = tuple[str | int, ...]
"""The keys and indices that lead to a value."""


def _checked(check: Callable[[Any], object]) -> AfterValidator:
    """A validator that keeps the value, and takes the ValueError of `check` for its fault."""

    def keep(value: Any) -> Any:
        check(value)
        return value

    return AfterValidator(keep)


def _check_content(content: object) -> object:
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple) and all(isinstance(path, str) for path in content):
        return content
    raise ValueError("content should be text, or a list of texts for artifact_paths")


def _check_attachment(entry: Any) -> None:
    try:
        Attachment.from_dict({key: value for key, value in entry.items() if key != KEY})
    except KeyError as error:
        raise ValueError(f"extra has no key {error}") from None
    except TypeError as error:
        raise ValueError(str(error)) from None


Json = Annotated[Any, _checked(freeze)]
Text = Annotated[str, Strict(), _checked(freeze)]


class SpanShape(TypedDict):
    """The keys of a temporal part: its place in the text as it is written, markers included."""

    start: Annotated[int, Strict()]
    end: Annotated[int, Strict()]
    lifetime: NotRequired[Lifetime]


class AttachmentShape(TypedDict):
    """The keys of an attachment."""

    id: NotRequired[Text | None]
    type: Annotated[Text, _checked(attachment_type)]
    content: Annotated[Any, BeforeValidator(_check_content)]
    extra: NotRequired[Json]
    temporal: NotRequired[list[SpanShape]]


class PostShape(TypedDict):
    """The keys of a post."""

    id: NotRequired[Text]
    message: Text | None
    send_from: Text
    send_to: Text
    attachment_list: list[Annotated[AttachmentShape, _checked(_check_attachment)]] | None
    in_reply_to: NotRequired[Text | None]
    kind: NotRequired[Kind]
    state: NotRequired[State]
    at: NotRequired[Text | None]
    words: NotRequired[Text | None]
    system_message: NotRequired[list[Text] | None]
    extra: NotRequired[Annotated[dict[str, Any], _checked(freeze)] | None]
    temporal: NotRequired[list[SpanShape]]


class RoundShape(TypedDict):
    """The keys of a round."""

    id: NotRequired[Text]
    user_query: Text
    state: RoundState
    post_list: list[PostShape] | None


class TranscriptShape(TypedDict):
    """The keys of a transcript, unknown ones apart."""

    enabled: Annotated[bool, Strict()]
    rounds: list[RoundShape]
    plugins: NotRequired[list[Json] | None]
    roles: NotRequired[list[Text] | None]


KNOWN_KEYS = frozenset({"id", *TranscriptShape.__annotations__})

_SHAPE: TypeAdapter[TranscriptShape] = TypeAdapter(TranscriptShape)

_REMEDIES = {
    "string_type": "put the value in quotes",
    "bool_type": "write true or false",
    "list_type": "write a list here",
    "int_type": "write a whole number",
    "dict_type": "write a mapping of keys and values here",
}


class Fault(NamedTuple):
    """What is wrong, where, and what to do about it."""

    place: Place
    message: str
    remedy: str

    @property
    def key(self) -> str | None:
        """The place as ``rounds[0].post_list[2].message``; None for the whole."""
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.place)
        return "".join(parts).lstrip(".") or None


def find_fault(transcript: object, *, with_ids: bool) -> Fault | None:
    """The first fault of what a file holds, or None; `with_ids` asks for the ids that `restore` keeps."""
    if not isinstance(transcript, Mapping):
        return Fault((), "this is no mapping", "begin the file with `enabled: true` and `rounds:`")
    try:
        _SHAPE.validate_python(transcript)
    except ValidationError as error:
        return _fault(error.errors(include_url=False)[0])
    fault = _fault_of_extra(transcript) or _fault_of_temporal(transcript)
    return fault or (_missing_id(transcript) if with_ids else None)


def _fault(error: ErrorDetails) -> Fault:
    place = tuple(error["loc"])
    if error["type"] == "missing":
        return Fault(place, "this key is missing", f"write {place[-1]}:")
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return Fault(place, message, _REMEDIES.get(error["type"], "correct the value"))


def _fault_of_extra(transcript: Mapping[Any, Any]) -> Fault | None:
    for key in transcript.keys() - KNOWN_KEYS:
        try:
            freeze({key: transcript[key]}, "the file")
        except ValueError as error:
            return Fault((key,), str(error), "put it in quotes, or write a list or a mapping")
    return None


def _fault_of_temporal(transcript: Mapping[str, Any]) -> Fault | None:
    remedy = f"count again from its first marker to behind its last, or leave out {KEY}: then all markers count"
    for place, text, entry in _with_text(transcript):
        wrong = first_misplaced(text, entry[KEY]) if KEY in entry else None
        if wrong is not None:
            return Fault((*place, KEY, wrong), "no part between markers stands at this place of the text", remedy)
    return None


def _with_text(transcript: Mapping[str, Any]) -> Iterator[tuple[Place, Any, Mapping[str, Any]]]:
    posts = (pair for i, one in enumerate(transcript["rounds"]) for pair in _posts_of(one, ("rounds", i)))
    for place, post in posts:
        yield place, post["message"], post
        for number, attachment in enumerate(post["attachment_list"] or ()):
            yield (*place, "attachment_list", number), attachment["content"], attachment


def _missing_id(transcript: Mapping[str, Any]) -> Fault | None:
    remedy = "load the file with from_yaml, which makes new ids"
    for place, entry in _with_ids(transcript):
        if not isinstance(entry.get("id"), str):
            return Fault((*place, "id"), "this key is missing, and restore needs it", remedy)
    return None


def _with_ids(transcript: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    yield (), transcript
    for i, round_ in enumerate(transcript["rounds"]):
        yield ("rounds", i), round_
        yield from _posts_of(round_, ("rounds", i))


def _posts_of(round_: Mapping[str, Any], place: Place) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    yield from (((*place, "post_list", k), post) for k, post in enumerate(round_["post_list"] or ()))
