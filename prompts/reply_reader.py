"""Reply reader: finds the reply in what a model says, and hands out its members while they grow.

The rule to know: the first object with the key ``response`` is the reply. What stands before and after it, and what
the model thinks in tags, is no part of it and kept apart. How the text was cut into pieces makes no difference.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from .json_scanner import Fault, JsonScanner
from .json_string import HALF_ESCAPE, IN_STRING, end_of, unescaped
from .reply_members import RESPONSE, MemberListener, Members

_PLAIN = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]+')
_TAGS = tuple(f"<{end}{name}>" for name in ("think", "thinking", "reasoning") for end in ("", "/"))
_MARK = re.compile("|".join([r"\{", *_TAGS]), re.IGNORECASE)
_END_OF_THOUGHT = re.compile("|".join(tag for tag in _TAGS if "/" in tag), re.IGNORECASE)
_FENCE_BEFORE = re.compile(r"(?:^|\n)[ \t]*```[\w-]*\s*\Z")
_FENCE_AFTER = re.compile(r"\A\s*```[ \t]*(?:\r?\n|\Z)")


@dataclass(slots=True)
class _Thought:
    """Where the model thinks."""

    opened: int
    """Where the tag begins that opens it."""
    begin: int
    end: int = sys.maxsize
    closed: int = sys.maxsize
    """Behind the tag that closes it."""


@dataclass(frozen=True, slots=True)
class ReplyReport:
    """How a reply was read. Positions are in characters from the first that the model said."""

    complete: bool = True
    """Whether the reply came to its end, or as far as it was wanted; if not, one of the two positions is given."""
    truncated_at: int | None = None
    """Where it breaks off."""
    invalid_at: int | None = None
    """Where it is none; in a text without one, where the first object that could have been it went wrong."""
    problem: str = ""
    """What is wrong, with line and column, for a model to read."""
    unknown: tuple[str, ...] = ()
    """The members that were passed over, and keys beside ``response``."""
    lenient: tuple[str, ...] = ()
    """What was accepted that JSON does not allow."""
    before: str = ""
    """What was said before the reply, without a fence."""
    after: str = ""
    """What was said after it, without a fence."""
    thinking: str = ""
    """What stands in think tags before it."""


class ReplyReader:
    """Reads one reply. Values that are no strings become their JSON text, null an empty string."""

    def __init__(self, known: Collection[str], listener: MemberListener) -> None:
        self._known = known
        self._listener = listener
        self._pieces: list[str] = []
        self._high = ""
        """The first half of a surrogate pair, whose second comes with the next piece."""
        self._held = ""
        """The end of what has come that is to be read with the next piece: half a tag, or half an escape."""
        self._in_text = False
        """Whether a member's text is under way, and no sign of it is half there."""
        self._stage: Callable[[str, int], int] = self._prose
        self._position = 0
        """Where in the whole text the prose goes on."""
        self._thoughts: list[_Thought] = []
        self._began = 0
        """Where the object begins that is read."""
        self._members = Members(known, listener)
        self._scanner = JsonScanner(self._members)
        self._first: Fault | None = None
        """What went wrong with the first object that could have been the reply."""

    @property
    def values(self) -> Mapping[str, str]:
        """The members that are whole, in the order in which they came."""
        return self._members.values

    @property
    def text(self) -> str:
        """All that the model said; half a surrogate pair is the sign U+FFFD."""
        return "".join(self._pieces)

    def feed(self, text: str) -> None:
        """Takes one more piece, and tells the listener what it brings."""
        if self._in_text and self._read_on(text):
            return
        if self._high or not text.isascii():
            text = self._whole_signs(text)
        self._pieces.append(text)
        text, self._held = self._held + text, ""
        at = 0
        while at < len(text):
            at = self._stage(text, at)
        members = self._members
        members.flush()
        self._in_text = members.growing and not (self._high or self._scanner.escape)

    def _read_on(self, text: str) -> bool:
        """Whether the piece brings more of the text that is under way and nothing else, as most pieces do."""
        if not self._held and _PLAIN.fullmatch(text):
            more = text
        else:
            whole = self._held + text
            stop = end_of(IN_STRING, whole, 0)
            if not HALF_ESCAPE.fullmatch(whole, stop):
                return False
            more, self._held = unescaped(whole[:stop]), whole[stop:]
            self._scanner.position -= len(self._held) - (len(whole) - len(text))
        self._pieces.append(text)
        self._scanner.position += len(text)
        if more:
            self._members.grow(more)
        return True

    def close(self) -> ReplyReport:
        """How it was read, when all has come."""
        text = self.text + ("\ufffd" if self._high else "")
        found, scanner = self._members.found, self._scanner
        start, end = (self._began, scanner.position) if found else (len(text), len(text))
        truncated, fault = self._fault_of(text)
        return ReplyReport(
            complete=fault is None,
            truncated_at=fault.at if fault is not None and truncated else None,
            invalid_at=fault.at if fault is not None and not truncated else None,
            problem="" if fault is None else f"{fault.problem}, at {place(text, fault.at)}",
            unknown=tuple(self._members.unknown) if found else (),
            lenient=tuple(scanner.lenient) if found else (),
            before=_FENCE_BEFORE.sub("", self._without_thoughts(text[:start])).strip(),
            after="" if not scanner.done else _FENCE_AFTER.sub("", text[end:]).strip(),
            thinking="\n".join(filter(None, (text[one.begin : one.end].strip() for one in self._thoughts))),
        )

    def _fault_of(self, text: str) -> tuple[bool, Fault | None]:
        """Whether it breaks off, and what is wrong with it."""
        end = len(text)
        if self._stage == self._thought:
            return True, Fault(end, "the reply breaks off while it is still thinking")
        if self._stage == self._object:
            return True, Fault(end, "the reply breaks off")
        if self._members.found:
            return False, self._scanner.fault
        if self._first is not None:
            return False, self._first
        said = self._without_thoughts(text).strip()
        missing = f"there is no JSON object with the key {RESPONSE!r}" if said else "the reply is empty"
        return False, Fault(0 if said else end, missing)

    def _whole_signs(self, text: str) -> str:
        """The text with halves of surrogate pairs joined; the last waits for its other half."""
        text, self._high = self._high + text, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._high = text[:-1], text[-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _prose(self, text: str, at: int) -> int:
        mark = _MARK.search(text, at)
        if mark is None:
            return self._hold(text, at)
        self._position += mark.end() - at
        if mark[0] == "{":
            self._began = self._position - 1
            self._members = Members(self._known, self._listener)
            self._scanner = JsonScanner(self._members, self._began)
            self._members.refuse, self._members.stop = self._scanner.refuse, self._scanner.stop
            self._stage = self._object
            return mark.start()
        tag = self._position - len(mark[0])
        if "/" in mark[0]:  # the tag that opens it stood in what the model was sent
            self._thoughts = [_Thought(0, 0, tag, self._position)]
        else:
            self._thoughts.append(_Thought(tag, self._position))
            self._stage = self._thought
        return mark.end()

    def _thought(self, text: str, at: int) -> int:
        mark = _END_OF_THOUGHT.search(text, at)
        if mark is None:
            return self._hold(text, at)
        self._position += mark.end() - at
        thought = self._thoughts[-1]
        thought.end, thought.closed = self._position - len(mark[0]), self._position
        self._stage = self._prose
        return mark.end()

    def _hold(self, text: str, at: int) -> int:
        """All is read but what may be the beginning of a tag."""
        begun = text.rfind("<", at)
        if begun >= 0 and any(tag.startswith(text[begun:].lower()) for tag in _TAGS):
            self._held = text[begun:]
        self._position += len(text) - at - len(self._held)
        return len(text)

    def _object(self, text: str, at: int) -> int:
        at = self._scanner.feed(text, at)
        if self._scanner.done or self._scanner.fault is not None:
            self._object_ended()
        return at

    def _object_ended(self) -> None:
        if self._members.found:
            self._stage = self._rest
            return
        if self._first is None and self._members.unknown:
            missing = Fault(self._began, f"the key {RESPONSE!r} is missing in the object")
            self._first = self._scanner.fault or missing
        self._position = self._scanner.position
        self._stage = self._prose

    def _rest(self, text: str, at: int) -> int:
        return len(text)

    def _without_thoughts(self, text: str) -> str:
        """What of it is said, and not thought."""
        ends = [0, *(one.closed for one in self._thoughts)]
        begins = [*(one.opened for one in self._thoughts), len(text)]
        return "".join(text[end:begin] for end, begin in zip(ends, begins, strict=True))


def place(text: str, position: int) -> str:
    """Where that is, for somebody who reads the text."""
    before = text[:position]
    return f"line {before.count(chr(10)) + 1}, column {position - before.rfind(chr(10))}"
