"""Summaries: when one is made, for how long it is at work, and that neither its failure nor its end loses anything."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from callboard.runtime.actor import Actor
from callboard.runtime.chat_model import UsageDelta
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import CallboardError, RoleFailed, RoundStopped
from callboard.runtime.event import Event, WorkAbandoned
from callboard.runtime.limits import Limits
from callboard.runtime.memory import get_role_rounds
from callboard.runtime.model_event import RoundsSummarized, SummaryFailed
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.round import Round
from callboard.runtime.seeded_run import run_seeded
from callboard.runtime.summary import CountUsage, Summarizer, SummaryRequest
from callboard.runtime.testing import Inject, Watch, every_interrupt_point, fail, interrupt
from callboard.runtime.usage import Price

quick = settings(max_examples=30, deadline=None, derandomize=True, database=None)


@dataclass
class Fake:
    """Summarises all but the last `retain` rounds once there are `compress` more; what it says lists their ids."""

    seconds: float = 60.0
    compress: int = 2
    retain: int = 2
    takes: float = 0.0
    cleans_up: float = 0.0
    outcomes: list[str | Exception] = field(default_factory=list)
    """Of its calls, one after the other: an error, or a text in place of the summary; "made" for the summary."""
    digest: str = "fake"
    began: list[tuple[str, ...]] = field(default_factory=list)
    """The ids of the rounds of each call."""
    ended: int = 0
    """How many calls were not cancelled."""
    used: UsageDelta | None = None

    def choose(self, rounds: Sequence[Round]) -> int:
        return len(rounds) - self.retain if len(rounds) >= self.compress + self.retain else 0

    async def summarize(self, request: SummaryRequest, count: CountUsage) -> str:
        self.began.append(tuple(one.id for one in request.rounds))
        count("small")
        if self.used is not None:
            count("small", self.used)
        try:
            await trio.sleep(self.takes)
        finally:
            if self.cleans_up:
                with trio.CancelScope(shield=True):
                    await trio.sleep(self.cleans_up)
        self.ended += 1
        outcome = self.outcomes.pop(0) if self.outcomes else "made"
        if isinstance(outcome, Exception):
            raise outcome
        return " ".join([request.previous, *self.began[-1]]) if outcome == "made" else outcome


@dataclass
class Reader(Actor):
    """Keeps what it would show its model in each attempt: the ids that the summary lists, then those of the rounds."""

    name: str = "Reader"
    of: str = ""
    """Whose rounds it reads; its own, unless given."""
    subordinates: Sequence[Actor] = ()
    by: Summarizer | None = None
    fails: bool = False
    shown: list[tuple[list[str], list[str]]] = field(default_factory=list)
    there: list[list[str]] = field(default_factory=list)
    """All ids, in each attempt."""

    async def receive(self, post: Post, context: TurnContext) -> Post:
        role = self.of or self.name
        async with trio.open_nursery() as nursery:
            for below in self.subordinates:
                nursery.start_soon(context.ask, below.name)
        rounds = await get_role_rounds(context, role)
        summary = await context.summary_of(rounds, role, by=self.by)
        ids = [one.id for one in rounds]
        upto = ids.index(summary.upto) + 1 if summary is not None else 0
        self.shown.append((summary.text.split() if summary is not None else [], ids[upto:]))
        self.there.append(ids)
        if self.fails:
            raise ValueError("on purpose")
        return post.reply("read")

    @property
    def all(self) -> list[list[str]]:
        """Those summarised and those shown, in each attempt."""
        return [[*summarised, *shown] for summarised, shown in self.shown]

    @property
    def counts(self) -> list[tuple[int, int]]:
        """How many rounds were summarised, and how many shown, in each attempt."""
        return [(len(summarised), len(shown)) for summarised, shown in self.shown]


async def play(rounds: int, by: Summarizer, reader: Reader | None = None) -> list[tuple[int, int]]:
    """What a role was shown in so many rounds."""
    reader = reader or Reader()
    async with open_conversation(reader, options=ConversationOptions(summarizer=by)) as conversation:
        for number in range(rounds):
            await conversation.send(str(number))
    assert reader.all == reader.there
    return reader.counts


@asynccontextmanager
async def at_work(by: Fake, *roles: Actor, ladder: float = 2.0) -> AsyncIterator[tuple[Conversation, list[Event]]]:
    """A conversation whose fourth round has begun, in which the summary takes its time."""
    takes, by.takes = by.takes, 0.0
    events: list[Event] = []

    async def read(conversation: Conversation) -> None:
        async for event in conversation.events():
            events.append(event)

    options = ConversationOptions(summarizer=by, ladder=ladder)
    async with trio.open_nursery() as nursery, open_conversation(*roles or [Reader()], options=options) as conversation:
        nursery.start_soon(read, conversation)
        for number in range(3):
            await conversation.send(str(number))
        by.takes = takes
        conversation.communicate("the fourth")
        await trio.sleep(1)
        yield conversation, events


async def test_rounds_are_summarised_when_it_is_time_and_shown_up_to_then() -> None:
    by = Fake()
    assert await play(6, by) == [(0, 1), (0, 2), (0, 3), (2, 2), (2, 3), (4, 2)]
    assert by.ended == len(by.began) == 2


async def test_without_a_summarizer_there_is_none() -> None:
    reader = Reader()
    async with open_conversation(reader) as conversation:
        for number in range(6):
            await conversation.send(str(number))
    assert reader.counts[-1] == (0, 6)


async def test_a_role_may_bring_its_own_summarizer() -> None:
    by, own = Fake(), Fake(compress=1, retain=1, digest="own")
    assert await play(3, by, Reader(by=own)) == [(0, 1), (1, 1), (2, 1)]
    assert by.began == []


@pytest.mark.parametrize("outcome", ["", " \n", "\ud800", ValueError("no"), CallboardError("no")], ids=repr)
async def test_a_summary_that_failed_loses_nothing_and_is_tried_again_at_growing_distance(
    outcome: str | Exception,
) -> None:
    by = Fake(outcomes=[outcome] * 5)
    counts = await play(29, by)
    tried = [number for number in range(4, 30) if number in {len(ids) + 2 for ids in by.began}]
    assert tried == [4, 5, 7, 11, 19, 27]
    assert counts[25:] == [(0, 26), (25, 2), (25, 3), (27, 2)]


async def test_what_is_shown_stays_the_same_within_a_round() -> None:
    by, reader = Fake(outcomes=["", "made"]), Reader()
    again = Reader("Again", of="Reader")
    reader.subordinates = (again,)
    await play(5, by, reader)
    assert [len(ids) for ids in by.began] == [2, 3]
    assert again.counts == reader.counts == [(0, 1), (0, 2), (0, 3), (0, 4), (3, 2)]


async def test_after_a_summary_the_distance_is_short_again() -> None:
    by = Fake(outcomes=["", "", "made", "", "made"])
    assert await play(10, by) == [
        *[(0, number) for number in range(1, 7)],
        *[(5, 2), (5, 3), (5, 4), (8, 2)],
    ]


async def test_what_failed_in_a_round_that_failed_too_is_tried_in_the_next() -> None:
    by, reader = Fake(outcomes=["", "made"]), Reader()
    async with open_conversation(reader, options=ConversationOptions(summarizer=by)) as conversation:
        for number in range(5):
            reader.fails = number == 3
            with suppress(RoleFailed):
                await conversation.send(str(number))
    assert by.began[0] == by.began[1]
    assert reader.counts[-2:] == [(0, 4), (2, 2)]


async def test_it_is_settled_once_a_round_that_nothing_is_summarised() -> None:
    class Fickle(Fake):
        def choose(self, rounds: Sequence[Round]) -> int:
            asked.append(rounds[-1].id)
            return int(asked.count(rounds[-1].id) > 1 and len(rounds) > 1)

    asked: list[str] = []
    by, again = Fickle(), Reader("Again", of="Reader")
    assert await play(3, by, Reader(subordinates=[again])) == again.counts == [(0, 1), (0, 2), (0, 3)]


async def test_it_is_settled_once_a_round_what_is_summarised() -> None:
    class Gradual(Fake):
        def choose(self, rounds: Sequence[Round]) -> int:
            return int(len(self.began) + len(rounds) > 3)

    by, again = Gradual(), Reader("Again", of="Reader")
    assert await play(4, by, Reader(subordinates=[again])) == again.counts == [(0, 1), (0, 2), (0, 3), (1, 3)]


async def test_a_summary_of_the_round_that_runs_is_none() -> None:
    class Looks(Reader):
        async def receive(self, post: Post, context: TurnContext) -> Post:
            rounds = await get_role_rounds(context, self.name)
            before.append(await context.summary_of(rounds) is not None)
            earlier.append(await context.summary_of(rounds[:-1]) is not None)
            return post.reply()

    before: list[bool] = []
    earlier: list[bool] = []
    async with open_conversation(Looks(), options=ConversationOptions(summarizer=Fake(compress=1, retain=1))) as one:
        for number in range(2):
            await one.send(str(number))
    assert (before, earlier) == ([False, True], [False, False])


async def test_a_failure_is_told_and_so_is_a_summary(autojump_clock: MockClock) -> None:
    by = Fake(outcomes=["", "made"])
    async with at_work(by) as (conversation, events):
        await conversation.send("the fifth")
    failed, made = (event for event in events if isinstance(event, RoundsSummarized | SummaryFailed))
    ids = [one.id for one in conversation.transcript().rounds]
    assert failed == SummaryFailed(("Reader",), ids[0], ids[1], "it is empty")
    assert made == RoundsSummarized(("Reader",), ids[0], ids[2])


@pytest.mark.parametrize("chosen", [-1, 4, 5])
async def test_the_round_that_runs_is_never_summarised(chosen: int) -> None:
    class Greedy(Fake):
        def choose(self, rounds: Sequence[Round]) -> int:
            return chosen if len(rounds) == 4 else 0

    with pytest.raises(RoleFailed, match=f"{chosen} of 4 rounds cannot be summarised"):
        await play(4, Greedy())


async def test_several_that_ask_at_once_share_one_summary(autojump_clock: MockClock) -> None:
    readers = [Reader(name, of="Reader") for name in ("A", "B", "C")]
    by = Fake(takes=2)
    await play(4, by, reader := Reader(subordinates=readers))
    assert len(by.began) == 1
    assert [one.counts[-1] for one in (reader, *readers)] == [(2, 2)] * 4


async def test_each_role_has_summaries_of_its_own_rounds() -> None:
    by = Fake()
    await play(4, by, Reader(subordinates=[Reader("A")]))
    assert len(by.began) == 2


async def test_an_intervention_ends_the_summary_and_the_next_attempt_begins_it_again(
    autojump_clock: MockClock,
) -> None:
    by, reader = Fake(takes=5), Reader()
    async with at_work(by, reader) as (conversation, _):
        receipt = conversation.intervene("Quick!")
        assert await receipt.seen()
        await conversation.wait_idle()
        assert trio.current_time() == 6
    assert (len(by.began), by.ended) == (2, 1)
    assert reader.counts == [(0, 1), (0, 2), (0, 3), (2, 2)]


async def test_a_summary_goes_on_while_another_role_waits_for_it(autojump_clock: MockClock) -> None:
    readers = [Reader(name, of="Reader") for name in ("A", "B")]
    by = Fake(takes=5)
    async with at_work(by, Reader(subordinates=readers)) as (conversation, _):
        conversation.intervene("Quick!", role="A")
        await conversation.wait_idle()
        assert trio.current_time() == 5
    assert (len(by.began), by.ended) == (1, 1)


async def test_a_stop_ends_the_summary_at_once(autojump_clock: MockClock) -> None:
    by = Fake(takes=5)
    async with at_work(by) as (conversation, _):
        conversation.stop("enough")
        await conversation.wait_idle()
        assert trio.current_time() == 1
        assert (await conversation.send("the fifth")).message == "read"
    assert [len(ids) for ids in by.began] == [2, 3]


async def test_a_summarizer_that_will_not_end_holds_up_a_stop_for_a_step_of_the_ladder(
    autojump_clock: MockClock,
) -> None:
    by = Fake(takes=5, cleans_up=100)
    async with at_work(by, ladder=3.0) as (conversation, events):
        conversation.stop("enough")
        await conversation.wait_idle()
        assert trio.current_time() == 4
    assert [event.what for event in events if isinstance(event, WorkAbandoned)] == ["a summary"]


async def test_the_next_attempt_does_not_wait_for_a_summary_that_will_not_end(autojump_clock: MockClock) -> None:
    by, reader = Fake(takes=5, cleans_up=100), Reader()
    async with at_work(by, reader) as (conversation, _):
        conversation.intervene("Quick!")
        await trio.sleep(2.5)
        by.takes = by.cleans_up = 0
        await conversation.wait_idle()
        assert trio.current_time() < 10
    assert (reader.counts[-1], len(by.began)) == ((2, 2), 2)


async def test_what_a_summarizer_says_when_nobody_waits_any_more_is_thrown_away(autojump_clock: MockClock) -> None:
    class Stubborn(Fake):
        async def summarize(self, request: SummaryRequest, count: CountUsage) -> str:
            try:
                return await super().summarize(request, count)
            except trio.Cancelled:
                return "too late"

    by, reader = Stubborn(takes=5), Reader()
    async with at_work(by, reader) as (conversation, _):
        conversation.stop("enough")
        await conversation.send("the fifth")
    assert (reader.all, reader.counts[-1]) == (reader.there, (3, 2))


def test_a_role_goes_not_on_when_its_host_is_cancelled_while_it_waits_for_a_summary() -> None:
    async def main() -> None:
        with trio.move_on_after(1):
            async with at_work(Fake(takes=5), reader):
                await trio.sleep_forever()

    for seed in range(5):
        reader = Reader()
        run_seeded(main, seed)
        assert len(reader.there) == 3


async def test_leaving_the_conversation_ends_the_summary(autojump_clock: MockClock) -> None:
    by = Fake(takes=5)
    async with at_work(by):
        pass
    assert (trio.current_time(), by.ended) == (1, 0)


async def test_a_summary_has_so_many_seconds(autojump_clock: MockClock) -> None:
    by, reader = Fake(takes=500, seconds=10), Reader()
    async with at_work(by, reader) as (conversation, events):
        await conversation.wait_idle()
        assert trio.current_time() == 10
    assert reader.counts[-1] == (0, 4)
    assert [event.problem for event in events if isinstance(event, SummaryFailed)] == ["it took longer than 10 s"]


async def test_a_pause_stops_before_the_summary(autojump_clock: MockClock) -> None:
    class Slow(Reader):
        async def receive(self, post: Post, context: TurnContext) -> Post:
            await trio.sleep(2)
            return await super().receive(post, context)

    by, reader = Fake(), Slow()
    async with at_work(by, reader) as (conversation, _):
        conversation.pause()
        await trio.sleep(5)
        assert (reader.counts[-1], by.began) == ((0, 3), [])
        conversation.resume()
        await conversation.wait_idle()
    assert reader.counts[-1] == (2, 2)


async def test_words_for_after_the_step_let_the_summary_end(autojump_clock: MockClock) -> None:
    by, reader = Fake(takes=5), Reader()
    async with at_work(by, reader) as (conversation, _):
        conversation.intervene("In time.", delivery="after_step")
        await conversation.wait_idle()
        assert trio.current_time() == 5
    assert (len(by.began), by.ended) == (1, 1)


async def test_what_a_summary_uses_is_the_role_s_and_has_its_price() -> None:
    by = Fake(used=UsageDelta(1000, 10, cached_tokens=400))
    options = ConversationOptions(summarizer=by, prices={"small": Price(1_000, 0, cached=500)})
    async with open_conversation(Reader(), options=options) as conversation:
        for number in range(4):
            await conversation.send(str(number))
    used = conversation.usage.by_role["Reader"]
    assert (used.model_calls, used.tokens, used.cost) == (1, 1010, 0.8)


async def test_a_summary_that_the_limits_leave_no_room_for_loses_nothing() -> None:
    by, reader = Fake(used=UsageDelta(100, 10)), Reader()
    options = ConversationOptions(summarizer=by, limits=Limits(tokens=100))
    async with open_conversation(reader, options=options) as conversation:
        for number in range(4):
            await conversation.send(str(number))
    assert reader.counts[-1] == (0, 4)


async def test_a_role_that_forgets_its_rounds_forgets_their_summary() -> None:
    reader = Reader("Below")

    class Resets(Actor):
        name = "Resets"

        async def receive(self, post: Post, context: TurnContext) -> Post:
            await context.start_subordinate(reader, reset=post.message == "4")
            return post.reply((await context.ask("Below")).message)

    async with open_conversation(Resets(), options=ConversationOptions(summarizer=Fake())) as conversation:
        for number in range(8):
            await conversation.send(str(number))
    assert reader.counts == [(0, 1), (0, 2), (0, 3), (2, 2), (0, 1), (0, 2), (0, 3), (2, 2)]


@quick
@given(
    compress=st.integers(1, 3),
    retain=st.integers(1, 3),
    outcomes=st.lists(st.sampled_from(["made", "", ValueError("no")]), max_size=8),
    rounds=st.lists(st.sampled_from(["finished", "failed", "interrupted", "stopped"]), min_size=1, max_size=14),
)
def test_what_is_shown_and_what_is_summarised_are_all_rounds(
    compress: int, retain: int, outcomes: list[str | Exception], rounds: list[str]
) -> None:
    by, reader = Fake(compress=compress, retain=retain, outcomes=outcomes, takes=2), Reader()

    async def main() -> None:
        async with open_conversation(reader, options=ConversationOptions(summarizer=by)) as conversation:
            for state in rounds:
                reader.fails = state == "failed"
                conversation.communicate(state)
                await trio.sleep(1)
                if state == "interrupted":
                    conversation.intervene("Look!")
                elif state == "stopped":
                    conversation.stop("enough")
                await conversation.wait_idle()

    run_seeded(main)
    assert reader.all == reader.there
    assert len(reader.there) >= len(rounds) - rounds.count("stopped")
    assert all(shown >= retain or not summarised for summarised, shown in reader.counts)


async def two_rounds(watch: Watch) -> None:
    """In the second a summary is made, for which two roles wait."""
    by, reader = Fake(compress=1, retain=1, takes=1), Reader(subordinates=[Reader("A", of="Reader")])
    async with open_conversation(reader, options=ConversationOptions(summarizer=by)) as conversation:
        watch(conversation)
        for message in ("the first", "the second"):
            with suppress(RoundStopped, RoleFailed):
                await conversation.send(message)
        await conversation.wait_idle()
    assert reader.all == reader.there


def stops(conversation: Conversation) -> None:
    """An injection."""
    conversation.stop("enough")


INJECTIONS: dict[str, Inject] = {
    "level 1": interrupt(1),
    "level 2": interrupt(2),
    "after step": interrupt(1, delivery="after_step"),
    "two in a row": interrupt(1, times=2),
    "stop": stops,
    "failure": fail(),
}


def test_a_summary_at_work_may_be_interrupted_at_any_moment() -> None:
    report = every_interrupt_point(two_rounds, sample=40)
    assert report.outcomes["seen"]
    assert any(who == "summary" for who, _ in report.moments)


@pytest.mark.slow
@pytest.mark.parametrize("injection", INJECTIONS)
def test_a_summary_at_work_may_be_interrupted_at_every_moment(injection: str) -> None:
    assert every_interrupt_point(two_rounds, INJECTIONS[injection], seeds=range(3)).runs > 50
