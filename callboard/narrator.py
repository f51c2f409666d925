"""Narrator: tells a conversation in lines of text, while it runs and afterwards. Lines fit into 80 columns."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterator

import trio

from callboard.runtime import Post, Round
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

WIDTH = 80
Write = Callable[[str], None]


def fit(text: str, width: int) -> str:
    """The text on one line: its first line, and how many more there are, cut to a width."""
    first, *more = text.strip().splitlines() or [""]
    rest = f" (+{len(more)} lines)" if more else ""
    room = width - len(rest)
    return (first if len(first) <= room else first[: room - 3] + "...") + rest


def lines_in(text: str) -> str:
    """How many lines a text has, in words."""
    count = len(text.splitlines())
    return "nothing" if not count else f"{count} line{'' if count == 1 else 's'}"


class Narrator:
    """Follows the events of one conversation."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._asked: dict[str, str] = {}
        """The messages of the posts seen so far, by id."""
        self._started = trio.current_time()

    async def follow(self, events: AsyncIterable[Event], pieces: int, due: trio.Event) -> None:
        """Writes a line for each event until the end. Sets `due` after so many pieces of drafts, or a round's end."""
        async for event in events:
            if isinstance(event, PostRecorded):
                self._asked[event.post.id] = event.post.message
            if (said := self.say(event)) is not None:
                passed = trio.current_time() - self._started
                self._write(f"{passed:4.1f} s  " + fit(said, WIDTH - 8))
            pieces -= isinstance(event, DraftGrew)
            if pieces <= 0 or isinstance(event, RoundEnded):
                due.set()

    def say(self, event: Event) -> str | None:
        """What one event means, or None for one that says nothing new."""
        match event:
            case RoundBegan(user_query=query):
                return f"{'User':12}asks: {query}"
            case AttemptBegan(role, post, attempt):
                again = f" attempt {attempt}" if attempt > 1 else ""
                return f"{role:12}begins{again}: {self._asked.get(post, '')}"
            case DraftGrew(role, text=text):
                return f"{role:12}  + {text}"
            case WordsAccepted(words):
                return f"{'User':12}says: {words.message}"
            case AttemptCut(role, words=words_id):
                return f"{role:12}is {'recalled' if words_id is None else 'interrupted'}"
            case PostRecorded(post):
                return _recorded(post)
            case RoundEnded(state=state):
                return f"{'':12}the round is {state}"
        return None


def _recorded(post: Post) -> str | None:
    """What a recorded post means; requests are told when work on them begins."""
    match post.marks.kind, post.marks.state:
        case _, "partial":
            return f"{post.send_from:12}leaves {lines_in(post.message)} unfinished"
        case _, "not_started":
            return f"{post.send_from:12}had not started"
        case "reply" | "error", _:
            return f"{post.send_from:12}answers {post.send_to}: {post.message}"
        case "note", _ if post.message:
            return f"{post.send_from:12}has finished {lines_in(post.message)}"
        case "intervention", _:
            return f"{post.send_to:12}gets the user's words"
    return None


def tree_of(round_: Round, width: int) -> Iterator[str]:
    """The posts of a round, each below the request it belongs to; what was cut and what was kept is marked."""
    depths: dict[str, int] = {}
    """How deep each request stands, by its id."""
    serving: dict[str, int] = {}
    """How deep the newest request to each role stands."""
    for post in round_.post_list:
        marks = post.marks
        if marks.in_reply_to in depths:
            depth = depths[marks.in_reply_to] + 1
        elif marks.kind == "intervention":
            depth = serving.get(post.send_to, 0) + 1
        else:
            depth = serving.get(post.send_from, -1) + 1
            depths[post.id] = serving[post.send_to] = depth
        if post.message or marks.state != "whole" or marks.kind != "note":
            head = "  " * depth + f"{post.send_from} > {post.send_to}" + _marked(post)
            yield f"{head}: {fit(post.message, width - len(head) - 2)}" if post.message else head


def _marked(post: Post) -> str:
    match post.marks.kind, post.marks.state:
        case _, "partial":
            return f"  [CUT, kept {lines_in(post.message)}]"
        case _, "not_started":
            return "  [CUT before it began]"
        case "message" | "reply", _:
            return ""
        case kind, _:
            return f"  [{kind}]"
