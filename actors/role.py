"""Role: an actor that thinks with a chat model. Configuration alone: one instance serves any number of conversations.

The rule to know: what `think` returns has left the draft, so it is recorded, asked or returned in the same step, with
no wait in between. Up to then it is in the draft, and an interruption keeps it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, ClassVar

import trio
from pydantic import BaseModel

from callboard.experience.examples import Examples
from callboard.experience.experience import Experience
from callboard.prompts.composer import Layout, compose
from callboard.prompts.library import Library, packaged
from callboard.prompts.material import Aside, Material
from callboard.prompts.reply_format import MessageReply, Reply, ReplyError, reply_schema
from callboard.runtime.actor import Actor
from callboard.runtime.chat_model import ChatModel, ChatRequest, Message
from callboard.runtime.context import TurnContext
from callboard.runtime.memory import get_role_rounds
from callboard.runtime.post import USER, Post
from callboard.runtime.summary import Summarizer

from .course import Course, correction
from .given import given_in, with_lessons
from .guidance import Guidance
from .model_call import ReplyCutOff, call_model
from .reply_draft import ReplyDraft

_REPEATED = "it is the same reply again, though nothing new has come since"


class Role(Actor):
    """Subclass it, give it a name and a template, write `receive` with `reply`, or with `messages` and `think`."""

    introduction: str = ""
    """One sentence that tells superiors' models what to ask this role for; empty: its docstring's first line."""

    template: str = ""
    """The system message, with any of the slots {{name}}, {{subordinates}} and {{reply_format}}.

    With {{asker}} it changes with who asks, and a provider's cache is lost each time.
    """

    reply_format: str = ""
    """What stands in the slot {{reply_format}}; a template without slots."""

    library: Library = packaged
    """Where the templates are found that those two include; folders of one's own may replace them."""

    reply_model: ClassVar[type[BaseModel]] = MessageReply
    """What `reply` holds the model to: a field for each member that a reply may have."""

    most_corrections: int = 3
    """How often in one turn a reply is put back to the model that was malformed, too long, or a repetition."""

    layout: Layout = "cached"
    """The order of what the model is sent; `taskweaver` is that of the original."""

    alternate: bool = False
    """Whether the model's server demands that user and assistant take turns: neighbours are then sent as one."""

    summarizer: Summarizer | None = None
    """Puts this role's earlier rounds into few words; None: the conversation's option does, if it is set."""

    experience: Experience | None = None
    """The lessons of earlier conversations that its model is given, those that are like the task."""

    examples: Examples | None = None
    """Other conversations that its model is shown, for how they go."""

    settings_name: ClassVar[str] = "role"
    """Under which files of settings speak of it; that of a subclass is the name of its file unless it says another."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "settings_name" not in vars(cls):
            cls.settings_name = _file_name(cls)

    def __init__(
        self,
        model: ChatModel,
        *,
        name: str = "",
        subordinates: Sequence[Actor] = (),
        experience: Experience | None = None,
        examples: Examples | None = None,
    ) -> None:
        self.model = model
        self.name = name or self.name
        self.subordinates = tuple(subordinates) or self.subordinates
        self.experience = experience or self.experience
        self.examples = examples or self.examples

    async def think(self, context: TurnContext, messages: Iterable[Message]) -> str:
        """What the model replies: one call, streamed into the draft as it comes.

        It is a step, and what it uses counts against the limits. Cancelled: the call is ended, and what has come stays
        in the draft. Raises LimitReached, and ModelError, also for a reply that was cut off at the server's limit of
        tokens: the half of an answer is none, and what came of it is kept.
        """
        await call_model(context, self.model, ChatRequest(context.role, tuple(messages)), context.draft.write)
        # A cut that is under way was met in the call, while the draft still held the reply, and not between taking and
        # recording it.
        return context.draft.take()

    async def messages(self, post: Post, context: TurnContext) -> tuple[Message, ...]:
        """What the model is sent: the system message, then all that memory holds for this role."""
        material = await self.material(post, context)
        return compose(material, layout=self.layout, alternate=self.alternate, templates=self.library)

    async def material(self, post: Post, context: TurnContext) -> Material:
        """What the messages are composed of; a subclass adds requirements or the time with `replace`.

        Lessons are looked for anew when the query is another: after an intervention too. Cancelled: as if it had not
        been called. Raises InvalidFile for a folder of lessons or examples that is not there.
        """
        rounds = await get_role_rounds(context, context.role)
        guidance = Guidance(self.experience, self.examples, self.library, self.example_roles(context))
        if guidance.wanted and await guidance.look(post, context, rounds):
            rounds = await get_role_rounds(context, context.role)
        summary = await context.summary_of(rounds, by=self.summarizer)
        material = Material(self.system_message(post, context), context.role, rounds, temporal=self._further(context))
        material = material if summary is None else replace(material, summaries=(summary,))
        return await guidance.added(material) if guidance.wanted else material

    def example_roles(self, context: TurnContext) -> frozenset[str]:
        """Who may take part in an example: this role, its subordinates, and whom it stands under, at the top the user.

        The same for all calls of a round.
        """
        return frozenset((context.role, context.superior or USER, *(actor.name for actor in self.subordinates)))

    async def reply(self, post: Post, context: TurnContext) -> Reply:
        """What the model replies, parsed, streamed into the draft as the message and the attachments that it says.

        One that is none is kept as a note, with what is wrong with it, and the model is asked again: each call counts
        against the limits. Its first attachment says in its extra which lessons the model was sent, and their scores.
        Cancelled: as `think`. Raises ReplyError after `most_corrections` of that; LimitReached;
        ModelError, for a stream that broke off too.
        """
        while True:
            messages, recipients = await self.messages(post, context), self.recipients(post, context)
            rounds = await get_role_rounds(context, context.role)
            course = Course(rounds, post, context.role)
            said = ReplyDraft(context, self.reply_model, self.early_stop)
            request = ChatRequest(context.role, tuple(messages), reply_schema(self.reply_model, recipients))
            cut_off = await self._call(context, request, said)
            # From here on there is no wait: a reply leaves the draft in the step in which it is returned or noted.
            reply, problem = said.finish(recipients, cut_off=cut_off)
            repeated = course.repeats(said.text, reply)
            context.draft.take()
            context.draft.take_attachments()
            if reply is not None and not repeated:
                return with_lessons(reply, given_in(rounds, context.role))
            context.record("", *correction(said.text, self._told(problem, repeated=repeated)))
            if course.corrections >= self.most_corrections:
                raise ReplyError(problem or _REPEATED, said.text, course.corrections + 1)

    async def _call(self, context: TurnContext, request: ChatRequest, said: ReplyDraft) -> bool:
        """Whether the model was not let write all."""
        try:
            await call_model(context, self.model, request, said.feed)
        except ReplyCutOff:
            await trio.lowlevel.checkpoint_if_cancelled()  # a cut is met while the draft holds the reply
            return True
        return False

    def recipients(self, post: Post, context: TurnContext) -> tuple[str, ...]:
        """The names that a reply may be sent to, always in the same order; none if it does not matter."""
        return ()

    def early_stop(self, kind: str, value: str) -> bool:
        """Whether all is said that is wanted, asked for each member once it is whole: the call is ended then.

        What such a call has used is not known, since models tell it at the end.
        """
        return False

    def system_message(self, post: Post, context: TurnContext) -> str:
        """The template, filled in.

        Raises ValueError for a slot that has no value, InvalidFile for a text that is no template.
        """
        return self.library.parse(self.template, context.role).render(**self.slots(post, context))

    def slots(self, post: Post, context: TurnContext) -> Mapping[str, str]:
        """The values that the template may have slots for."""
        return {
            "name": context.role,
            "asker": post.send_from,
            "subordinates": self._introduced(actor.name for actor in self.subordinates),
            "reply_format": self.library.parse(self.reply_format, "reply_format").render(),
        }

    def _further(self, context: TurnContext) -> tuple[Aside, ...]:
        """The subordinates that were started on the way: the system message stays as it is."""
        own = {actor.name for actor in self.subordinates}
        further = [name for name in context.subordinates if name not in own]
        if not further or "subordinates" not in self.library.parse(self.template, context.role).slots:
            return ()
        return (Aside(self.library.render("fw.further_subordinates", subordinates=self._introduced(further))),)

    def _told(self, problem: str, *, repeated: bool) -> str:
        """What a model is told of a reply that is put back to it."""
        told = [self.library.render("fw.msg_misformat", problem=problem)] if problem else []
        return "\n".join([*told, self.library.render("fw.msg_repeat")] if repeated else told)

    def _introduced(self, names: Iterable[str]) -> str:
        """One line for each, with what is known of it."""
        known = {actor.name: _introduction(actor) for actor in self.subordinates}
        return "\n".join(f"- {name}: {known[name]}" if known.get(name) else f"- {name}" for name in names) or "none"


def _file_name(role: type) -> str:
    """The name of the file that the class stands in, up to its first dot."""
    file = getattr(sys.modules.get(role.__module__), "__file__", None) or role.__module__.rpartition(".")[2]
    return PurePath(file).name.partition(".")[0]


def _introduction(actor: Actor) -> str:
    return getattr(actor, "introduction", "") or (type(actor).__doc__ or "").strip().partition("\n")[0]
