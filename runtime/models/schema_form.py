"""How the schema of a reply is put to a server, and what is tried where the server does not take it.

The rule to know: a form that was refused is given up for good once a later one was taken, since a server that does not
know a member of a request today will not know it in the next one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from ..chat_model import ReplySchema
from ..errors import ModelError
from ..json_value import thaw
from ..value import value

SchemaForm: TypeAlias = Literal["json_schema", "tool", "json_object", "nothing"]
"""A schema that the server enforces, a call of a tool that it enforces, any JSON, or what the messages say alone."""


@value
class Form:
    """One way to put it."""

    members: Callable[[ReplySchema], dict[str, Any]]
    """What the body of the request gets for it."""
    named: re.Pattern[str]
    """What a refusal of it speaks of."""
    instead: SchemaForm
    """What is tried next."""


class SchemaForms:
    """The form that one model's server takes, found out on the way. `forms` has all but `nothing`, which is no form."""

    def __init__(self, first: SchemaForm, forms: Mapping[SchemaForm, Form]) -> None:
        if first not in (*forms, "nothing"):
            raise ValueError(f"schema_as is one of {', '.join(forms)} and nothing, not {first!r}")
        self.in_use: SchemaForm = first
        """What is tried first, the next time."""
        self._forms = forms

    def members(self, form: SchemaForm, schema: ReplySchema | None) -> dict[str, Any]:
        """What the body of a request gets."""
        return {} if schema is None or form == "nothing" else self._forms[form].members(schema)

    def after(self, form: SchemaForm, error: ModelError) -> SchemaForm | None:
        """What to try after this error; None if it is no refusal of the form."""
        known = self._forms.get(form)
        refused = type(error) is ModelError and error.fault == "caller" and not error.may_retry
        return known.instead if known is not None and refused and known.named.search(error.message) else None


def allows_strict(schema: object) -> bool:
    """Whether a provider can be asked to hold to the schema strictly.

    Each object must name all its properties as required and allow no others, and may not be put together otherwise.
    """
    match schema:
        case Mapping():
            if not _STRICTLY_UNKNOWN.isdisjoint(schema):
                return False
            properties = schema.get("properties", {})
            if schema.get("type") == "object" or properties:
                named = isinstance(properties, Mapping) and set(properties) == set(schema.get("required") or ())
                if not named or schema.get("additionalProperties") is not False:
                    return False
            return all(map(allows_strict, schema.values()))
        case list() | tuple():
            return all(map(allows_strict, schema))
    return True


_STRICTLY_UNKNOWN = {"allOf", "oneOf", "not", "if", "patternProperties", "dependentRequired", "dependentSchemas"}


def speaking_of(pattern: str) -> re.Pattern[str]:
    """A pattern for the words of a refusal."""
    return re.compile(pattern, re.IGNORECASE)


_FORMAT = speaking_of("response.?format|json.?(schema|object|mode)|structured|grammar|guided")
_TOOL = speaking_of(r"\btools?\b|tool_choice|function")


def _json_schema(schema: ReplySchema) -> dict[str, Any]:
    strict = {"strict": True} if allows_strict(schema.schema) else {}
    form = {"name": schema.name, "schema": thaw(schema.schema), **strict}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def _json_object(schema: ReplySchema) -> dict[str, Any]:
    return {"response_format": {"type": "json_object"}}


def _tool(schema: ReplySchema) -> dict[str, Any]:
    strict = {"strict": True} if allows_strict(schema.schema) else {}
    function = {"name": schema.name, "parameters": thaw(schema.schema), **strict}
    return {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": schema.name}},
    }


CHAT_FORMS: Mapping[SchemaForm, Form] = {
    "json_schema": Form(_json_schema, _FORMAT, "json_object"),
    "tool": Form(_tool, _TOOL, "json_object"),
    "json_object": Form(_json_object, _FORMAT, "nothing"),
}
"""Those of the chat completions of OpenAI."""
