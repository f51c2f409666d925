"""Compression: a `Summarizer` that has a chat model put earlier rounds into few words.

When it does so is that of TaskWeaver: once there are as many uncovered rounds as are to be compressed and retained, all
but those to be retained are. Beside that stands a budget of tokens. The rule to know: it keeps nothing; what was
summarised is the conversation's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field

from callboard.runtime.attachment import AttachmentType
from callboard.runtime.chat_model import (
    ChatModel,
    ChatRequest,
    Delta,
    EndDelta,
    FallbackDelta,
    Message,
    ReplySchema,
    RetryingDelta,
    TextDelta,
    UsageDelta,
)
from callboard.runtime.errors import LimitReached
from callboard.runtime.json_value import FrozenMapping
from callboard.runtime.round import Round
from callboard.runtime.summary import CountUsage, SummaryRequest

from .conversation_summary import CodeSummary, ConversationSummary, InvalidSummary, read_summary
from .library import Library, packaged
from .round_text import written

SUMMARIZER = "Summarizer"
"""The role of the requests, by which scripted models find their lines."""
CHARACTERS_A_TOKEN = 4


def estimate_tokens(text: str) -> float:
    """A quarter of the characters: about right for English, too low for code and for most other languages."""
    return len(text) / CHARACTERS_A_TOKEN


@dataclass(frozen=True, slots=True)
class Kind:
    """What is asked for."""

    template: str
    """The name of the system message's template, with the slot {{previous_summary}}."""
    answer: type[ConversationSummary]


PLAIN = Kind("fw.compression", ConversationSummary)
"""For rounds in which no code was written."""
CODE = Kind("fw.compression_code", CodeSummary)
"""For those in which it was: it names the variables too."""


@dataclass(frozen=True, slots=True)
class Compression:
    """Configuration alone, for any number of conversations.

    A round without posts counts for nothing. The round that runs counts as one of those to be retained. Raises
    ValueError for what is no number from 1 on, and for a template without its slot.
    """

    model: ChatModel
    _: KW_ONLY
    rounds_to_compress: int = 2
    rounds_to_retain: int = 3
    most_tokens: int | None = None
    """How many tokens earlier rounds may take that no summary covers; None: any number.

    Beyond that the oldest are summarised until the others take half of it, fewer than `rounds_to_retain` if need be.
    The round that runs is not counted, and never cut.
    """
    estimate: Callable[[str], float] = estimate_tokens
    """Tells how many tokens a text takes; a tokenizer of the model's own knows better."""
    seconds: float = 60.0
    """How long one summary may take."""
    kind: Kind | None = None
    """None: `CODE` for rounds in which one of the roles wrote code, else `PLAIN`."""
    library: Library = packaged
    """Where the templates are."""
    digest: str = field(init=False, repr=False, default="")
    """Of the templates, as they are filled in."""

    def __post_init__(self) -> None:
        for name in ("rounds_to_compress", "rounds_to_retain", "most_tokens"):
            number = getattr(self, name)
            if number is None and name == "most_tokens":
                continue
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise ValueError(f"{name} is a whole number from 1 on, not {number!r}")
        if not isinstance(self.seconds, int | float) or isinstance(self.seconds, bool) or not self.seconds > 0:
            raise ValueError(f"seconds is a number above 0, not {self.seconds!r}")
        kinds = (PLAIN, CODE) if self.kind is None else (self.kind,)
        said = "\0".join(f"{self._system(kind, '')}\0{kind.answer.__qualname__}" for kind in kinds)
        object.__setattr__(self, "digest", hashlib.sha256(said.encode()).hexdigest()[:16])

    def choose(self, rounds: Sequence[Round]) -> int:
        """All but those to be retained, if there are enough; more, if they take too many tokens."""
        spoken = [number for number, one in enumerate(rounds[:-1], 1) if one.post_list]
        running = 1
        enough = len(spoken) + running >= self.rounds_to_compress + self.rounds_to_retain
        count = len(spoken) + running - self.rounds_to_retain if enough else 0
        if self.most_tokens is not None:
            count = max(count, self._too_many([rounds[number - 1] for number in spoken], self.most_tokens))
        return spoken[count - 1] if count else 0

    async def summarize(self, request: SummaryRequest, count: CountUsage) -> str:
        """What the model says of the rounds, validated.

        Cancelled: the call is ended at once. Raises InvalidSummary for a reply that is none or was cut off, ModelError,
        LimitReached.
        """
        kind = self.kind or (CODE if _holds_code(request) else PLAIN)
        messages = (Message("system", self._system(kind, request.previous)), Message("user", written(request.rounds)))
        schema = ReplySchema(kind.answer.__name__, FrozenMapping(kind.answer.model_json_schema()))
        call = _Call(self.model.name, count)
        text = await call.run(self.model, ChatRequest(SUMMARIZER, messages, schema))
        return read_summary(text, kind.answer).told()

    def _system(self, kind: Kind, previous: str) -> str:
        template = self.library.find(kind.template, slots={"previous_summary"})
        if not template.slots:
            lost = "without it each summary would forget the one before"
            raise ValueError(f"the template {kind.template!r} has no slot previous_summary; {lost}")
        return template.render(previous_summary=previous or "None.")

    def _too_many(self, rounds: Sequence[Round], most: int) -> int:
        """How many of the oldest have to go so that the others fit; to half of it, so that not every round is one."""
        left = [self.estimate(written([one])) for one in rounds]
        if sum(left) <= most:
            return 0
        while left and sum(left) > most / 2:
            del left[0]
        return len(rounds) - len(left)


def _holds_code(request: SummaryRequest) -> bool:
    posts = (post for one in request.rounds for post in one.post_list if post.send_from in request.roles)
    attachments = (attachment for post in posts for attachment in post.attachment_list)
    return any(one.type is AttachmentType.reply_type and one.content == "python" for one in attachments)


class _Call:
    """One call of a model. What it uses is counted, whatever ends it."""

    def __init__(self, model: str, count: CountUsage) -> None:
        self._model = model
        """The name of the model that was called last."""
        self._count = count
        self._pieces: list[str] = []
        self._used: UsageDelta | None = None
        self._ended = ""

    async def run(self, model: ChatModel, request: ChatRequest) -> str:
        """The whole text."""
        self._count(self._model)
        try:
            async with model.stream(request) as deltas:
                async for delta in deltas:
                    self._take(delta)
        except BaseException:
            with suppress(LimitReached):  # what ended the call says more; the next call meets the limit
                self._count_used()
            raise
        self._count_used()
        if self._ended == "length":
            raise InvalidSummary("the reply was cut off at the server's limit of tokens")
        return "".join(self._pieces)

    def _take(self, delta: Delta) -> None:
        match delta:
            case TextDelta(text):
                self._pieces.append(text)
            case UsageDelta():
                self._used = delta
            case RetryingDelta():
                self._count(self._model)
            case FallbackDelta(_, model):
                self._model = model
                self._count(model)
            case EndDelta(reason):
                self._ended = reason

    def _count_used(self) -> None:
        if self._used is not None:
            self._count(self._model, self._used)
