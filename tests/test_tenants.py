"""Many tenants on one board: who waits for room has a turn, who works leaves the others theirs, all is cleaned up."""

import gc
import math
import os
import pickle
import random
import threading
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from statistics import median, quantiles
from typing import Any

import pytest
import trio
from trio.testing import MockClock, assert_no_checkpoints, wait_all_tasks_blocked

from callboard.runtime.board import Board
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import BoardClosed, BoardFull, CallboardError, DuplicateName, RoundStopped
from callboard.runtime.limits import Limits
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.receipt import Receipt
from callboard.runtime.seeded_run import run_seeded

from .test_conversation import Role, answers, cleans_up

PATIENT = math.inf


async def hold(board: Board, tenant: str, seconds: float, order: list[str]) -> None:
    """Waits for room, and has a conversation for so long."""
    async with board.open_conversation(tenant=tenant, patience=PATIENT):
        order.append(tenant)
        await trio.sleep(seconds)


@contextmanager
def refused(kind: type[CallboardError], match: str = ".") -> Iterator[None]:
    """A wait for room that ends so, and has not entered the block."""
    with pytest.raises(kind, match=match):
        yield
        raise AssertionError("let in")


async def test_those_who_wait_are_let_in_tenant_by_tenant(autojump_clock: MockClock) -> None:
    order: list[str] = []
    async with Board(Role("root", answers), limit=1) as board, trio.open_nursery() as nursery:
        for tenant in ["greedy"] * 5 + ["one", "two", "one"]:
            nursery.start_soon(hold, board, tenant, 1, order)
            await wait_all_tasks_blocked()
        assert repr(board) == "<Board of root, open, 1 conversations, 7 waiting>"
    assert order == ["greedy", "greedy", "one", "two", "greedy", "one", "greedy", "greedy"]
    assert (trio.current_time(), len(board)) == (8, 0)


async def test_who_has_no_patience_never_passes_one_who_waits(autojump_clock: MockClock) -> None:
    order: list[str] = []
    async with Board(Role("root", answers), limit=1) as board, trio.open_nursery() as nursery:
        await board.start_conversation("first")
        nursery.start_soon(hold, board, "waits", 1, order)
        await wait_all_tasks_blocked()
        nursery.start_soon(board.close, "first")
        for _ in range(20):
            with refused(BoardFull, "it holds 1 "):
                await board.start_conversation()
            await trio.lowlevel.checkpoint()
        assert order == ["waits"]


async def test_who_has_no_patience_is_refused_in_the_same_step() -> None:
    async with Board(Role("root", answers), limit=1) as board, board.open_conversation():
        with assert_no_checkpoints(), refused(BoardFull):
            async with board.open_conversation():
                pass


async def test_patience_runs_out(autojump_clock: MockClock) -> None:
    async with Board(Role("root", answers), limit=1) as board, board.open_conversation():
        with refused(BoardFull):
            await board.start_conversation(patience=3)
        assert trio.current_time() == 3
        with refused(BoardFull):
            async with board.open_conversation(patience=4):
                pass
        assert (trio.current_time(), len(board)) == (7, 1)


async def test_a_started_conversation_gives_its_place_on_when_all_of_it_has_ended(autojump_clock: MockClock) -> None:
    async with Board(Role("root", cleans_up(5)), limit=1) as board, trio.open_nursery() as nursery:
        (await board.start_conversation("one")).communicate("a")
        await trio.sleep(1)
        nursery.start_soon(board.close, "one")
        assert (await board.start_conversation("two", patience=PATIENT)).id == "two"
        assert trio.current_time() == 6


async def test_each_tenant_has_a_limit_of_its_own(autojump_clock: MockClock) -> None:
    order: list[str] = []
    async with Board(Role("root", answers), limit=4, tenant_limit=2) as board, trio.open_nursery() as nursery:
        for tenant in ["a", "a", "a", "b"]:
            nursery.start_soon(hold, board, tenant, 1, order)
            await wait_all_tasks_blocked()
        assert order == ["a", "a", "b"]
        with refused(BoardFull, "tenant 'a' holds 2 conversations.*tenant_limit="):
            await board.start_conversation(tenant="a")
        assert len(board) == 3
    assert order == ["a", "a", "b", "a"]


@pytest.mark.parametrize("error", [BoardFull(2), BoardFull(2, "a")])
def test_the_error_of_a_full_board_says_whose_limit_it_was_and_survives_pickle(error: BoardFull) -> None:
    copied = pickle.loads(pickle.dumps(error))
    assert (copied.limit, copied.tenant, str(copied)) == (2, error.tenant, str(error))
    assert ("tenant 'a' holds 2" in str(error), "tenant_limit=" in str(error)) == (error.tenant == "a",) * 2


