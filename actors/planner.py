"""Planner: splits a task into steps, has subordinates do them, answers whoever asked.

The rule to know: each reply of its model becomes one post, with the plan as its attachments: a request to a subordinate
or the answer. So memory holds the plan's whole course, and a new attempt goes on from it. The plan that is followed is
shared for the round, in the step in which the reply is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

from pydantic import BaseModel

from callboard.experience.examples import Examples
from callboard.experience.experience import Experience
from callboard.prompts.reply_format import NotBlank, Reply
from callboard.runtime.actor import Actor
from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.chat_model import ChatModel
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import AskCycle, CallboardError, NoReply, RequestRecalled, RoleFailed
from callboard.runtime.post import Post

from .role import Role


class PlannerReply(BaseModel):
    """All that a planner is asked for; it can go on without a plan, but not without somebody to say something to."""

    plan_reasoning: str = ""
    init_plan: str = ""
    plan: str = ""
    current_plan_step: str = ""
    stop: Literal[
        "InProcess", "Completed", "Clarification", "AdditionalInformation", "SecurityRisks", "TaskFailure"
    ] = "InProcess"
    send_to: NotBlank
    message: NotBlank


@dataclass(eq=False, repr=False)
class Planner(Role):
    """Splits a task into steps and has its subordinates do them."""

    introduction = "Plans and directs: give it a task that takes several steps, and it answers when all are done."
    template = '{{include "planner"}}'
    reply_format = '{{include "reply_format.planner"}}'
    reply_model: ClassVar[type[BaseModel]] = PlannerReply
    settings_name = "planner"

    model: ChatModel
    _: KW_ONLY
    name: str = "Planner"
    subordinates: Sequence[Actor] = ()
    most_steps: int = 30
    """How many replies of the model one attempt may take."""
    experience: Experience | None = None
    examples: Examples | None = None

    def __post_init__(self) -> None:
        # What a subclass says in its body stands unless the caller says otherwise.
        self.subordinates = tuple(self.subordinates) or type(self).subordinates
        self.experience = self.experience or type(self).experience
        self.examples = self.examples or type(self).examples

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """The answer to whoever asked, after all that was asked of subordinates for it.

        A subordinate that fails is the model's to deal with. Raises what `reply` raises, and CallboardError after
        `most_steps` replies without an answer.
        """
        shared = ""
        for _ in range(self.most_steps):
            reply = await self.reply(post, context)
            if reply.send_to == post.send_from:
                return post.reply(reply.message, reply.attachments)
            if (plan := _plan_in(reply)) not in ("", shared):
                context.share("plan", shared := plan)
            await self._direct(reply, context)
        raise CallboardError(f"no answer after {self.most_steps} steps of {context.role}; allow more with most_steps")

    def recipients(self, post: Post, context: TurnContext) -> tuple[str, ...]:
        """The subordinates in the order of their start, then who asked."""
        return tuple(dict.fromkeys((*context.subordinates, post.send_from)))

    async def _direct(self, reply: Reply, context: TurnContext) -> None:
        """Has a step done; its answer, or its failure, is in memory afterwards."""
        try:
            await context.ask(reply.send_to, reply.message, reply.attachments)
        except (RoleFailed, NoReply, RequestRecalled, AskCycle) as error:
            self._keep(error, reply, context)

    def _keep(self, error: CallboardError, reply: Reply, context: TurnContext) -> None:
        """Notes what the runtime has not recorded for this role already: mostly nothing."""
        told = Attachment.create(AttachmentType.revise_message, str(error))
        match error:
            case AskCycle() | RoleFailed(post_id=""):  # refused, so the request is not recorded either
                context.record(reply.message, *reply.attachments, told)
            case RoleFailed(role=role) | NoReply(role=role) | RequestRecalled(role=role) if role != reply.send_to:
                context.record("", told)  # it was handed on, and the account went to the role that did so


def _plan_in(reply: Reply) -> str:
    """The plan that is followed; empty if the reply has none."""
    return "".join(str(one.content) for one in reply.attachments if one.type is AttachmentType.plan).strip()
