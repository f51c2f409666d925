"""The reply format: the JSON that a model replies with, held to what its role needs, and written the same way.

The rule to know: a reply is one object, ``{"response": {…}}``, whose members are ``send_to``, ``message`` and types of
attachments. What a role can do without may be missing; what it needs and is not there is said so that the model can
mend it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.chat_model import ReplySchema
from callboard.runtime.json_value import FrozenMapping, check_text
from callboard.runtime.post import Post

from .reply_members import RESPONSE, Unheard
from .reply_reader import ReplyReader, ReplyReport

SEND_TO, MESSAGE = "send_to", "message"

NEVER = frozenset({AttachmentType.shared_memory_entry, AttachmentType.text, AttachmentType.function})
"""What a model cannot make by writing it: the runtime's own, and what is retired."""

_TYPES = tuple(type.value for type in AttachmentType if type not in NEVER)
_SHOWN = 300


class ReplyError(ValueError):
    """The model's fault: its reply is not in the format. `problem` says what is wrong and where, `said` is all of it.

    `asked` is how often it was asked before it was given up: once, and again after each malformed reply.
    """

    def __init__(self, problem: str, said: str = "", asked: int = 1) -> None:
        super().__init__(problem, said, asked)
        self.problem = problem
        self.said = said
        self.asked = asked

    def __str__(self) -> str:
        left_out = len(self.said) - _SHOWN
        said = self.said if left_out <= 0 else f"{self.said[:_SHOWN]}… ({left_out} characters more)"
        often = f", after it was asked {self.asked} times" if self.asked > 1 else ""
        return f"{self.problem}{often}" + (f"; the model said: {said}" if said else "")


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


NotBlank = Annotated[str, AfterValidator(_not_blank)]
"""A text that says something."""


class MessageReply(BaseModel):
    """A reply with a message, and with whatever attachments a model can make."""

    model_config = ConfigDict(extra="allow")

    message: NotBlank


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said."""

    message: str
    send_to: str
    """The name it wrote; empty if it wrote none."""
    attachments: tuple[Attachment, ...]
    """In the order they were written, at most one of a type."""
    report: ReplyReport = field(default=ReplyReport(), compare=False)
    """How it was read: what it said beside the reply, and what was accepted of it."""


def parse_reply(text: str, model: type[BaseModel] = MessageReply, recipients: Sequence[str] = ()) -> Reply:
    """What the whole text says. Raises ReplyError for what is no whole reply, or none that `model` takes."""
    reader = ReplyReader(members_of(model), Unheard())
    reader.feed(text)
    report = reader.close()
    if not report.complete:
        raise ReplyError(report.problem, text)
    try:
        return validated(reader.values, report, model, recipients)
    except ReplyError as error:
        raise ReplyError(error.problem, text) from None


def validated(
    values: Mapping[str, str], report: ReplyReport, model: type[BaseModel], recipients: Sequence[str] = ()
) -> Reply:
    """The reply that has these members. Raises ReplyError, with all that is wrong, for one that `model` refuses.

    `recipients` are the names that `send_to` may be, any if there are none.
    """
    problems = list(_problems(values, model))
    to = values.get(SEND_TO, "")
    if recipients and to.strip() and to not in recipients:
        problems.append(f"{SEND_TO} is {to!r:.80}, and must be one of {', '.join(recipients)}")
    if report.unknown and (problems or model.model_config.get("extra") == "forbid"):
        problems.append(f"there is no member {', '.join(map(repr, report.unknown))}")
    if problems:
        raise ReplyError("; ".join(problems))
    attachments = (Attachment.create(name, text) for name, text in values.items() if name not in (SEND_TO, MESSAGE))
    return Reply(values.get(MESSAGE, ""), to, tuple(attachments), report)


def _problems(values: Mapping[str, str], model: type[BaseModel]) -> Iterable[str]:
    try:
        model.model_validate(values)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        if missing := [str(one["loc"][0]) for one in errors if one["type"] == "missing"]:
            yield f"missing in {RESPONSE!r}: {', '.join(missing)}"
        for one in errors:
            if one["type"] != "missing":
                where = ".".join(map(str, one["loc"])) or RESPONSE
                yield f"{where}: {one['msg'].removeprefix('Value error, ')}"


@cache
def members_of(model: type[BaseModel]) -> frozenset[str]:
    """The members that a reply of the model may have. Raises TypeError for a field that is no member of replies."""
    possible = {*_TYPES, SEND_TO, MESSAGE}
    if wrong := sorted(model.model_fields.keys() - possible):
        raise TypeError(f"{model.__name__} has fields that no reply has: {', '.join(wrong)}")
    return frozenset(possible if model.model_config.get("extra") == "allow" else model.model_fields)


@cache
def reply_schema(model: type[BaseModel], recipients: tuple[str, ...] = ()) -> ReplySchema:
    """The schema of the model's replies: each member is asked for, and no other. The same for the same arguments."""
    schema = model.model_json_schema()
    properties = {name: _plain(member) for name, member in schema.pop("properties", {}).items()}
    if recipients and SEND_TO in properties:
        properties[SEND_TO]["enum"] = list(recipients)
    response = _closed(properties)
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return ReplySchema("reply", FrozenMapping({**_closed({RESPONSE: response}), **definitions}))


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _plain(member: dict[str, Any]) -> dict[str, Any]:
    """Without what servers refuse or models need not read."""
    return {key: value for key, value in member.items() if key not in ("title", "default")}


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