async def test_who_names_no_tenant_is_one_with_all_who_do_not() -> None:
    async with Board(Role("root", answers), tenant_limit=1) as board:
        await board.start_conversation()
        with refused(BoardFull, "tenant ''"):
            await board.start_conversation()
        await board.start_conversation(tenant="b")


@pytest.mark.parametrize("patience", [-1, math.nan])
async def test_patience_is_a_number_of_seconds_from_0_on(patience: float) -> None:
    async with Board(Role("root", answers)) as board:
        with pytest.raises(ValueError, match="patience"):
            board.open_conversation(patience=patience)
        with pytest.raises(ValueError, match="patience"):
            await board.start_conversation(patience=patience)


async def test_an_id_that_was_taken_meanwhile_is_refused_and_the_place_goes_on(autojump_clock: MockClock) -> None:
    async def wait(tenant: str) -> None:
        with suppress(DuplicateName):
            await board.start_conversation("same", tenant=tenant, patience=PATIENT)
            started.append(tenant)

    started: list[str] = []
    order: list[str] = []
    async with Board(Role("root", answers), limit=2) as board, trio.open_nursery() as nursery:
        await board.start_conversation("one")
        await board.start_conversation("two")
        for tenant in "ab":
            nursery.start_soon(wait, tenant)
            await wait_all_tasks_blocked()
        nursery.start_soon(hold, board, "c", 1, order)
        await board.close("one")
        await board.close("two")
        await wait_all_tasks_blocked()
        assert (started, order, len(board)) == (["a"], ["c"], 2)
        with refused(DuplicateName):  # at once, although it had the patience
            await board.start_conversation("same", patience=PATIENT)


@pytest.mark.parametrize("ends", ["drain", "leave"])
async def test_those_who_wait_are_told_when_the_board_takes_nothing_more(ends: str, autojump_clock: MockClock) -> None:
    async def wait(open: Callable[..., Any]) -> None:
        with refused(BoardClosed, "drained" if ends == "drain" else "closed"):
            await open(patience=PATIENT)
        told.append(trio.current_time())

    async def enter(**options: Any) -> None:
        async with board.open_conversation(**options):
            pass

    told: list[float] = []
    async with trio.open_nursery() as nursery, Board(Role("root", cleans_up(5)), limit=1) as board:
        (await board.start_conversation()).communicate("a")
        nursery.start_soon(wait, board.start_conversation)
        nursery.start_soon(wait, enter)
        await trio.sleep(1)
        if ends == "drain":
            await board.drain(trio.current_time())
            assert told == [1, 1]
    assert (told, len(board)) == ([1, 1], 0)


async def keep(board: Board, tenant: str, seconds: float, order: list[str]) -> None:
    """As `hold`, with a conversation that lives on the board."""
    conversation = await board.start_conversation(tenant=tenant, patience=PATIENT)
    order.append(tenant)
    try:
        await trio.sleep(seconds)
    finally:
        with trio.CancelScope(shield=True):
            await board.close(conversation.id)


@pytest.mark.parametrize("way", [hold, keep])
@pytest.mark.parametrize("seed", range(10))
def test_a_wait_that_is_cancelled_as_it_is_let_in_loses_no_place(way: Callable[..., Any], seed: int) -> None:
    """Whichever of the two comes first at that tick: the place goes on to the one behind."""

    async def main() -> tuple[list[str], float]:
        order: list[str] = []
        async with Board(Role("root", answers), limit=1) as board, trio.open_nursery() as nursery:
            for tenant in ["first", "goes", "stays"]:
                nursery.start_soon(leave_at, 1 if tenant == "goes" else PATIENT, partial(way, board, tenant, 1, order))
                await wait_all_tasks_blocked()
        return order, trio.current_time()

    order, ended = run_seeded(main, seed)
    assert (order[0], order[-1], ended) == ("first", "stays", 2)


async def leave_at(time: float, call: Callable[[], Awaitable[None]]) -> None:
    """A client that goes at that time, whatever it is doing."""
    with trio.CancelScope(deadline=time):
        await call()


# What follows is many clients who come, speak, interrupt, stop and go.

CONVERSATIONS = 500
TENANTS = 50
SHARE = 8
"""Of each tenant but the greedy one, which has all the others, more than ten times as many."""


