"""Called tool: what a note about a call of a tool tells the role that made the call.

The rule to know: the note that a call has begun and the note of its outcome stand each for itself, since an
interruption, or the next call of a model, may come between them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from callboard.runtime.attachment import Attachment

from .library import Library


def tell_call(attachment: Attachment, role: str, templates: Library) -> str | None:
    """What the note says; None for one that is not the runtime's own."""
    note = _note(attachment)
    if note is None:
        return None
    tool = note["tool"]
    match note:
        case {"arguments": arguments}:
            return f"[{role} called {tool} with {_text(arguments)}]"
        case {"result": result}:
            return templates.render("fw.tool_result", tool=tool, result=_text(result))
        case {"outcome": "failed"}:
            return _ended(note, f"failed: {_text(note.get('error', ''))}")
        case {"outcome": "interrupted"}:
            return _ended(note, "was interrupted")
        case {"outcome": "not_started"}:
            return _ended(note, "was called off before it had begun")
        case {"error": error}:
            return _ended(note, f"failed: {_text(error)}")
    return None


def _note(attachment: Attachment) -> Mapping[str, Any] | None:
    if not isinstance(attachment.content, str):
        return None
    try:
        note = json.loads(attachment.content)
    except (ValueError, RecursionError):
        return None
    return note if isinstance(note, dict) and isinstance(note.get("tool"), str) and "call" in note else None


def _ended(note: Mapping[str, Any], how: str) -> str:
    progress = note.get("progress")
    return f"[{note['tool']} {how}]" if not progress else f"[{note['tool']} {how}; it had said:]\n{_text(progress)}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
