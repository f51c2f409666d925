"""Approval: a call that a person is asked about before it is made; yes, no, or other arguments in its place.

The rule to know: what is neither a yes nor new arguments is a no, and its words are the model's to read. The question
is one of `context.ask_superior`: it is withdrawn when the turn that asks it is interrupted, recalled or stopped.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from typing import Any

from callboard.prompts.library import Library
from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import NobodyToAsk, PostRefused, RoleFailed
from callboard.runtime.post import Post
from callboard.runtime.tool import Tool

from .agent_reply import ToolCall

_MOST_QUESTIONS = 3
"""How often one call is asked about, if the arguments that are given in its place are none."""
_YES = frozenset({"yes", "y", "ok"})


class Refused(Exception):
    """A call may not be made; says why, for the model."""


def approval_asked(question: Post) -> ToolCall | None:
    """The call that a question asks about; None for a question of another kind."""
    for one in question.get_attachment(AttachmentType.function):
        try:
            found = json.loads(str(one.content))
        except ValueError:
            continue
        match found:
            case {"approve": str(tool), "arguments": dict(arguments)}:
                return ToolCall(tool, arguments)
    return None


async def ask_approval(
    context: TurnContext, tool: Tool, arguments: Mapping[str, Any], templates: Library
) -> Mapping[str, Any]:
    """The arguments with which the tool may be called: those given, or those that the person gave in their place.

    Cancelled: the question is withdrawn. Raises Refused for a no, and where nobody can be asked.
    """
    problem = ""
    for _ in range(_MOST_QUESTIONS):
        answer = await _ask(context, tool.name, arguments, templates, problem)
        word, rest = (*answer.split(None, 1), "", "")[:2]
        if word.lower().rstrip(".,:!") != "edit":
            if answer.lower().rstrip(".!") in _YES:
                return arguments
            raise Refused(f"{tool.name} was not called: it was not approved")
        try:
            edited = json.loads(rest)
            tool.check(edited if isinstance(edited, dict) else {"": edited})
        except (ValueError, RecursionError) as error:
            problem = str(error)
        else:
            return dict(edited)
    raise Refused(f"{tool.name} was not called: it was not approved as it was, and not with other arguments either")


async def _ask(context: TurnContext, tool: str, arguments: Mapping[str, Any], templates: Library, problem: str) -> str:
    asked = _visible(json.dumps(arguments, ensure_ascii=False))
    text = templates.render("agent.approval", name=context.role, tool=tool, arguments=asked, problem=problem)
    call = json.dumps({"approve": tool, "arguments": dict(arguments)})
    try:
        answer = await context.ask_superior(text, [Attachment.create(AttachmentType.function, call)])
    except (NobodyToAsk, RoleFailed, PostRefused) as error:
        raise Refused(f"{tool} was not called: it needs an approval, and {error}") from error
    return answer.message.strip()


def _visible(text: str) -> str:
    """With signs that cannot be seen, or that change the order of others, spelled out: what is approved is what is
    read."""
    return "".join(
        f"\\u{ord(sign):04x}" if unicodedata.category(sign) in ("Cf", "Cc", "Zl", "Zp") else sign for sign in text
    )
