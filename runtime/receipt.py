"""Receipt: what became of the user's words. `Words` is the state, kept by the runtime; `Receipt` lets a host read it.

Names of roles stand innermost first. They change only when words are aimed again, and are final once `seen` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import trio

from .errors import Missed
from .event import WordsOutcome
from .json_value import frozen
from .post import USER, Kind, Post
from .request import Request
from .signal import Signal
from .user_message import UserMessage

Action = Literal["started", "intervened", "waiting", "missed"]
Delivery = Literal["now", "after_step", "after_turn"]
"""When an intervention takes hold: in the call, when no reached turn is in a step, when the leaves have ended."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The work that an intervention ended."""

    posts: tuple[Post, ...]
    """What was kept of it, in the order in which it was recorded: partial posts, finished replies, "not started"."""
    abandoned: tuple[str, ...]
    """What could not be ended within its limits, such as a thread, and may still be running."""
    errors: tuple[Exception, ...]
    """What clean-up raised; each is recorded as an error post too."""


class Words:
    """One message of the user's on its way: whom it was aimed at, who has it, who has read it."""

    def __init__(
        self, message: UserMessage, level: int = 1, role: str | None = None, delivery: Delivery = "now"
    ) -> None:
        if not isinstance(level, int) or isinstance(level, bool) or level == 0:
            raise ValueError(f"broadcast_level is a whole number other than 0, not {level!r}")
        if delivery not in get_args(Delivery):
            raise ValueError(f"delivery is 'now', 'after_step' or 'after_turn', not {delivery!r}")
        self.message = message
        self.said = frozen({"id": message.id, "message": message.message})
        """What an asker reads of them in the account of a recalled request; made once, for however many."""
        self.delivery = delivery
        self.kind: Kind = "intervention"
        self.author = USER
        self.level = level
        self.role = role
        self.fallback: Request | None = None
        """The round that they become if they meet nobody."""
        self.action: Action = "missed"
        self.reached: dict[str, None] = {}
        self.interrupted: dict[str, None] = {}
        self.recalled: dict[str, None] = {}
        self.told: dict[str, None] = {}
        self.spared: dict[str, None] = {}
        self.placed: set[str] = set()
        """Roles whose rounds hold the words."""
        self.posts: dict[str, Post] = {}
        """By role, the post by which they stand in its rounds, or will."""
        self.rewritten: dict[str, UserMessage] = {}
        """By role, what the host lets it read of them, where that is something else."""
        self.seen_by: set[str] = set()
        """Reached roles that read them, from memory or `user_words`."""
        self.held_back = False
        """Whether they wait for a step or a turn to end."""
        self.leaving = 0
        """Turns that were cut or recalled for these words and have not ended their attempt."""
        self.kept: list[Post] = []
        self.abandoned: list[str] = []
        self.errors: list[Exception] = []
        self.settled: WordsOutcome | None = None
        self.request: Request | None = None
        """The round whose answer these words are part of."""
        self.receipt = Receipt(self)
        self._changed = Signal()

    @property
    def id(self) -> str:
        """The message's id."""
        return self.message.id

    def read_by(self, role: str) -> UserMessage:
        """The message as that role is to read it."""
        return self.rewritten.get(role, self.message)

    def changed(self) -> None:
        """Lets those who wait look again."""
        self._changed.fire()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Until `condition` holds; looked at whenever something changes. Always a checkpoint."""
        await trio.lowlevel.checkpoint()
        while not condition():
            await self._changed.wait()

    def outcome(self) -> WordsOutcome:
        """What has become of them up to now; exactly one of three."""
        if self.seen_by:
            return "seen"
        return "told" if self.placed else "missed"


class Receipt:
    """What a host holds of its words. Reading it steers nothing; waiting on it can be cancelled freely."""

    __slots__ = ("_words",)

    def __init__(self, words: Words) -> None:
        self._words = words

    @property
    def id(self) -> str:
        """The id of the message; the same id given again returns this receipt."""
        return self._words.id

    @property
    def author(self) -> str:
        """Who spoke: the user, or a role that spoke to one under it."""
        return self._words.author

    @property
    def action(self) -> Action:
        """What was done: a round started, an intervention made, the words kept waiting, or nobody met."""
        return self._words.action

    @property
    def reached(self) -> tuple[str, ...]:
        """The roles at which the words were aimed."""
        return tuple(self._words.reached)

    @property
    def interrupted(self) -> tuple[str, ...]:
        """The roles whose attempt was cut and that try again with the words."""
        return tuple(self._words.interrupted)

    @property
    def recalled(self) -> tuple[str, ...]:
        """The roles whose work was ended because their asker starts again."""
        return tuple(self._words.recalled)

    @property
    def told(self) -> tuple[str, ...]:
        """The reached roles that had nothing running to cut: the words lie in their rounds."""
        return tuple(self._words.told)

    @property
    def spared(self) -> tuple[str, ...]:
        """Roles that go on: their work is nobody's to wait for, or a block of theirs is let finish first."""
        return tuple(self._words.spared)

    async def recorded(self) -> None:
        """Returns once the words are in memory's log; they are from the call on."""
        await trio.lowlevel.checkpoint()

    async def stopped(self) -> Stopped:
        """What was kept of the work that these words ended, once all of it has unwound."""
        words = self._words
        await words.wait_until(lambda: not (words.leaving or words.held_back))
        return Stopped(tuple(words.kept), tuple(words.abandoned), tuple(words.errors))

    async def seen(self) -> bool:
        """True once a reached role has read the words; False if the round ended before: they were told or missed."""
        words = self._words
        await words.wait_until(lambda: bool(words.seen_by) or words.settled is not None)
        return bool(words.seen_by)

    async def reply(self) -> Post:
        """The answer of the round that took the words. Raises what `send` raises, and Missed if no round did.

        Cancelled: the round goes on.
        """
        await trio.lowlevel.checkpoint()
        while (request := self._words.request) is not None:
            await request.wait_ended()
            if self._words.request is request:
                return request.unwrap()
        raise Missed(self.id)

    def __repr__(self) -> str:
        return f"<Receipt {self.id}: {_sentence(self._words)}>"


def _sentence(words: Words) -> str:
    in_line = words.request is not None and words.request.round is None
    match words.action:
        case "started":
            return "started a round"
        case "waiting":
            return f"waiting {_WAITS['now' if in_line else words.delivery]}"
        case "missed":
            return "its round never began" if in_line else "met nobody"
    return f"{', '.join(_deeds(words))}; {_fate(words)}"


def _deeds(words: Words) -> Iterator[str]:
    if words.told.keys() != words.reached.keys():
        yield f"reached {_listed(words.reached)}"
    cut = {**words.interrupted, **words.recalled}
    for verb, names, how in (
        ("interrupted", words.interrupted, ""),
        ("recalled", words.recalled, ""),
        ("told", words.told, ""),
        ("let", [name for name in words.spared if name in cut], " finish a block first"),
        ("left", [name for name in words.spared if name not in cut], " at other work"),
    ):
        if names:
            yield f"{verb} {_listed(names)}{how}"


def _fate(words: Words) -> str:
    if words.seen_by:
        return f"seen by {_listed(name for name in words.reached if name in words.seen_by)}"
    return "not seen yet" if words.settled is None else "not seen before the round ended"


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


_WAITS = {
    "now": "in line for its round",
    "after_step": "for the running step to end",
    "after_turn": "for the turns at work to end",
}
