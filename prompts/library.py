"""The library: the templates that come with callboard, and filling them in.

The rule to know: values go in once and are never scanned again, so nothing that a user or a model wrote is taken for
part of a template.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from callboard.runtime.json_value import JsonValue, thaw

_SUFFIX = ".md"
_SLOT = re.compile(r"\{\{(\w+)\}\}")
_JSON = re.compile(r"```json\n(.*)\n```", re.DOTALL)
_EMPTY: tuple[object, ...] = ("", [], {}, None)


@cache
def template(name: str) -> str:
    """The text of the template of that name, such as ``planner`` or ``fw.intervention``, without its last line end.

    Raises ValueError for a path, and for an unknown name with those there are.
    """
    if ".." in name or "/" in name or "\\" in name:
        raise ValueError(f"{name!r} is a path; a template has a name alone")
    found = _templates()
    if name not in found:
        raise ValueError(f"there is no template {name!r}; there are {', '.join(sorted(found))}")
    return found[name].read_text(encoding="utf-8").rstrip("\n")


def fill(text: str, /, **slots: str) -> str:
    """The text with each ``{{slot}}`` replaced by the value of that name.

    Raises ValueError for a slot without a value and for a value without a slot.
    """
    there = set(_SLOT.findall(text))
    if missing := sorted(there - slots.keys()):
        raise ValueError(f"the template needs a value for {', '.join(missing)}")
    if unused := sorted(slots.keys() - there):
        raise ValueError(f"the template has no slot {', '.join(unused)}; it has {', '.join(sorted(there)) or 'none'}")
    return _SLOT.sub(lambda match: slots[match[1]], text)


def fill_json(name: str, /, **values: JsonValue) -> str:
    """The JSON text of a template that is one JSON object in a fence, its keys in the template's order.

    Each slot stands as a bare value and becomes the value as JSON; keys whose value is empty are left out. Raises
    ValueError for a template that is no such object, for what `fill` refuses, and for nan and infinities.
    """
    fenced = _JSON.fullmatch(template(name))
    if fenced is None:
        raise ValueError(f"the template {name!r} is no JSON in a fence")
    written = {slot: json.dumps(thaw(value), allow_nan=False) for slot, value in values.items()}
    members = json.loads(fill(fenced[1], **written))
    return json.dumps({key: value for key, value in members.items() if value not in _EMPTY}, ensure_ascii=False)


@cache
def _templates() -> dict[str, Traversable]:
    there = files("callboard.prompts").iterdir()
    return {entry.name.removesuffix(_SUFFIX): entry for entry in there if entry.name.endswith(_SUFFIX)}
