"""Reply draft: a model's reply that grows in the draft as what it says: its message, and its attachments.

The rule to know: the recipient is in no draft, and neither is what stands outside the reply; a reply counts as whole
when its object is closed, whatever its members say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pydantic import BaseModel

from callboard.prompts.reply_format import MESSAGE, SEND_TO, Reply, ReplyError, members_of, validated
from callboard.prompts.reply_reader import ReplyReader
from callboard.runtime.context import TurnContext

EarlyStop: TypeAlias = Callable[[str, str], bool]
"""Takes the name and the whole value of a member; True: the rest of the reply is not wanted."""


class ReplyDraft:
    """One reply, on its way into the draft of an attempt."""

    def __init__(self, context: TurnContext, model: type[BaseModel], early_stop: EarlyStop) -> None:
        self._context = context
        self._write = context.draft.write
        self._attach = context.draft.attach
        self._model = model
        self._early_stop = early_stop
        self._reader = ReplyReader(members_of(model), self)
        self._grown = False
        self._stopped = False

    @property
    def text(self) -> str:
        """All that the model said."""
        return self._reader.text

    def feed(self, text: str) -> bool:
        """Takes the next piece; True once no more is wanted."""
        self._grown = False
        self._reader.feed(text)
        if not self._grown:
            self._context.step_goes_on()
        return self._stopped

    def began(self, name: str) -> None:
        """A member's name has come, of which a draft shows nothing."""

    def grew(self, name: str, text: str) -> None:
        """More of a member."""
        if name == MESSAGE:
            self._write(text)
        elif name != SEND_TO:
            self._attach(name, text)
        else:
            return
        self._grown = True

    def ended(self, name: str, value: str) -> bool:
        """A member is whole."""
        self._stopped = self._early_stop(name, value)
        return self._stopped

    def finish(self, recipients: Sequence[str], *, cut_off: bool) -> tuple[Reply | None, str]:
        """The whole reply, or what is wrong with it. `cut_off`: the model was not let write all."""
        report = self._reader.close()
        if cut_off and report.truncated_at is not None:
            return None, "it was too long, and was cut off; be shorter, and leave the rest to a later reply"
        if not report.complete:
            return None, report.problem
        try:
            return validated(self._reader.values, report, self._model, recipients), ""
        except ReplyError as error:
            return None, error.problem
