"""Spoken: all that the user has said in a conversation, by id, and how it becomes rounds and interventions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import replace

from .errors import ConversationClosed
from .ids import Ids, current_ids
from .intervention import Interventions
from .line import Line
from .queued import Queued
from .receipt import Words
from .request import Request
from .router import Router
from .turn import Turn
from .user_message import UserMessage


class Spoken:
    """A message that is said again under its id is the first one. All of it is sync."""

    def __init__(self, router: Router, line: Line, interventions: Interventions, ids: Ids) -> None:
        self._router = router
        self._line = line
        self.interventions = interventions
        self._ids = ids
        self._words: dict[str, Words] = {}
        self._queued: dict[str, Queued] = {}
        interventions.on_missed = self._missed
        line.on_refused = self._refused

    def before(self, message: str | UserMessage) -> Words | None:
        """The words that were said under this message's id, if any were."""
        return self._words.get(message.id) if isinstance(message, UserMessage) else None

    def named(self, message: str | UserMessage) -> UserMessage:
        """The message, with an id."""
        if isinstance(message, str):
            return UserMessage(message, id=self._ids.create("words"))
        return message if message.id else replace(message, id=self._ids.create("words"))

    def check_open(self) -> None:
        """Raises ConversationClosed if no new round is taken: at the end, and while the board is drained."""
        if self._router.closed:
            raise ConversationClosed
        if self._line.refusal is not None:
            raise copy.copy(self._line.refusal)

    def keep(self, words: Words) -> Words:
        """From now on they are found under their id."""
        self._words[words.id] = words
        return words

    def start(self, words: Words, request: Request) -> None:
        """The words become a round, at once or when it is their turn."""
        words.request = request
        words.action = "waiting"
        self.inside(self._line.add, request)

    def send(self, message: str | UserMessage) -> Request:
        """A round of the message, of which only one with an id is kept in mind. Raises ConversationClosed."""
        self.check_open()
        request = Request(self.named(message))
        if isinstance(message, UserMessage) and message.id:
            self.start(self.keep(Words(request.words)), request)
        else:
            self.inside(self._line.add, request)
        return request

    def enqueue(self, message: str | UserMessage) -> Queued:
        """A round for later; of an id that stands in line, the first. Raises ConversationClosed."""
        if isinstance(message, UserMessage) and message.id in self._queued:
            return self._queued[message.id]
        known = self.before(message)
        if known is not None and known.request is not None:
            return Queued(known.request, self._line)
        self.check_open()
        request = Request(self.named(message))
        request.outlasts_stop = True
        queued = self._queued[request.words.id] = Queued(request, self._line)
        self.start(self.keep(Words(request.words)), request)
        return queued

    def queued(self) -> tuple[Queued, ...]:
        """What was put in line for later and has not begun, in order."""
        waiting = (request.words.id for request in self._line.waiting if request.outlasts_stop)
        return tuple(self._queued[id] for id in waiting)

    def in_line(self, id: str) -> Queued | None:
        """What was put in line for later under this id and has not begun."""
        return self._queued.get(id)

    def say(self, words: Words, request: Request | None) -> Words:
        """Intervenes with the words; what meets nobody becomes the round of `request`, if there is one."""
        words.fallback = request
        words.request = self._line.current
        if self._line.stopping:
            words.settled = "missed"
            self._missed(words)
        else:
            self.inside(self.interventions.submit, words)
        return self.keep(words)

    def round_began(self, request: Request, turn: Turn) -> None:
        """The words of a request lie in its first post."""
        self._queued.pop(request.words.id, None)
        words = self._words.get(request.words.id)
        if words is not None:
            self.interventions.follow(words, turn)

    def give_back(self) -> None:
        """The round fails: words that wait become the next one, if they may."""
        for words in self.interventions.drop():
            self._missed(words)

    def inside(self, function: Callable[..., object], *arguments: object) -> None:
        """Calls with the conversation's own source of ids, whoever calls."""
        if current_ids.get() is self._ids:
            function(*arguments)
            return
        variables = copy_context()
        variables.run(current_ids.set, self._ids)
        variables.run(function, *arguments)

    def _refused(self, request: Request) -> None:
        self._queued.pop(request.words.id, None)
        words = self._words.get(request.words.id)
        if words is not None:
            words.action = words.settled = "missed"
            words.changed()

    def _missed(self, words: Words) -> None:
        if words.fallback is not None:
            self.keep(words)
            self.start(words, words.fallback)
        elif words.settled == "missed":
            words.request = None
