"""Draft: what an attempt has so far and has not yet recorded.

It belongs to one attempt. Interrupted, its text and attachments become the partial post; taken, they are the author's
to record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .attachment import Attachment, AttachmentType, attachment_type
from .errors import AttemptEnded
from .json_value import check_text
from .text import NO_TEXT, Text

TEXT = "message"
"""What growth of the text is called, beside the types of attachments and the names of tools."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What was left in a draft."""

    text: Text = NO_TEXT
    attachments: tuple[Attachment, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text or self.attachments)


NOTHING = Unfinished()
"""What is left where nothing was drafted."""


class Draft:
    """Text, attachments and the progress of tools, piece by piece. Sync: no cancellation falls between two pieces."""

    __slots__ = ("_attempt", "_grew", "_parts", "_pieces", "_progress", "_role", "_sealed")

    def __init__(self, role: str, attempt: int, grew: Callable[[str, str], None]) -> None:
        self._role = role
        self._attempt = attempt
        self._grew = grew
        self._pieces: list[str | Text] = []
        self._parts: dict[str, list[str | Text]] = {}
        self._progress: dict[tuple[str, str], list[str]] = {}
        self._sealed = False

    @property
    def text(self) -> str:
        """All that was written and not taken."""
        return "".join(map(str, self._pieces))

    @property
    def just_begun(self) -> bool:
        """Whether the text is one piece: what was written before that has been taken."""
        return len(self._pieces) == 1

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """One for each type that was attached and not taken, in the order of their beginning."""
        return tuple(Attachment.create(type, NO_TEXT.join(pieces)) for type, pieces in self._parts.items())

    def write(self, text: str | Text) -> None:
        """Adds a piece, such as a delta of a model's reply. Raises AttemptEnded once the attempt is over.

        As all that may be recorded, it raises ValueError for text that UTF-8 cannot hold.
        """
        self._refuse_if_sealed()
        string = str(text) if isinstance(text, Text) else text
        check_text(string, "text of a draft")
        if string:
            self._pieces.append(text)
            self._grew(string, TEXT)

    def attach(self, type: AttachmentType | str, text: str | Text) -> None:
        """Adds a piece to the attachment of that type. Raises ValueError for a type that is none, AttemptEnded."""
        self._refuse_if_sealed()
        name = str.__str__(type)
        pieces = self._parts.get(name)
        if pieces is None and attachment_type(name) is AttachmentType.shared_memory_entry:
            raise ValueError("a shared memory entry is not written piece by piece; use context.share")
        string = str(text) if isinstance(text, Text) else text
        check_text(string, name)
        if pieces is not None:
            pieces.append(text)
        elif string:
            self._parts[name] = [text]
        if string:
            self._grew(string, name)

    def progress(self, tool: str, text: str, call: str = "") -> None:
        """Adds to what a running tool has said of itself; interrupted, it stands in the outcome of that call."""
        self._refuse_if_sealed()
        check_text(text, f"progress of {tool}")
        if text:
            self._progress.setdefault((tool, call), []).append(text)
            self._grew(text, tool)

    def take(self) -> str:
        """All that was written, and the text is empty again. Record it in the same step, without an `await`."""
        return self.take_text().string

    def take_text(self) -> Text:
        """As `take`, with its temporal parts."""
        self._refuse_if_sealed()
        text = NO_TEXT.join(self._pieces)
        self._pieces.clear()
        return text

    def take_attachments(self) -> tuple[Attachment, ...]:
        """All that was attached, and nothing is attached any more. Record it in the same step."""
        self._refuse_if_sealed()
        attachments = self.attachments
        self._parts.clear()
        return attachments

    def take_progress(self, tool: str, call: str = "") -> str:
        """What a tool has said of itself, and it has said nothing."""
        return "".join(self._progress.pop((tool, call), ()))

    def seal(self) -> Unfinished:
        """Ends the draft with its attempt; gives what was left in it."""
        left = Unfinished(NO_TEXT.join(self._pieces), self.attachments)
        self._sealed = True
        self._grew = _nothing
        self._pieces.clear()
        self._parts.clear()
        return left

    def _refuse_if_sealed(self) -> None:
        if self._sealed:
            raise AttemptEnded(self._role, self._attempt)


def _nothing(text: str, type: str) -> None:
    """What a sealed draft tells of its growth; it holds nothing of its attempt."""
