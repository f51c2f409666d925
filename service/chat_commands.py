"""Chat commands: what a line that a user has typed asks for.

The rule to know: only what begins with one slash is a command. All else is words, and `//` says words that begin with
a slash.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias, cast, get_args

Verb = Literal["pause", "resume", "nudge", "stop", "tree", "save", "help", "exit"]
"""The commands that stand alone, without their slash."""

HELP = """\
words            a round if nothing runs, else an interruption of the roles at work
/level N words   the same, reaching N roles up the superior chain; -1 reaches the top
/queue words     a round for later; /queue alone tells what stands in line
/pause           roles stop at their next step
/resume          they go on, as after an empty line
/nudge           the active roles start again in place
/stop            ends the round with what it has
/tree            who works for whom, what runs, what is kept
/save            keeps the conversation, for lessons to be made of it
/help            this list
/exit            leaves, as Ctrl-D does; the transcript is saved
//words          words that begin with a slash
Ctrl-C           pauses and asks what to do; a second time it leaves"""


@dataclass(frozen=True, slots=True)
class Say:
    """Words for the conversation."""

    text: str
    level: int | None = None
    """How far they reach; None for the chat's own level."""


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Words for a round of their own, later."""

    text: str


@dataclass(frozen=True, slots=True)
class ShowQueue:
    """What stands in line is to be told."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that stands alone."""

    verb: Verb


@dataclass(frozen=True, slots=True)
class Blank:
    """An empty line."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """A line that asks for nothing there is."""

    why: str
    """One line that says so, and what there is."""


Line: TypeAlias = Say | Enqueue | ShowQueue | Command | Blank | Wrong

_VERBS: tuple[str, ...] = get_args(Verb)
_NAMES = (*_VERBS, "level", "queue")


def read_line(line: str) -> Line:
    """What the line asks for."""
    text = line.strip()
    if not text:
        return Blank()
    if not text.startswith("/"):
        return Say(text)
    if text.startswith("//"):
        return Say(text[1:])
    name, rest = _split(text[1:])
    match name:
        case _ if text[1:2].isspace():
            return Wrong(_unknown(""))
        case "level":
            return _level(rest)
        case "queue":
            return Enqueue(rest) if rest else ShowQueue()
        case _ if name not in _VERBS:
            return Wrong(_unknown(name))
        case _ if rest:
            return Wrong(f"/{name} stands alone; words stand in a line of their own")
    return Command(cast(Verb, name))


def _level(rest: str) -> Line:
    number, words = _split(rest)
    try:
        level = int(number)
    except ValueError:
        level = 0
    if not (level and words):
        return Wrong("/level takes a whole number other than 0, then words: /level 2 Count only 2025.")
    return Say(words, level)


def _split(text: str) -> tuple[str, str]:
    """The first word and what stands behind it."""
    first, *rest = text.split(maxsplit=1) or [""]
    return first, "".join(rest)


def _unknown(name: str) -> str:
    near = get_close_matches(name.lower(), _NAMES, n=1, cutoff=0.5)
    hint = f"the nearest is /{near[0]}" if near else "/help lists what there is"
    return f"there is no command /{name}; {hint}, and //{name} says it as words"
