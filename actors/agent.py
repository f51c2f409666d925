"""Agent: thinks, calls tools and other roles, reads what comes back, and goes on until it can answer.

The rule to know: each reply of its model is recorded as a post to itself before anything of it is done, and each call
with its outcome when it has ended. So a new attempt finds what was done, and how far the rest had come.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import trio
from pydantic import BaseModel

from callboard.prompts.reply_format import Reply
from callboard.runtime.actor import Actor
from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.chat_model import ChatModel
from callboard.runtime.context import LiveContext, TurnContext
from callboard.runtime.errors import CallboardError, ToolFailed
from callboard.runtime.post import Post
from callboard.runtime.tool import Tool

from .agent_reply import AgentReply, ToolCall, calls_in, plain_schema, reply_model_for
from .approval import Refused, ask_approval
from .call_subordinate import CALL_SUBORDINATE, OFFER, call_subordinate, offer_schema
from .kept_results import READ_RESULT, KeptResults, KeptTool, kept_results
from .role import Role


@dataclass(eq=False, repr=False)
class Agent(Role):
    """Does a task with tools, and with other roles, until it can answer.

    Raises ValueError for two tools of one name, for a name that is the agent's own, and for an approval of a tool that
    it has not.
    """

    introduction = "Works with tools: give it a task, and it answers when it is done."
    template = '{{include "agent"}}'
    reply_format = '{{include "reply_format.agent"}}'
    reply_model: ClassVar[type[BaseModel]] = AgentReply

    model: ChatModel
    tools: Sequence[Tool | Callable[..., Any]] = ()
    """What it may call; a function becomes a tool as it stands."""
    _: KW_ONLY
    name: str = "Agent"
    subordinates: Sequence[Actor] = ()
    """Roles that it may ask."""
    profiles: Mapping[str, str] = field(default_factory=dict)
    """The profiles of the conversation's options that it may start as subordinates, each with what it is good for."""
    needs_approval: Collection[str] = ()
    """The names of the tools about which a person is asked before each call."""
    folder: Path | None = None
    """In which the results are kept that are too long to be shown; None for temporary folders."""
    most_result: int = 8_000
    """Characters of a result, an error or a tool's reports that the model is shown."""
    most_steps: int = 30
    """How many replies of the model one attempt may take."""

    def __post_init__(self) -> None:
        own = KeptResults(self.most_result, self.library).tool
        given = [one if isinstance(one, Tool) else Tool(one) for one in self.tools]
        self._tools = {tool.name: tool for tool in [*given, *([own] if given else [])]}
        names = [tool.name for tool in given]
        if len(set(names)) < len(names) or not {READ_RESULT, CALL_SUBORDINATE}.isdisjoint(names):
            raise ValueError(f"each tool has a name of its own, and none the name of the agent's: {', '.join(names)}")
        if unknown := sorted({*self.needs_approval} - {*names, CALL_SUBORDINATE}):
            raise ValueError(f"there is no tool to approve of that name: {', '.join(unknown)}")
        if self.most_result < 1:
            raise ValueError(f"most_result is a number of characters from 1 on, not {self.most_result!r}")
        self._schemas = {tool.name: plain_schema(tool.schema) for tool in self._tools.values()}
        if who := [*(actor.name for actor in self.subordinates), *self.profiles]:
            self._schemas[CALL_SUBORDINATE] = plain_schema(offer_schema(who))
        vars(self)["reply_model"] = reply_model_for(self._schemas.items())

    @asynccontextmanager
    async def live(self, context: LiveContext) -> AsyncIterator[KeptResults]:
        """What is kept of long results."""
        with kept_results(self.most_result, self.library, self.folder) as kept:
            yield kept

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """The answer, after all that was called and asked for it.

        What a tool or another role fails with is the model's to deal with. Cancelled: calls under way are ended as
        their tools say, and what was asked of others is recalled. Raises what `reply` raises, and CallboardError after
        `most_steps` replies without an answer.
        """
        for _ in range(self.most_steps):
            reply = await self.reply(post, context)
            if _is_answer(reply):
                return post.reply(reply.message, reply.attachments)
            context.record(reply.message, *reply.attachments)
            async with trio.open_nursery() as nursery:
                for call in calls_in(_content(reply, AttachmentType.reply_content)):
                    nursery.start_soon(self._carry_out, call, context)
        raise CallboardError(f"no answer after {self.most_steps} steps of {context.role}; allow more with most_steps")

    def slots(self, post: Post, context: TurnContext) -> Mapping[str, str]:
        """The values that the template may have slots for."""
        profiles = [f"- {name}: {text}" for name, text in self.profiles.items()]
        own = [self._introduced(actor.name for actor in self.subordinates)] if self.subordinates else []
        tools = {**{name: tool.description for name, tool in self._tools.items()}, CALL_SUBORDINATE: OFFER.description}
        told = [_told(name, tools[name], schema) for name, schema in self._schemas.items()]
        more = {"tools": "\n".join(told) or "none", "roles": "\n".join([*own, *profiles])}
        return {**super().slots(post, context), **more}

    async def _carry_out(self, call: ToolCall, context: TurnContext) -> None:
        """Has one call done; its outcome is in memory afterwards."""
        kept: KeptResults = context.state
        tool = {**self._tools, READ_RESULT: kept.tool, CALL_SUBORDINATE: OFFER}[call.tool]
        arguments = call.arguments
        try:
            if call.tool in self.needs_approval and _takes(tool, arguments):
                arguments = await ask_approval(context, tool, arguments, self.library)
        except Refused as refused:
            context.record("", Attachment.create(AttachmentType.revise_message, f"[{refused}]"))
            return
        if tool is OFFER:
            await call_subordinate(arguments, context, self.subordinates, self.profiles)
        else:
            with suppress(ToolFailed):  # the note of its outcome tells the model
                await context.call(KeptTool(tool, kept, context), arguments)


def _is_answer(reply: Reply) -> bool:
    return _content(reply, AttachmentType.reply_type) == "respond"


def _content(reply: Reply, type: AttachmentType) -> str:
    return "".join(str(one.content) for one in reply.attachments if one.type is type)


def _told(name: str, description: str, schema: Mapping[str, Any]) -> str:
    """What the model is told of a tool."""
    lines = "\n  ".join(line for line in description.splitlines() if line.strip())
    return f"- {name}: {lines}\n  Arguments: {json.dumps(schema, ensure_ascii=False)}"


def _takes(tool: Tool, arguments: Mapping[str, Any]) -> bool:
    """Whether it is worth asking a person: a call with arguments that are none fails without being made."""
    try:
        tool.check(arguments)
    except ValueError:
        return False
    return True
