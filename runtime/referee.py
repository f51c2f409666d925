"""Referee: holds the invariants of interruption against one conversation while it runs.

It reads every event in the step in which it happens, and the tree of turns beside it. What it finds broken it keeps,
since an error raised in the middle of the runtime's step would break what it looks at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import trio
from trio.lowlevel import Task, current_task

from .boundary_watch import BoundaryWatch
from .budget_watch import BudgetWatch
from .conversation import Conversation
from .end_watch import EndWatch
from .event import AttemptBegan, AttemptCut, Event, PostRecorded, RoundEnded, ToolBegan, ToolEnded, WordsAccepted
from .invariant import Breach as Breach
from .invariant import Invariant as Invariant
from .leftovers import started_by
from .placement import Placement
from .post import Post
from .receipt import Receipt, Words
from .receipt_watch import ReceiptWatch
from .record import find_disorder
from .subscription import Subscription
from .turn import Turn


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
        self.own_tasks: dict[Turn, Task] = {}
        """Every turn that was begun, and the task in which its attempts run."""
        self.beginning: set[Task] = set()
        """Tasks that have not come back from the first wait of their attempt."""
        self.calls: dict[str, tuple[str, str]] = {}
        """The calls of tools that have no outcome yet, with the role and the post that it works on."""
        self._closed_for: set[str] = set()
        """Roles that have the words that cut them: their old attempt must record nothing more."""
        self._unkept: dict[str, tuple[str, str]] = {}
        """By the post worked on: the role, and what stood in its draft when it was cut, until a post holds it."""
        self._placement = Placement()
        self._ends = EndWatch(conversation, partial(self._expect, False, Invariant.ENDS))
        self._looks: dict[type[Event], list[Callable[[Any], None]]] = {}
        for watch in (
            self._ends,
            BudgetWatch(conversation, partial(self._expect, False, Invariant.BUDGETS)),
            ReceiptWatch(conversation, partial(self._expect, False, Invariant.RECEIPTS)),
            BoundaryWatch(conversation, partial(self._expect, False, Invariant.BOUNDARIES)),
        ):
            for event, look in watch.looks.items():
                self._looks.setdefault(event, []).append(look)

    def put(self, item: Event) -> None:
        """Looks at an event as it happens."""
        for look in self._looks.get(type(item), ()):
            look(item)
        match item:
            case AttemptBegan(role, post_id):
                self._attempt_began(self._turn(role, post_id))
            case AttemptCut(role, post_id, _, words_id):
                self._attempt_cut(self._turn(role, post_id), words_id)
            case PostRecorded(post, round_id) if post.marks.kind in ("intervention", "nudge"):
                self._words_recorded(post, round_id)
            case PostRecorded(post):
                self._post_recorded(post)
            case ToolBegan(role, post_id, call=call):
                self.calls[call] = (role, post_id)
            case ToolEnded(call=call):
                self._expect(call in self.calls, Invariant.CALLS, f"{call} has ended twice")
                self.calls.pop(call, None)
            case WordsAccepted(words):
                self._accepted.add(words.id)
            case RoundEnded(round_id, state):
                self._placement.rounds_ended[round_id] = (trio.current_time(), state)
                left = [turn for turn in self._router.turns if turn.foreground]
                self._expect(not left, Invariant.ALONE, f"the round ended over {left}")
                over = [turn for turn in self.own_tasks if turn.state == "ended"]
                self._expect_no_task(started_by(over, self.own_tasks.values()), "the round has ended")

    def close(self) -> None:
        """Called when the conversation's nursery has closed."""
        super().close()
        self._expect_no_task(started_by(self.own_tasks), "the conversation has closed")

    def judge(self, receipts: Sequence[Receipt], injected_at: float) -> list[Breach]:
        """The verdict after the scenario: what was broken on the way, and what the end leaves open."""
        self._ends.judge()
        left = list(self._router.turns)
        self._expect(not left, Invariant.ONE_ANSWER, f"{left} never ended")
        self._expect(not self.calls, Invariant.CALLS, f"{self.calls} have no outcome")
        sent = [post for post in self.posts if post.send_from != post.send_to and post.marks.kind != "question"]
        outcomes = Counter(post.marks.in_reply_to for post in sent)
        for post_id in self._requests:
            count = outcomes[post_id]
            self._expect(count == 1, Invariant.ONE_ANSWER, f"request {post_id} has {count} outcomes")
        self._expect(not self._unkept, Invariant.NOTHING_LOST, f"unfinished work {self._unkept}")
        kept = [post for round_ in self._conversation.transcript().rounds for post in round_.post_list]
        self._expect(kept == self.posts, Invariant.NOTHING_LOST, "memory holds other posts than were recorded")
        for disorder in find_disorder(kept, self.posts):
            self._expect(False, Invariant.ORDER_KEPT, disorder)
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
        beside = [other for other in self._running(turn.role) if other is not turn and not _is_question(other)]
        self._expect(not beside or _is_question(turn), Invariant.ALONE, f"{turn} begins beside {beside}")
        self._begins_in(turn, current_task())
        abandoned = _cut_and_open(turn.asker) and not self._requests.get(turn.post.id, False)
        self._expect(not turn.recalled and not abandoned, Invariant.RECALLED, f"{turn} begins for nobody")
        self._expect(turn.scope not in self._scopes, Invariant.ONE_SCOPE, f"{turn} enters a scope again")
        if turn.scope is not None:
            self._scopes.add(turn.scope)
        self._attempts[turn.post.id] += 1
        attempts, cuts = self._attempts[turn.post.id], self._cuts[turn.post.id]
        once = attempts <= 1 + cuts and turn.attempts == attempts
        self._expect(once, Invariant.ONCE, f"attempt {attempts} of {turn} after {cuts} cuts")
        self._expect(not turn.pending, Invariant.ACCEPT_THEN_CUT, f"{turn} begins before its words are recorded")
        self._expect(turn.post.id not in self._unkept, Invariant.NOTHING_LOST, f"unfinished work {self._unkept}")
        calls = [call for call, (_, post_id) in self.calls.items() if post_id == turn.post.id]
        self._expect(not calls, Invariant.CALLS, f"{turn} begins over {calls}")
        self._closed_for.discard(turn.role)
        self._placement.attempt_began(turn.role)

    def _begins_in(self, turn: Turn, task: Task) -> None:
        if turn.attempts > 1:
            self._expect_no_task(started_by([turn], [task]), f"attempt {turn.attempts} of {turn} begins")
        self.own_tasks[turn] = task
        self.beginning.add(task)

    def _attempt_cut(self, turn: Turn, words_id: str | None) -> None:
        known = words_id is None or words_id in self._accepted
        self._expect(known, Invariant.ACCEPT_THEN_CUT, f"{turn} was cut before {words_id} were accepted")
        if words_id is not None:
            self._placement.aimed(words_id)
        self._cuts[turn.post.id] += 1
        if turn.draft is not None and turn.draft.text:
            self._unkept[turn.post.id] = (turn.role, turn.draft.text)

    def _post_recorded(self, post: Post) -> None:
        self.posts.append(post)
        late = post.send_from in self._closed_for and post.marks.state not in ("not_started", "late")
        late = late and "report" not in post.marks.extra  # a round that a report opens is begun by the runtime
        said = f"{post.send_from} recorded {post.message!r} after the words"
        self._expect(not late, Invariant.ACCEPT_THEN_CUT, said)
        self._look_for_kept_work(post)
        for turn in self._router.turns:
            if turn.post is post and turn.asked:
                self._requests[post.id] = turn.asker is not None and turn.asker.cut
            elif turn.post.id == post.marks.in_reply_to and post.send_from == turn.role != post.send_to:
                self._expect(not turn.waits, Invariant.RECALLED, f"{turn} answers over {list(turn.waits)}")

    def _words_recorded(self, post: Post, round_id: str) -> None:
        self.posts.append(post)
        new = self._placement.recorded(post, round_id)
        self._expect(new, Invariant.NOTHING_LOST, f"{post.send_to} has {post.marks.words} twice")
        running = self._running(post.send_to)
        if len(running) == 1 and running[0].cut:  # beside a question's turn the role may go on
            self._closed_for.add(post.send_to)

    def _look_for_kept_work(self, post: Post) -> None:
        answered = post.marks.in_reply_to if post.marks.state == "whole" and post.send_from != post.send_to else None
        for post_id, (role, draft) in list(self._unkept.items()):
            # a reply, or a request that was handed on, is all that the draft was for
            if post.send_from == role and (answered == post_id or draft in post.message):
                del self._unkept[post_id]

    def _judge_words(self, words: Words, injected_at: float) -> None:
        self._expect(not words.leaving, Invariant.RECALLED, f"{words.leaving} turns never left for {words.receipt}")
        for lost in self._placement.find_lost(words, injected_at):
            self._expect(False, Invariant.NOTHING_LOST, lost)

    def _running(self, role: str) -> list[Turn]:
        return [turn for turn in self._router.turns_of(role) if turn.state == "running"]

    def _turn(self, role: str, post_id: str) -> Turn:
        return next(turn for turn in self._router.turns_of(role) if turn.post.id == post_id)

    def _expect_no_task(self, left: list[str], when: str) -> None:
        self._expect(not left, Invariant.NOTHING_LEFT, f"{when} over the tasks {left}")

    def _expect(self, holds: bool, invariant: Invariant, otherwise: str) -> None:
        if not holds:
            self.breaches.append(Breach(invariant, otherwise))


def _is_question(turn: Turn) -> bool:
    """Whether it is answered inside its role's waiting ask, and so beside that role's other turn."""
    return turn.post.marks.kind == "question"


def _cut_and_open(turn: Turn | None) -> bool:
    """Whether its attempt was cut, and what it asks for is recalled with it: not out of an uninterruptible block."""
    return turn is not None and turn.cut and not getattr(turn, "shields", ())
