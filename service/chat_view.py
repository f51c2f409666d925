"""Chat view: what happens in a conversation, shown on a screen while it happens."""

from __future__ import annotations

from collections.abc import Iterator

from callboard.experience.event import NoneGiven
from callboard.runtime import Receipt
from callboard.runtime.draft import TEXT
from callboard.runtime.event import (
    ActorEnded,
    ActorRestarted,
    AttemptBegan,
    AttemptCut,
    DeadLetter,
    DraftGrew,
    Event,
    EventsDropped,
    PostRecorded,
    RoundBegan,
    RoundEnded,
    ToolBegan,
    ToolEnded,
    WordsSettled,
    WorkAbandoned,
)
from callboard.runtime.model_event import ModelRetried

from .chat_post import lines_of
from .chat_screen import Draft, Line, Screen, Style

_TOLD = {
    "told": "Nobody read your words before the round ended; they are in its record.",
    "missed": "Your words met nobody.",
}


class ChatView:
    """Shows the events of one conversation."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._drafts: dict[str, list[str]] = {}
        """What each role has written and not recorded, in pieces."""
        self._growing: dict[str, str] = {}
        """What of it grows, by role: the type of the last piece."""

    def show(self, event: Event) -> None:
        """Shows one event."""
        match event:
            case RoundEnded():
                self._drop(*self._drafts)
            case AttemptBegan(role):
                self._drafts.setdefault(role, [])
                self._draw()
            case DraftGrew():
                self._grow(event)
            case AttemptCut(role):
                self._drop(role)
            case PostRecorded(post):
                self._drop(post.send_from)
        if lines := list(said_of(event)):
            self._screen.say(*lines)

    def _grow(self, event: DraftGrew) -> None:
        pieces = self._drafts.setdefault(event.role, [])
        if self._growing.get(event.role, TEXT) != event.type:
            pieces.append(f"\n[{event.type.replace('_', ' ')}] ")
        self._growing[event.role] = event.type
        pieces.append(event.text)
        self._draw()

    def _drop(self, *roles: str) -> None:
        dropped = [self._drafts.pop(role, None) for role in roles]
        for role in roles:
            self._growing.pop(role, None)
        if any(pieces is not None for pieces in dropped):
            self._draw()

    def _draw(self) -> None:
        self._screen.draft(Draft(f"{role} …", "".join(pieces)) for role, pieces in self._drafts.items())


def said_of(event: Event) -> Iterator[Line]:
    """The lines that stay of one event; none for one that says nothing to a reader."""
    match event:
        case RoundBegan(user_query=query):
            yield from you(query)
        case PostRecorded(post):
            yield from lines_of(post)
        case AttemptBegan(role, attempt=attempt) if attempt > 1:
            yield Line(f"{role} begins again: attempt {attempt}", "dim")
        case WordsSettled(outcome=outcome) if outcome in _TOLD:
            yield Line(_TOLD[outcome], "dim")
        case RoundEnded(state=state) if state != "finished":
            yield Line(f"The round is {state}.", "bad" if state == "failed" else "dim")
        case _:
            yield from (Line(text, style) for text, style in _troubles(event))


def _troubles(event: Event) -> Iterator[tuple[str, Style]]:
    match event:
        case ModelRetried(role, model, reason, seconds):
            yield f"{role} asks {model} again in {seconds:.1f} s: {reason}", "dim"
        case ToolBegan(role, tool=tool):
            yield f"{role} calls {tool}", "dim"
        case ToolEnded(role, tool=tool, outcome=outcome):
            yield f"{role}: {tool} is {outcome.replace('_', ' ')}", "dim"
        case WorkAbandoned(role, what=what):
            yield f"{role} left work behind that may still run: {what}", "bad"
        case ActorRestarted(role, error):
            yield f"{role} is opened anew: {error}", "bad"
        case ActorEnded(role, error) if error:
            yield f"{role} has left: {error}", "bad"
        case NoneGiven(role, what=what, reason=reason):
            yield f"{role} is given no {what}: {reason}", "dim"
        case DeadLetter(post, reason):
            yield f"A post to {post.send_to} is taken by nobody: {reason}", "dim"
        case EventsDropped(count):
            yield f"({count} events came too fast to be shown)", "dim"


def you(words: str) -> Iterator[Line]:
    """What the user says."""
    yield Line("You", "bold")
    yield Line(words, margin="  ")


def told_of(receipt: Receipt) -> Iterator[Line]:
    """What became of the user's words up to now, in one line."""
    match receipt.action:
        case "started":
            return
        case "missed":
            yield Line("Nothing runs.", "dim")
        case "waiting":
            yield Line("They wait for their round.", "dim")
        case "intervened":
            deeds = ((name, getattr(receipt, name)) for name in _DEEDS)
            yield Line("; ".join(f"{name} {', '.join(roles)}" for name, roles in deeds if roles), "dim")


_DEEDS = ("reached", "interrupted", "recalled", "told", "spared")
