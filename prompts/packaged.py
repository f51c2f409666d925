"""Packaged: the templates that come with callboard, as one object that renders them by name."""

from __future__ import annotations

import re
from typing import Protocol

from callboard.runtime.json_value import JsonValue

from .library import fill, fill_json, template

_SLOT = re.compile(r"\{\{(\w+)\}\}")
_IF = re.compile(r"\{\{if (\w+)\}\}(.*?)\{\{endif\}\}", re.DOTALL)


class Templates(Protocol):
    """Renders templates by name."""

    def render(self, name: str, /, **values: JsonValue) -> str:
        """The text of a template with the values in it; those that it has no slot for are passed over."""


class _Packaged:
    def render(self, name: str, /, **values: JsonValue) -> str:
        text = template(name)
        slots = set(_SLOT.findall(text))
        if text.startswith("```json"):
            return fill_json(name, **{slot: value for slot, value in values.items() if slot in slots})
        text = _IF.sub(lambda block: block[2] if values[block[1]] else "", text)
        return fill(text, **{slot: str(values[slot]) for slot in _SLOT.findall(text)})


packaged: Templates = _Packaged()