@dataclass(eq=False)
class Visit:
    """One client, from its wait for room on."""

    tenant: str
    came: float = 0.0
    entered: float = 0.0
    began: list[float] = field(default_factory=list)
    """When each attempt of the worker did."""
    cut: list[tuple[float, int]] = field(default_factory=list)
    """When it was interrupted, and how many attempts there had been."""
    answered: float = 0.0
    outcome: str = ""

    def replans(self) -> list[float]:
        """From each interruption that was followed by an attempt until that began."""
        return [self.began[count] - at for at, count in self.cut if len(self.began) > count]


this_visit: ContextVar[Visit] = ContextVar("this_visit")


class Crowd:
    """Clients of one board, in an order and with deeds that depend on a seed; `unit` is in seconds."""

    def __init__(self, seed: int, unit: float) -> None:
        self.luck = random.Random(seed)
        self.unit = unit
        self.entered: list[Visit] = []
        self.alive: weakref.WeakSet[Conversation] = weakref.WeakSet()
        self.at_most = 0
        tenants = [f"tenant {number}" for number in range(1, TENANTS)] * SHARE
        tenants += ["greedy"] * (CONVERSATIONS - len(tenants))
        self.visits = [Visit(tenant) for tenant in tenants]

    def root(self) -> Role:
        """A root that asks a worker; the worker tells the visit, whose context variable reaches it, when it began."""

        async def ask(post: Post, context: TurnContext) -> Post:
            return post.reply((await context.ask("worker", post.message)).message)

        async def work(post: Post, context: TurnContext) -> Post:
            this_visit.get().began.append(trio.current_time())
            for step in range(4):
                context.draft.write(f"{step}")
                await trio.sleep(self.unit * self.luck.random())
            return post.reply(post.message)

        return Role("root", ask, Role("worker", work))

    async def run(self, *, limit: int | None = None, tenant_limit: int | None = None) -> None:
        """Lets all of them come at once, the greedy tenant's first."""
        options = ConversationOptions(limits=Limits(replies=100))
        board_of = Board(self.root(), options=options, limit=limit, tenant_limit=tenant_limit)
        async with board_of as board, trio.open_nursery() as nursery:
            for visit in reversed(self.visits):
                nursery.start_soon(self.visit, board, visit)
        assert (len(board), repr(board)) == (0, "<Board of root, closed, 0 conversations>")

    async def visit(self, board: Board, visit: Visit) -> None:
        this_visit.set(visit)
        visit.came = trio.current_time()
        deed = self.luck.choice(["wait", "interrupt", "interrupt", "stop", "go"])
        with trio.CancelScope() as scope:
            if deed == "go":  # in line or at work
                scope.deadline = visit.came + self.luck.random() * 50 * self.unit
            async with board.open_conversation(tenant=visit.tenant, patience=PATIENT) as conversation:
                visit.entered = trio.current_time()
                self.entered.append(visit)
                self.alive.add(conversation)
                self.at_most = max(self.at_most, len(board))
                receipt = conversation.communicate(visit.tenant)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.meddle, conversation, visit, deed)
                    await self.hear(receipt, visit)
                    nursery.cancel_scope.cancel()
        visit.outcome = visit.outcome or "gone"

    async def hear(self, receipt: Receipt, visit: Visit) -> None:
        try:
            answer = await receipt.reply()
        except RoundStopped:
            visit.outcome = "stopped"
        else:
            assert answer.message == visit.tenant
            visit.answered, visit.outcome = trio.current_time(), "answered"

    async def meddle(self, conversation: Conversation, visit: Visit, deed: str) -> None:
        for _ in range(self.luck.randint(1, 3)):
            await trio.sleep(self.luck.random() * 2 * self.unit)
            if deed == "interrupt":
                if visit.began:
                    visit.cut.append((trio.current_time(), len(visit.began)))
                conversation.intervene("again", broadcast_level=self.luck.choice([1, 2, -1]))
            elif deed == "stop":
                conversation.stop("enough")

    def passed(self, first: int) -> int:
        """How often, at most, one tenant was let in again while another waited; all came before the first who waited.

        The `first` who entered found a free place.
        """
        most = 0
        waited = [visit.tenant for visit in self.entered[first:]]
        for tenant in set(waited):
            mine = [-1, *(number for number, other in enumerate(waited) if other == tenant)]
            for before, after in pairwise(mine):
                most = max([most, *Counter(waited[before + 1 : after]).values()])
        return most

    def waits(self, *, greedy: bool) -> list[float]:
        """How long those who were let in waited, of the greedy tenant or of the others."""
        return [visit.entered - visit.came for visit in self.entered if (visit.tenant == "greedy") == greedy]


