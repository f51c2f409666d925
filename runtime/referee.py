"""Referee: holds the invariants of interruption against one conversation while it runs.

It reads every event in the step in which it happens, and the tree of turns beside it. What it finds broken it keeps,
since an error raised in the middle of the runtime's step would break what it looks at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import trio

from .conversation import Conversation
from .event import AttemptBegan, AttemptCut, Event, PostRecorded, RoundEnded
from .post import Post
from .receipt import Receipt
from .subscription import Subscription
from .turn import Turn


class Referee(Subscription[Event]):
    """`broken` lists what was wrong, in order; empty if every invariant held."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__()
        self.broken: list[str] = []
        self.posts: list[Post] = []
        self._router = conversation._router
        self._conversation = conversation
        self._scopes: list[trio.CancelScope] = []
        self._requests: dict[str, bool] = {}
        """Asks, by the id of their post; True for one that was asked while its asker's attempt was being cut."""
        self._cuts: Counter[str] = Counter()
        self._attempts: Counter[str] = Counter()
        self._closed_for: set[str] = set()
        """Roles that have the words that cut them: their old attempt must record nothing more."""
        self._unkept: dict[str, str] = {}
        """What stood in a role's draft when it was cut, until a post holds it."""
        self._rounds_ended: set[float] = set()
        """The times at which rounds ended."""

    def put(self, item: Event) -> None:
        """Looks at an event as it happens."""
        match item:
            case AttemptBegan(role, post_id):
                self._attempt_began(self._turn(role, post_id))
            case AttemptCut(role, post_id):
                self._attempt_cut(self._turn(role, post_id))
            case PostRecorded(post):
                self._post_recorded(post)
            case RoundEnded():
                self._rounds_ended.add(trio.current_time())
                foreground = [turn for turn in self._router.turns if turn.foreground]
                self._expect(not foreground, f"No attempt beside an old one: the round ended over {foreground}")

    def judge(self, receipts: Sequence[Receipt], injected_at: float) -> list[str]:
        """The verdict after the scenario: what was broken on the way, and what the end leaves open."""
        self._judge_requests()
        self._expect(not self._router.turns, f"One answer: {list(self._router.turns)} never ended")
        self._expect(not self._unkept, f"Partial work is kept: lost {self._unkept}")
        kept = [post for round_ in self._conversation.transcript().rounds for post in round_.post_list]
        self._expect(kept == self.posts, "Memory holds every post, in order")
        repeated = [post_id for post_id, count in Counter(post.id for post in self.posts).items() if count > 1]
        self._expect(not repeated, f"No message is lost: recorded twice {repeated}")
        for receipt in receipts:
            self._judge_receipt(receipt, injected_at)
        return self.broken

    def _attempt_began(self, turn: Turn) -> None:
        below = [other for other in self._router.turns if other.asker is turn]
        self._expect(not below, f"No attempt beside an old one: {turn} begins over {below}")
        beside = [other for other in self._router.turns_of(turn.role) if other.state == "running" and other is not turn]
        self._expect(not beside, f"No attempt beside an old one: {turn} begins beside {beside}")
        self._expect(not turn.recalled, f"An abandoned ask is a recalled request: {turn} begins for nobody")
        abandoned = turn.asker is not None and turn.asker.cut and not self._requests.get(turn.post.id, False)
        self._expect(not abandoned, f"An abandoned ask is a recalled request: {turn} begins for a cut asker")
        self._expect(turn.scope not in self._scopes, f"One scope an attempt: {turn} enters a scope again")
        if turn.scope is not None:
            self._scopes.append(turn.scope)
        self._attempts[turn.post.id] += 1
        cuts = self._cuts[turn.post.id]
        once = self._attempts[turn.post.id] <= 1 + cuts and turn.attempts == self._attempts[turn.post.id]
        self._expect(once, f"The highest interrupted turn starts again, once: {turn} after {cuts} cuts")
        words = [words.id for words in turn.pending]
        self._expect(not words, f"Record, then begin: {turn} begins without {words}")
        self._expect(turn.role not in self._unkept, f"Partial work is kept: {turn.role} lost {self._unkept}")
        self._closed_for.discard(turn.role)

    def _attempt_cut(self, turn: Turn) -> None:
        self._cuts[turn.post.id] += 1
        if turn.draft is not None and turn.draft.text:
            self._unkept[turn.role] = turn.draft.text

    def _post_recorded(self, post: Post) -> None:
        self.posts.append(post)
        running = [turn for turn in self._router.turns_of(post.send_to) if turn.state == "running"]
        if post.marks.kind == "intervention":
            before = [other for other in self.posts[:-1] if _same_words(other, post)]
            self._expect(not before, f"No message is lost: {post.marks.words} recorded twice for {post.send_to}")
            if running and running[0].cut:
                self._closed_for.add(post.send_to)
            return
        late = post.send_from in self._closed_for and post.marks.state != "not_started"
        self._expect(not late, f"Record, then begin: {post.send_from} recorded {post.message!r} after the words")
        self._look_for_kept_work(post)
        for turn in self._router.turns:
            if turn.post.id == post.id and turn.asked:
                self._requests[post.id] = turn.asker is not None and turn.asker.cut

    def _look_for_kept_work(self, post: Post) -> None:
        draft = self._unkept.get(post.send_from)
        finished = post.marks.kind == "reply" and post.marks.state == "whole"  # then the draft has served its purpose
        if draft is not None and (finished or draft in post.message):
            del self._unkept[post.send_from]

    def _judge_requests(self) -> None:
        outcomes = Counter(post.marks.in_reply_to for post in self.posts if post.send_from != post.send_to)
        for post_id in self._requests:
            count = outcomes[post_id]
            self._expect(count == 1, f"One answer: request {post_id} has {count} outcomes")

    def _judge_receipt(self, receipt: Receipt, injected_at: float) -> None:
        words = receipt._words
        fate = [words.settled == "seen", words.settled == "told", words.settled == "missed"]
        started = words.action in ("started", "waiting")
        self._expect(started or sum(fate) == 1, f"No message is lost: {receipt!r} is not settled")
        placed = [post for post in self.posts if post.marks.words == receipt.id and post.marks.kind == "intervention"]
        told_as_said = not started and (words.settled == "missed") == bool(placed)
        self._expect(not told_as_said, f"No message is lost: {receipt!r} but {len(placed)} roles have the words")
        if words.settled == "missed" and words.reached and not started:
            too_late = injected_at in self._rounds_ended
            self._expect(too_late, f"No message is lost: work went on without {receipt!r}")
        self._expect(not words.leaving, f"{receipt!r}: {words.leaving} turns never left")

    def _turn(self, role: str, post_id: str) -> Turn:
        return next(turn for turn in self._router.turns_of(role) if turn.post.id == post_id)

    def _expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.broken.append(otherwise)


def _same_words(one: Post, other: Post) -> bool:
    return one.marks.kind == other.marks.kind and one.marks.words == other.marks.words and one.send_to == other.send_to
