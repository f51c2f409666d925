"""Slots: what the templates of callboard's own messages, ``fw.*``, may have slots for.

The rule to know: whoever renders one of them gives all of its slots a value; a file that replaces it may use any of
them, and no others.
"""

from __future__ import annotations

from collections.abc import Mapping

_WORDS = frozenset({"message", "system_message", "attachments", "extra", "standing_plan"})
_OF_ROLE = frozenset({"name", "message"})

SLOTS: Mapping[str, frozenset[str]] = {
    "fw.user_message": _WORDS,
    "fw.intervention": _WORDS,
    "fw.msg_nudge": frozenset(),
    "fw.msg_from_subordinate": _OF_ROLE,
    "fw.tool_result": frozenset({"tool", "result"}),
    "fw.error": _OF_ROLE,
    "fw.msg_timeout": _OF_ROLE,
    "fw.msg_limit": frozenset({"limit"}),
    "fw.msg_summary": frozenset({"summary"}),
    "fw.compression": frozenset({"previous_summary"}),
    "fw.compression_code": frozenset({"previous_summary"}),
    "fw.msg_truncated": frozenset({"length"}),
    "fw.msg_misformat": frozenset({"problem"}),
    "fw.msg_repeat": frozenset(),
    "fw.conversation_begins": frozenset(),
    "fw.example_begins": frozenset(),
    "fw.example_ends": frozenset(),
    "fw.lessons": frozenset({"lessons"}),
    "fw.other_lessons": frozenset({"lessons"}),
    "fw.further_subordinates": frozenset({"subordinates"}),
    "fw.plan_cancelled": frozenset(),
    "fw.time": frozenset({"now"}),
    "fw.user_query": frozenset({"query"}),
}
"""By the name of the template."""
