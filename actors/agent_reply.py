"""Agent reply: what the model of an agent may say: calls of tools, several at once, or its answer.

The rule to know: what the model wrote as calls is read here, once, into values that can be called, shown and recorded;
what cannot is the reply's fault, and the model is told of it. Whether a tool takes the arguments is the tool's to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, model_validator

from callboard.runtime.value import value

MOST_CALLS = 16
"""How many tools one reply may call."""

_VALUES = ("default", "enum", "const", "examples")
"""Members of a schema that are no schemas."""

_SHOWN = 80
"""Characters of a name that was made up."""


@value
class ToolCall:
    """One call that the model asks for."""

    tool: str
    arguments: Mapping[str, Any]


class AgentReply(BaseModel):
    """All that an agent is asked for; it can go on without a thought."""

    tools: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """The schema of the arguments by the name of the tool, plain."""

    thought: str = ""
    reply_type: Literal["call", "respond"]
    reply_content: str = ""
    message: str = ""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if self.reply_type == "respond":
            if not self.message.strip():
                raise ValueError("message must not be blank when reply_type is respond")
            return self
        calls = calls_in(self.reply_content)
        if not calls:
            raise ValueError("reply_content must name a tool when reply_type is call")
        if len(calls) > MOST_CALLS:
            raise ValueError(f"reply_content has {len(calls)} calls, and may have {MOST_CALLS}")
        for call in calls:
            if call.tool not in self.tools:
                known = ", ".join(self.tools) or "none"
                raise ValueError(f"there is no tool {call.tool[:_SHOWN]!r}; there are: {known}")
        return self

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """As of any model; each call may be one of a tool there is, with what that takes."""
        schema = super().model_json_schema(*args, **options)
        calls = {"anyOf": [_call_schema(name, arguments) for name, arguments in cls.tools.items()]}
        schema["properties"]["reply_content"] = {"type": "array", "items": calls if cls.tools else {}}
        return schema


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without references and titles, so that it can stand in another and is short to read."""
    plain: dict[str, Any] = _inlined({key: member for key, member in schema.items() if key != "$defs"}, schema)
    return plain


def reply_model_for(tools: Iterable[tuple[str, Mapping[str, Any]]]) -> type[AgentReply]:
    """What an agent with these tools is held to, by name and plain schema; the same for the same ones."""
    return _made(tuple((name, json.dumps(schema)) for name, schema in tools))


@lru_cache(maxsize=256)
def _made(tools: tuple[tuple[str, str], ...]) -> type[AgentReply]:
    schemas = {name: json.loads(schema) for name, schema in tools}

    class Made(AgentReply):
        """The reply of an agent with these tools."""

        tools: ClassVar[Mapping[str, Mapping[str, Any]]] = schemas

    return Made


def calls_in(text: str) -> tuple[ToolCall, ...]:
    """The calls that a reply asks for; one may stand without a list. Raises ValueError, saying what is wrong."""
    if not text.strip():
        return ()
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:  # so too for half a surrogate pair, which no text can hold
        raise ValueError(f"reply_content is no JSON: {error}") from None
    return tuple(map(_read, found if isinstance(found, list) else [found]))


def _read(call: Any) -> ToolCall:
    match call:
        case {"tool": str(tool), "arguments": dict(arguments)}:
            return ToolCall(tool, arguments)
        case {"tool": str(tool), **rest} if "arguments" not in rest:
            return ToolCall(tool, {})
    raise ValueError('each call in reply_content is an object with "tool", a name, and "arguments", an object')


def _call_schema(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool": {"type": "string", "enum": [name]}, "arguments": arguments},
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }


def _inlined(schema: Any, root: Mapping[str, Any], within: tuple[str, ...] = ()) -> Any:
    """What holds itself may be anything there."""
    match schema:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            return {} if name in within else _inlined(root.get("$defs", {}).get(name, {}), root, (*within, name))
        case Mapping():
            kept = (key for key, member in schema.items() if key != "title" or not isinstance(member, str))
            return {key: schema[key] if key in _VALUES else _inlined(schema[key], root, within) for key in kept}
        case list():
            return [_inlined(member, root, within) for member in schema]
    return schema
