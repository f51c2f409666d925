"""The reply format: the JSON that a model replies with, read strictly and written the same way.

The rule to know: a reply is one object, ``{"response": {…}}``, whose members are ``send_to``, ``message`` and types of
attachments. What is not exactly that is refused with a text that the model can be shown.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, NoReturn

from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.json_value import check_text
from callboard.runtime.post import Post

RESPONSE, SEND_TO, MESSAGE = "response", "send_to", "message"

NEVER = frozenset({AttachmentType.shared_memory_entry, AttachmentType.text, AttachmentType.function})
"""What a model cannot make by writing it: the runtime's own, and what is retired."""

_TYPES = frozenset(AttachmentType) - NEVER
_FENCE = "```"


class ReplyError(ValueError):
    """The model's fault: its reply is not in the format. The text says what is wrong, and where."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said."""

    message: str
    send_to: str
    """The name it wrote, whether or not there is such a role; empty if it wrote none."""
    attachments: tuple[Attachment, ...]
    """In the order they were written, at most one of a type."""


def parse_reply(
    text: str, *, allowed: frozenset[AttachmentType] | None = None, required: Collection[str] = ()
) -> Reply:
    """What the text says; white space and one json fence round the whole are passed over.

    Values that are no strings become their JSON text, null an empty string. `allowed` are the types of attachments
    that may stand in it, all that a model can make if not given; `required` the members that must not be blank. Raises
    ReplyError.
    """
    members = _members(_decode(text))
    _check_names(members, _TYPES if allowed is None else allowed & _TYPES)
    texts = {name: _text(value, name) for name, value in members.items()}
    if missing := [name for name in required if not texts.get(name, "").strip()]:
        raise ReplyError(f"missing in {RESPONSE!r}: {', '.join(missing)}")
    message, send_to = texts.pop(MESSAGE, ""), texts.pop(SEND_TO, "")
    return Reply(message, send_to, tuple(Attachment.create(name, content) for name, content in texts.items()))


def post_to_text(post: Post) -> str:
    """The reply that says what the post says, as a model would have written it; the inverse of `parse_reply`.

    Attachments stand first, those of one type as one, joined by newlines; those that no model can make are left out.
    Raises ValueError for a recipient that UTF-8 cannot hold.
    """
    return response_text({**attachment_texts(post.attachment_list), SEND_TO: post.send_to, MESSAGE: post.message})


def response_text(members: Mapping[str, str]) -> str:
    """The text of a reply with just these members."""
    text = json.dumps({RESPONSE: dict(members)}, ensure_ascii=False)
    check_text(text, "the reply")
    return text


def attachment_texts(attachments: Iterable[Attachment]) -> dict[str, str]:
    """The contents by type, in the order of their first appearance, without what no model can make."""
    texts: dict[str, list[str]] = {}
    for attachment in attachments:
        if attachment.type not in NEVER:
            content = attachment.content
            texts.setdefault(attachment.type.value, []).extend([content] if isinstance(content, str) else content)
    return {name: "\n".join(contents) for name, contents in texts.items()}


def _decode(text: str) -> object:
    start, end = _extent(text)
    try:
        found, stop = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at").removesuffix(" starting")
        raise ReplyError(f"no valid JSON at {_place(text, error.pos)}: {what}") from error
    except RecursionError:
        raise ReplyError("the JSON is nested too deeply") from None
    rest = stop + _leading_space(text[stop:])
    if rest < end:
        raise ReplyError(f"something stands after the JSON object, at {_place(text, rest)}")
    return found


def _extent(text: str) -> tuple[int, int]:
    """Where the JSON begins and ends, inside the white space and the fence."""
    start, end = _leading_space(text), len(text.rstrip())
    if text.startswith(_FENCE, start):
        line_end = text.find("\n", start)
        if text[start:line_end].rstrip() != f"{_FENCE}json" or not text[line_end:end].endswith(f"\n{_FENCE}"):
            raise ReplyError(f"the fence at {_place(text, start)} is not one of json that closes at the very end")
        start, end = line_end + _leading_space(text[line_end:]), end - len(_FENCE)
    if start >= end:
        raise ReplyError("the reply is empty")
    if text[start] != "{":
        raise ReplyError(f"the reply must be a JSON object and nothing else, but at {_place(text, start)} is no {{")
    return start, end


def _leading_space(text: str) -> int:
    return len(text) - len(text.lstrip())


def _place(text: str, position: int) -> str:
    before = text[:position]
    return f"line {before.count(chr(10)) + 1}, column {position - before.rfind(chr(10))}"


def _members(found: object) -> dict[str, Any]:
    if not isinstance(found, dict) or RESPONSE not in found:
        raise ReplyError(f"the key {RESPONSE!r} is missing")
    if others := [key for key in found if key != RESPONSE]:
        raise ReplyError(f"beside {RESPONSE!r} stands {_listed(others)}; it must be the only key")
    members = found[RESPONSE]
    if not isinstance(members, dict):
        raise ReplyError(f"{RESPONSE!r} must be an object, and is {_kind(members)}")
    return members


def _check_names(members: Mapping[str, Any], allowed: frozenset[AttachmentType]) -> None:
    known = [*(type.value for type in AttachmentType if type in allowed), SEND_TO, MESSAGE]
    if unknown := [name for name in members if name not in known]:
        raise ReplyError(f"unknown in {RESPONSE!r}: {_listed(unknown)}; there are {', '.join(known)}")
    if not isinstance(members.get(SEND_TO, ""), str | None):
        raise ReplyError(f"{SEND_TO!r} must be the name of a role, and is {_kind(members[SEND_TO])}")


def _text(value: object, name: str) -> str:
    try:
        text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
        check_text(text, repr(name))
    except RecursionError:
        raise ReplyError(f"{name!r} is nested too deeply") from None
    except ValueError as error:
        raise ReplyError(str(error)) from None
    return text


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ReplyError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise ReplyError(f"a number has {len(digits)} digits, too many") from None


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ReplyError(f"{digits:.40} is too large a number")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ReplyError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_no_repetition, parse_int=_integer, parse_float=_finite, parse_constant=_no_constant
)
