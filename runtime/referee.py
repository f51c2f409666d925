"""Referee: holds the invariants of interruption against one conversation while it runs.

It reads every event in the step in which it happens, and the tree of turns beside it. What it finds broken it keeps,
since an error raised in the middle of the runtime's step would break what it looks at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import trio

from .conversation import Conversation
from .event import AttemptBegan, AttemptCut, Event, PostRecorded, RoundEnded, ToolBegan, ToolEnded, WordsAccepted
from .post import Post
from .receipt import Receipt, Words
from .subscription import Subscription
from .turn import Turn


class Invariant(Enum):
    """What must hold whatever is interrupted, wherever; the value says it in full."""

    ACCEPT_THEN_CUT = (
        "accept, then cut; record, then begin: a new attempt reads the words, after all its predecessor did"
    )
    RECALLED = "an abandoned ask is a recalled request, and it is joined"
    ALONE = (
        "no attempt beside an old one: nothing it started or asked for is alive when the next begins or send returns"
    )
    ONE_SCOPE = "one scope an attempt"
    ONCE = "the highest interrupted turn of a chain starts again, once"
    ONE_ANSWER = "one answer: every request has one outcome, and no ask hangs"
    CLEAN_UP = "clean-up that raises is recorded and does not fail the turn"
    HOST_UNHARMED = "the host's program ends as it does without an interruption"
    CALLS = "no call stays without an outcome: done, failed, interrupted or not started"
    NOTHING_LOST = "no message is lost: words are seen, told or missed, once; what was done is kept"


@dataclass(frozen=True, slots=True)
class Breach:
    """An invariant that did not hold, and where."""

    invariant: Invariant
    what: str

    def __str__(self) -> str:
        return f"{self.invariant.value.split(':')[0]}: {self.what}"


class Referee(Subscription[Event]):
    """`breaches` lists what was wrong, in order; empty if every invariant held."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__()
        self.breaches: list[Breach] = []
        self.posts: list[Post] = []
        self._conversation = conversation
        self._router = conversation._router
        self._accepted: set[str] = set()
        self._scopes: set[trio.CancelScope] = set()
        self._requests: dict[str, bool] = {}
        """Asks, by the id of their post; True for one that was asked while its asker's attempt was being cut."""
        self._cuts: Counter[str] = Counter()
        self._attempts: Counter[str] = Counter()
        self._closed_for: set[str] = set()
        """Roles that have the words that cut them: their old attempt must record nothing more."""
        self._unkept: dict[str, str] = {}
        """What stood in a role's draft when it was cut, until a post holds it."""
        self._calls: dict[str, str] = {}
        """The calls of tools that have no outcome yet, with their roles."""
        self._offered: set[tuple[str, str]] = set()
        """Roles and the words that lay in their rounds when an attempt of theirs began."""
        self._rounds_ended: dict[str, tuple[float, str]] = {}
        """When rounds ended, and how."""
        self._placed: dict[str, dict[str, str]] = {}
        """By the id of words: the roles whose rounds hold them, and into which round they were recorded."""

    def put(self, item: Event) -> None:
        """Looks at an event as it happens."""
        match item:
            case AttemptBegan(role, post_id):
                self._attempt_began(self._turn(role, post_id))
            case AttemptCut(role, post_id, _, words_id):
                self._attempt_cut(self._turn(role, post_id), words_id)
            case PostRecorded(post, round_id) if post.marks.kind in ("intervention", "nudge"):
                self._words_recorded(post, round_id)
            case PostRecorded(post):
                self._post_recorded(post)
            case ToolBegan(role, call=call):
                self._calls[call] = role
            case ToolEnded(call=call):
                self._expect(call in self._calls, Invariant.CALLS, f"{call} has ended twice")
                self._calls.pop(call, None)
            case WordsAccepted(words):
                self._accepted.add(words.id)
            case RoundEnded(round_id, state):
                self._rounds_ended[round_id] = (trio.current_time(), state)
                left = [turn for turn in self._router.turns if turn.foreground]
                self._expect(not left, Invariant.ALONE, f"the round ended over {left}")

    def judge(self, receipts: Sequence[Receipt], injected_at: float) -> list[Breach]:
        """The verdict after the scenario: what was broken on the way, and what the end leaves open."""
        left = list(self._router.turns)
        self._expect(not left, Invariant.ONE_ANSWER, f"{left} never ended")
        self._expect(not self._calls, Invariant.CALLS, f"{self._calls} have no outcome")
        outcomes = Counter(post.marks.in_reply_to for post in self.posts if post.send_from != post.send_to)
        for post_id in self._requests:
            count = outcomes[post_id]
            self._expect(count == 1, Invariant.ONE_ANSWER, f"request {post_id} has {count} outcomes")
        self._expect(not self._unkept, Invariant.NOTHING_LOST, f"unfinished work {self._unkept}")
        kept = [post for round_ in self._conversation.transcript().rounds for post in round_.post_list]
        self._expect(kept == self.posts, Invariant.NOTHING_LOST, "memory holds other posts than were recorded")
        ids = {post.id for post in self.posts}
        self._expect(len(ids) == len(self.posts), Invariant.NOTHING_LOST, "a post was recorded twice")
        failures = [post for post in self.posts if post.marks.kind == "error" and post.send_from == post.send_to]
        cut = any(receipt.interrupted for receipt in receipts)
        told = not cut or any(receipt._words.errors for receipt in receipts)
        self._expect(told or not failures, Invariant.CLEAN_UP, f"no receipt has what raised: {failures}")
        for receipt in receipts:
            self._judge_words(receipt._words, injected_at)
        return self.breaches

    def _attempt_began(self, turn: Turn) -> None:
        below = [other for other in self._router.turns if other.asker is turn]
        self._expect(not below, Invariant.ALONE, f"{turn} begins over {below}")
        beside = [other for other in self._router.turns_of(turn.role) if other.state == "running" and other is not turn]
        if turn.post.marks.kind == "question":  # it runs in the task of its role's other turn
            beside = []
        self._expect(not beside, Invariant.ALONE, f"{turn} begins beside {beside}")
        asker = turn.asker
        abandoned = asker is not None and asker.cut and not (asker.shields or self._requests.get(turn.post.id, False))
        self._expect(not turn.recalled and not abandoned, Invariant.RECALLED, f"{turn} begins for nobody")
        self._expect(turn.scope not in self._scopes, Invariant.ONE_SCOPE, f"{turn} enters a scope again")
        if turn.scope is not None:
            self._scopes.add(turn.scope)
        self._attempts[turn.post.id] += 1
        attempts, cuts = self._attempts[turn.post.id], self._cuts[turn.post.id]
        once = attempts <= 1 + cuts and turn.attempts == attempts
        self._expect(once, Invariant.ONCE, f"attempt {attempts} of {turn} after {cuts} cuts")
        self._expect(not turn.pending, Invariant.ACCEPT_THEN_CUT, f"{turn} begins before its words are recorded")
        self._expect(turn.role not in self._unkept, Invariant.NOTHING_LOST, f"unfinished work {self._unkept}")
        self._expect(turn.role not in self._calls.values(), Invariant.CALLS, f"{turn} begins over {self._calls}")
        self._closed_for.discard(turn.role)
        self._offered.update((words, turn.role) for words, roles in self._placed.items() if turn.role in roles)

    def _attempt_cut(self, turn: Turn, words_id: str | None) -> None:
        known = words_id is None or words_id in self._accepted
        self._expect(known, Invariant.ACCEPT_THEN_CUT, f"{turn} was cut before {words_id} were accepted")
        self._cuts[turn.post.id] += 1
        if turn.draft is not None and turn.draft.text:
            self._unkept[turn.role] = turn.draft.text

    def _post_recorded(self, post: Post) -> None:
        self.posts.append(post)
        late = post.send_from in self._closed_for and post.marks.state != "not_started"
        late = late and "report" not in post.marks.extra  # a round that a report opens is begun by the runtime
        said = f"{post.send_from} recorded {post.message!r} after the words"
        self._expect(not late, Invariant.ACCEPT_THEN_CUT, said)
        self._look_for_kept_work(post)
        for turn in self._router.turns:
            if turn.post is post and turn.asked:
                self._requests[post.id] = turn.asker is not None and turn.asker.cut

    def _words_recorded(self, post: Post, round_id: str) -> None:
        self.posts.append(post)
        roles = self._placed.setdefault(post.marks.words or "", {})
        self._expect(post.send_to not in roles, Invariant.NOTHING_LOST, f"{post.send_to} has {post.marks.words} twice")
        roles[post.send_to] = round_id
        running = [turn for turn in self._router.turns_of(post.send_to) if turn.state == "running"]
        if len(running) == 1 and running[0].cut:  # of several, beside a question, only the first to end comes before
            self._closed_for.add(post.send_to)

    def _look_for_kept_work(self, post: Post) -> None:
        draft = self._unkept.get(post.send_from)
        finished = post.marks.kind == "reply" and post.marks.state == "whole"  # then the draft has served its purpose
        if draft is not None and (finished or draft in post.message):
            del self._unkept[post.send_from]

    def _judge_words(self, words: Words, injected_at: float) -> None:
        self._expect(not words.leaving, Invariant.RECALLED, f"{words.leaving} turns never left for {words.receipt}")
        if words.action in ("started", "waiting"):
            return
        placed = self._placed.get(words.id, {})
        agrees = words.settled is not None and (words.settled == "missed") != bool(placed)
        self._expect(agrees, Invariant.NOTHING_LOST, f"{words.receipt}, recorded for {list(placed)}")
        without = f"work went on without {words.receipt}"
        if words.settled == "missed" and words.reached:
            at_once = any(time == injected_at for time, _ in self._rounds_ended.values())
            self._expect(at_once, Invariant.NOTHING_LOST, without)
        if words.settled == "told" and words.role is None:
            offered = any((words.id, role) in self._offered for role in placed)
            ends = [self._rounds_ended.get(round_id, (injected_at, "")) for round_id in placed.values()]
            went_on = any(state == "finished" and time > injected_at for time, state in ends)
            self._expect(offered or not went_on, Invariant.NOTHING_LOST, without)

    def _turn(self, role: str, post_id: str) -> Turn:
        return next(turn for turn in self._router.turns_of(role) if turn.post.id == post_id)

    def _expect(self, holds: bool, invariant: Invariant, otherwise: str) -> None:
        if not holds:
            self.breaches.append(Breach(invariant, otherwise))
