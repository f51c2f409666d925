"""Recorded play: the script that a round of a recorded conversation is for its roles, checked before it is played.

The rule to know: work in a recording is nested. A role that is asked plays its next posts: one to another role asks it,
one to itself is a note, and one to its asker is the reply with which that turn ends.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from callboard.runtime import Post, Round, Transcript
from callboard.runtime.directory import RESERVED
from callboard.runtime.errors import InvalidFile
from callboard.runtime.post import USER
from callboard.runtime.transcript_file import FilePath, line_of, read_text

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class RecordedPlay:
    """What is to be played."""

    query: str
    """What the user asks."""
    root: str
    """The role that it goes to."""
    scripts: Mapping[str, tuple[Post, ...]]
    """The posts of each role, in order; some have none."""
    left_over: int
    """How many posts nobody will come to."""


def read_play(path: FilePath) -> RecordedPlay:
    """The play of the first round that the user began; raises InvalidFile for a file that cannot be read or played."""
    rounds = Transcript.from_yaml(path).rounds
    try:
        number, start = _first_query(rounds)
        return _Rehearsal(rounds[number], ("rounds", number, "post_list"), start).run()
    except _Unplayable as fault:
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault.place).lstrip(".")
        line = line_of(read_text(path), fault.place)
        raise InvalidFile(fault.message, path=path, line=line, key=key, remedy=fault.remedy) from None


class _Unplayable(Exception):
    """Why a recording cannot be played, and where in the file."""

    def __init__(self, place: Place, message: str, remedy: str) -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.remedy = remedy


def _first_query(rounds: tuple[Round, ...]) -> tuple[int, int]:
    """The numbers of the first round with a post of the user's to a role, and of that post."""
    for number, round_ in enumerate(rounds):
        for index, post in enumerate(round_.post_list):
            if post.send_from == USER != post.send_to:
                return number, index
    place: Place = ("rounds", 0, "post_list") if rounds else ("rounds",)
    raise _Unplayable(place, "nobody asks anything", "begin a post_list with a post that has `send_from: User`")


class _Rehearsal:
    """Goes through a round as the roles will, and finds out whether each turn comes to its reply."""

    def __init__(self, round_: Round, place: Place, start: int) -> None:
        self._round = round_
        self._place = place
        self._start = start
        self._scripts: dict[str, list[Post]] = {}
        self._waiting: dict[str, deque[tuple[int, Post]]] = {}
        for index, post in enumerate(round_.post_list):
            if post.send_from != USER:
                self._scripts.setdefault(post.send_from, []).append(post)
                self._waiting.setdefault(post.send_from, deque()).append((index, post))

    def run(self) -> RecordedPlay:
        """The play; raises _Unplayable at the first post that cannot be played."""
        post = self._round.post_list[self._start]
        self._enact(self._start, post, [USER])
        left_over = sum(map(len, self._waiting.values()))
        scripts = {role: tuple(posts) for role, posts in self._scripts.items()}
        return RecordedPlay(post.message or self._round.user_query, post.send_to, scripts, left_over)

    def _enact(self, index: int, asked: Post, askers: list[str]) -> None:
        """The turn of the role that gets the post with this number."""
        role, asker = asked.send_to, askers[-1]
        self._check_name(index, role)
        steps = self._waiting.get(role, deque())
        while steps:
            step, post = steps.popleft()
            if post.send_to == asker:
                return
            if post.send_to in askers:
                remedy = f"let it answer {asker} first"
                raise self._fault(step, f"{role} writes to {post.send_to} while {asker} waits for it", remedy)
            if post.send_to != role:
                self._enact(step, post, [*askers, role])
        remedy = f"write a post with `send_from: {role}` and `send_to: {asker}`"
        raise self._fault(index, f"{role} never answers {asker}", remedy)

    def _check_name(self, index: int, role: str) -> None:
        if role in RESERVED or not _NAME.fullmatch(role):
            remedy = "use a letter, then letters, digits, _ and -"
            raise self._fault(index, f"{role!r} cannot be the name of a role", remedy)

    def _fault(self, index: int, message: str, remedy: str) -> _Unplayable:
        return _Unplayable((*self._place, index, "send_to"), message, remedy)