def living() -> tuple[int, int, int]:
    """Tasks, threads, and open files."""
    return trio.lowlevel.current_statistics().tasks_living, threading.active_count(), len(os.listdir("/dev/fd"))


async def all_cleaned_up(crowd: Crowd, before: tuple[int, int, int]) -> None:
    """Nothing is alive that was not before, and all conversations are dead."""
    await wait_all_tasks_blocked()
    gc.collect()
    assert not crowd.alive
    # Fewer, when a thread that trio keeps for the next one who wants it has just been kept for long enough.
    assert all(now <= was for now, was in zip(living(), before, strict=True)), f"{living()} after {before}"


@pytest.mark.slow
def test_no_tenant_starves_beside_one_that_opens_ten_times_as_many() -> None:
    async def main() -> None:
        before = living()
        await crowd.run(limit=40)
        assert 30 < crowd.at_most <= 40
        await all_cleaned_up(crowd, before)

    crowd = Crowd(seed=1, unit=1.0)
    run_seeded(main, seed=1)
    outcomes = Counter(f"{visit.outcome} {'inside' if visit.entered else 'in line'}" for visit in crowd.visits)
    assert outcomes.total() == CONVERSATIONS
    assert min(outcomes[what] for what in ["answered inside", "stopped inside", "gone inside", "gone in line"]) > 5
    assert crowd.passed(first=40) == 1
    assert max(crowd.waits(greedy=False)) < max(crowd.waits(greedy=True))
    replans = [replan for visit in crowd.visits for replan in visit.replans()]
    assert (len(replans) > 200, max(replans)) == (True, 0)


@pytest.mark.parametrize("limits", [{"limit": 100}, {"limit": 100, "tenant_limit": 5}], ids=str)
@pytest.mark.slow
def test_no_tenant_starves_in_real_time(limits: dict[str, int]) -> None:
    async def main() -> None:
        before = living()
        await crowd.run(**limits)
        assert 50 < crowd.at_most <= 100
        await all_cleaned_up(crowd, before)

    crowd = Crowd(seed=2, unit=0.05)
    trio.run(main)
    replies: dict[str, list[float]] = {}
    replans: dict[str, list[float]] = {}
    for visit in crowd.visits:
        replies.setdefault(visit.tenant, []).extend([visit.answered - visit.came] if visit.answered else [])
        replans.setdefault(visit.tenant, []).extend(visit.replans())
    greedy = replies.pop("greedy")
    others = list(replies.values())
    print(f"{limits}: first reply of the greedy tenant {spread(greedy)}")
    print(f"of the others {spread(flat(replies))}; the worst tenant's median {max(map(median, others)):.3f} s")
    print(f"interruption to next attempt: greedy {spread(replans.pop('greedy'))}, others {spread(flat(replans))}")
    assert max(map(median, others)) < median(greedy)


def flat(lists: dict[str, list[float]]) -> list[float]:
    """All of them as one."""
    return [number for one in lists.values() for number in one]


def spread(seconds: list[float]) -> str:
    """The middle and the worst of many."""
    cuts = quantiles(seconds, n=100)
    return f"p50 {cuts[49]:.4f} s, p99 {cuts[98]:.4f} s"


def batches_beside(busy: int, seed: int) -> float:
    """How many steps each of so many busy roles of another tenant makes while one conversation has a round."""

    async def work(post: Post, context: TurnContext) -> Post:
        while post.message == "for ever":
            steps[context.round] += 1
            await trio.lowlevel.checkpoint()
        return post.reply((await context.ask("worker", post.message)).message)

    async def main() -> float:
        async with Board(Role("root", work, Role("worker", answers))) as board:
            for number in range(busy):
                (await board.start_conversation(f"{number}", tenant="busy")).communicate("for ever")
            quiet = await board.start_conversation(tenant="quiet")
            await quiet.send("warm")
            before = steps.total()
            await quiet.send("now")
            return (steps.total() - before) / busy

    steps: Counter[str] = Counter()
    return run_seeded(main, seed)


def test_a_busy_tenant_costs_the_others_one_step_of_each_of_its_roles_for_one_of_theirs() -> None:
    """So many batches of trio's scheduler does a round take, whoever else is busy."""
    alone = max(batches_beside(1, seed) for seed in range(3))
    crowded = max(batches_beside(30, seed) for seed in range(3))
    assert crowded <= alone <= 20
