"""Call subordinate: an agent has another role do a part of its work, one that is there or one that it starts.

The rule to know: it is an ask and no call of a tool, so an interruption recalls it and tells what it had, and a pause
stops before the steps of the role that is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from callboard.runtime.actor import Actor
from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import (
    AskCycle,
    CallboardError,
    DuplicateName,
    LimitReached,
    NoReply,
    PostRefused,
    RequestRecalled,
    RoleFailed,
    UnknownRole,
)
from callboard.runtime.tool import Tool

CALL_SUBORDINATE = "call_subordinate"

_TOLD = (
    AskCycle,
    DuplicateName,
    LimitReached,
    NoReply,
    PostRefused,
    RequestRecalled,
    RoleFailed,
    UnknownRole,
    ValueError,
)
"""What the model is told instead of failing its role."""


async def _call_subordinate(profile: str, message: str, name: str = "", reset: bool = False) -> None:
    """Has another role do a part of the work, and shows what it answers.

    It knows only what the message says and what it did for you before: give it the task, the data, and what you expect
    back. The same profile is the same role, unless you give names; with reset it forgets what it did before.
    """


OFFER = Tool(_call_subordinate, name=CALL_SUBORDINATE)
"""What the model is told of it, and what its arguments are held to; never called."""


def offer_schema(names: Collection[str]) -> Mapping[str, Any]:
    """The schema of the arguments, in which the profile is one of these names."""
    schema = OFFER.schema
    schema["properties"]["profile"]["enum"] = list(names)
    return schema


async def call_subordinate(
    arguments: Mapping[str, Any], context: TurnContext, subordinates: Sequence[Actor], profiles: Collection[str]
) -> None:
    """Has the role work; its answer, or why there is none, is in memory afterwards.

    Cancelled: what was asked is recalled, and a role that was started stays.
    """
    asked = ""
    try:
        wanted = OFFER.check(arguments)
        if not wanted["message"].strip():
            raise ValueError("message must not be blank")
        asked = await _start(wanted, context, subordinates, profiles)
        await context.ask(asked, wanted["message"])
    except _TOLD as error:
        if not _is_recorded(error, asked):
            told = f"[{CALL_SUBORDINATE} failed: {error}]"
            context.record("", Attachment.create(AttachmentType.revise_message, told))


async def _start(
    wanted: Mapping[str, Any], context: TurnContext, subordinates: Sequence[Actor], profiles: Collection[str]
) -> str:
    """The name of the role, which is there now."""
    profile, reset = wanted["profile"], wanted["reset"]
    for actor in subordinates:
        if actor.name == profile:
            return await context.start_subordinate(actor, reset=reset)
    if profile not in profiles:
        known = ", ".join([*(actor.name for actor in subordinates), *profiles])
        raise UnknownRole(profile, f"there is no profile {profile[:80]!r}; there are: {known}")
    parts = (context.role, profile, wanted["name"])
    return await context.start_subordinate(profile, name="-".join(filter(None, parts)), reset=reset)


def _is_recorded(error: CallboardError | ValueError, asked: str) -> bool:
    """Whether the runtime has told this role already."""
    match error:
        case RoleFailed(post_id=""):
            return False
        case RoleFailed(role=role) | NoReply(role=role) | RequestRecalled(role=role):
            return role == asked
    return False
