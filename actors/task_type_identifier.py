"""TaskTypeIdentifier: finds out of which type a task is, and has all roles use the lessons and examples of that type.

The rule to know: the name of a type is the sub folder in which its lessons and its examples lie. It is published for
the conversation, and holds until another is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, Field, create_model

from callboard.runtime.actor import Actor
from callboard.runtime.chat_model import ChatModel
from callboard.runtime.context import TurnContext
from callboard.runtime.post import Post

from .role import Role

NONE = "none"
"""What a model says of a task that is of no type."""


class TaskTypeIdentifier(Actor):
    """Finds the type of a task by a rule, a table or a model, and has all roles use what was learnt from such tasks.

    Those of the three that are given are tried in this order, until one knows. `rule` makes a type of the words, or
    None. `table` has the type for a word or a phrase; the longest counts that stands in the words. `model` is told the
    `types`, each with a description, and chooses. Raises ValueError for a model without types, and if nothing is given.
    """

    name = "TaskTypeIdentifier"
    introduction = "Finds of which type a task is: send it the user's words before all else."

    def __init__(
        self,
        model: ChatModel | None = None,
        *,
        types: Mapping[str, str] | None = None,
        table: Mapping[str, str] | None = None,
        rule: Callable[[str], str | None] | None = None,
        name: str = "",
    ) -> None:
        if model is not None and not types:
            raise ValueError("a model needs types to choose from, each with a description")
        if model is None and not table and rule is None:
            raise ValueError("a type is found by a rule, a table or a model; give one of them")
        self.name = name or self.name
        self._rule = rule or _unknown
        self._table = dict(sorted((table or {}).items(), key=lambda entry: (-len(entry[0]), entry[0])))
        self._chooser = None if model is None else _chooser(model, types or {})

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """The type, in words. A task of no type has the roles use no lessons and examples of any.

        The user's words in the middle of it count. Cancelled: nothing is published. Raises what `Role.reply` raises,
        and what the rule does.
        """
        words = "\n".join([post.message, *(said.message for said in context.user_words)])
        type = self._rule(words) or self._look_up(words)
        if type is None and self._chooser is not None:
            said = (await self._chooser.reply(post, context)).message.strip()
            type = None if said == NONE else said
        context.share("experience_sub_path", type or "", "conversation")
        context.share("example_sub_path", type or "", "conversation")
        return post.reply(f"The task is of the type {type}." if type else "The task is of no type that is known.")

    def _look_up(self, words: str) -> str | None:
        stands = (type for phrase, type in self._table.items() if _stands(phrase, words))
        return next(stands, None)


class _Chooser(Role):
    """Asks the model in the name of whoever it thinks for."""

    template = '{{include "task_type_identifier"}}'

    def __init__(self, model: ChatModel, types: Mapping[str, str]) -> None:
        super().__init__(model)
        self._types = types

    def slots(self, post: Post, context: TurnContext) -> Mapping[str, str]:
        """Those of a role, and the types."""
        types = "\n".join(f"- `{type}`: {description}" for type, description in self._types.items())
        return {**super().slots(post, context), "types": types}

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """The type that the model chose."""
        return post.reply((await self.reply(post, context)).message)


def _chooser(model: ChatModel, types: Mapping[str, str]) -> Role:
    """A role whose replies are one of the types, or none."""
    names = (*types, NONE)
    one = Annotated[str, AfterValidator(partial(_one_of, names)), Field(json_schema_extra={"enum": list(names)})]

    class Chooser(_Chooser):
        reply_model: ClassVar[type[BaseModel]] = create_model("TaskType", message=(one, ...))

    return Chooser(model, types)


def _one_of(names: tuple[str, ...], said: str) -> str:
    if said.strip() not in names:
        raise ValueError(f"must be one of {', '.join(names)}")
    return said.strip()


def _stands(phrase: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", words, re.IGNORECASE) is not None


def _unknown(words: str) -> None:
    """The rule of who has none."""
