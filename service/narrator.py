"""Narrator: tells a conversation in lines of text while it runs. Lines fit into 80 columns."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterator

import trio

from callboard.runtime import AttachmentType, Post
from callboard.runtime.draft import TEXT
from callboard.runtime.event import (
    AttemptBegan,
    AttemptCut,
    DraftGrew,
    Event,
    PostRecorded,
    RoundBegan,
    RoundEnded,
    WordsAccepted,
)
from callboard.runtime.model_event import ModelRetried

from .plain_text import WIDTH, fit, lines_in
from .post_tree import kept_in, said_in

Write = Callable[[str], None]
_WRITTEN = {TEXT, *(type.value for type in AttachmentType)} - {"execution_result"}
"""The growth of drafts that is a model's writing; any other is what running code or a tool says."""


class Narrator:
    """Follows the events of one conversation."""

    def __init__(self, write: Write) -> None:
        self.ended = trio.Event()
        """A round has ended."""
        self._write = write
        self._asked: dict[str, str] = {}
        """The messages of the posts seen so far, by id."""
        self._open: dict[str, str] = {}
        """What each role has begun to say in a line that is not whole yet."""
        self._writing: set[str] = set()
        """The roles whose model is writing a reply."""
        self._started = trio.current_time()

    async def follow(self, events: AsyncIterable[Event], lines: int, due: trio.Event) -> None:
        """Writes what events mean, until they end. Sets `due` after so many lines of running code, or a round's end."""
        async for event in events:
            for line in self.lines(event):
                self._write(line)
                lines -= isinstance(event, DraftGrew) and event.type not in _WRITTEN
            if isinstance(event, RoundEnded):
                self.ended.set()
            if lines <= 0 or self.ended.is_set():
                due.set()

    def lines(self, event: Event) -> Iterator[str]:
        """What one event means, with the time, as lines to write."""
        for line in self.say(event):
            yield f"{trio.current_time() - self._started:4.1f} s  " + fit(line, WIDTH - 8)

    def say(self, event: Event) -> Iterator[str]:
        """The lines that say what one event means; none for one that says nothing new."""
        match event:
            case RoundBegan(user_query=query):
                yield _line("User", f"asks: {query}")
            case AttemptBegan(role, post, attempt):
                again = f" attempt {attempt}" if attempt > 1 else ""
                yield _line(role, f"begins{again}: {self._asked.get(post, '')}")
            case DraftGrew():
                yield from self._growth(event)
            case WordsAccepted(words):
                yield _line("User", f"SAYS: {words.message}")
            case AttemptCut(role, words=words_id):
                self._open.pop(role, None)
                self._writing.discard(role)
                yield _line(role, f"is {'recalled' if words_id is None else 'interrupted'}")
            case PostRecorded(post):
                self._asked[post.id] = post.message
                self._writing.discard(post.send_from)
                yield from recorded(post)
            case ModelRetried(role, reason=reason):
                yield _line(role, f"asks its model again: {reason}")
            case RoundEnded(state=state):
                yield _line("", f"the round is {state}")

    def _growth(self, event: DraftGrew) -> Iterator[str]:
        """Once that a model writes; what running code says, line by line."""
        role = event.role
        if event.type not in _WRITTEN:
            yield from (_line(role, f"  | {line}") for line in self._whole_lines(role, event.text))
        elif role not in self._writing:
            self._writing.add(role)
            yield _line(role, "is writing")

    def _whole_lines(self, role: str, text: str) -> list[str]:
        *whole, self._open[role] = (self._open.get(role, "") + text).split("\n")
        return [line for line in whole if line.strip()]


def recorded(post: Post) -> Iterator[str]:
    """What a recorded post means; requests are told when work on them begins."""
    for code in code_in(post) if (post.marks.kind, post.marks.state) == ("note", "whole") else ():
        yield _line(post.send_from, f"has written {lines_in(code.splitlines())} of Python")
    match post.marks.kind, post.marks.state:
        case _, "partial":
            yield _line(post.send_from, f"leaves {kept_in(post)} unfinished, which is kept")
        case _, "not_started":
            yield _line(post.send_from, "had not started")
        case "reply" | "error", _:
            yield _line(post.send_from, f"answers {post.send_to}: {said_in(post)}")
        case "note", _ if post.get_attachment("invalid_response"):
            yield _line(post.send_from, f"is to reply again: {corrected_in(post)}")
        case "note", _ if post.message:
            yield _line(post.send_from, f"has finished: {post.message}")
        case "intervention", _:
            yield _line(post.send_to, "gets the user's words")


def corrected_in(post: Post) -> str:
    """What is wrong with a reply that was put back to the model."""
    return "; ".join(str(piece.content) for piece in post.get_attachment("revise_message"))


def code_in(post: Post) -> list[str]:
    """The code that a post carries: each reply_content whose reply_type is python."""
    types = [str(piece.content).strip() for piece in post.get_attachment("reply_type")]
    contents = [str(piece.content) for piece in post.get_attachment("reply_content")]
    return [content for type, content in zip(types, contents, strict=False) if type == "python"]


def _line(role: str, text: str) -> str:
    return f"{role:15} {text}"
