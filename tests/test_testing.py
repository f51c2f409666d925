"""Testing: seeded runs are repeatable, and `every_interrupt_point` says what it found and where."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager, suppress

import pytest
import trio
import trio._core._run as trio_run

from callboard.runtime import record
from callboard.runtime.attempt import Attempts
from callboard.runtime.context import LiveContext, TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import RoleFailed
from callboard.runtime.failure import InjectedFailure
from callboard.runtime.filed_round import FiledRound
from callboard.runtime.leftovers import TRIO_WORKERS, Holdings
from callboard.runtime.memory import get_role_rounds
from callboard.runtime.moments import STEPS
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Kind, Marks, Post
from callboard.runtime.record import find_disorder
from callboard.runtime.referee import Invariant
from callboard.runtime.testing import (
    LOADED,
    InterruptReport,
    InvariantBroken,
    Scenario,
    Watch,
    count_moments,
    every_interrupt_point,
    fail,
    interrupt,
    run_interrupted,
    run_seeded,
)
from callboard.runtime.tool import Tool
from callboard.runtime.transcript_file import dump
from callboard.runtime.turn import Turn
from tests import prove
from tests.scenarios import SCENARIOS, LateWorker, Planner, Worker, scenario, the_bell
from tests.test_thread_call import Gate, gate

__all__ = ["gate"]

pytest_plugins = "pytester"
Patch = pytest.MonkeyPatch
Opener = Callable[[], AbstractContextManager[None]]
Settle = Callable[[Attempts, Turn, Exception], None]

PRINT_DIGESTS = """
from tests.test_testing import digests
print(*digests(), sep="\\n")
"""


def digests() -> Iterator[str]:
    """A digest of the written transcripts of interrupted runs, for each of some scenarios."""
    for name in ("several leaves", "a shared worker", "tools", "told work beside", "started on the way", "two hosts"):
        digest = hashlib.sha256()
        watched: list[Conversation] = []

        async def run(watch: Watch, name: str = name, watched: list[Conversation] = watched) -> None:
            def watch_and_keep(conversation: Conversation) -> Conversation:
                watched.append(conversation)
                return watch(conversation)

            await SCENARIOS[name](watch_and_keep)

        for moment in range(5, 65, 10):
            outcomes = run_interrupted(run, interrupt(2), seed=7, moment=moment)
            digest.update(dump([watched[-1].transcript().to_dict(), outcomes]))
        yield f"{name} {digest.hexdigest()}"


async def interrupted_transcript() -> object:
    """What memory holds of a round with three workers that is interrupted."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(the_bell.ring, [])
        async with open_conversation(Planner("boss", Worker("a"), Worker("b"), Worker("c"))) as conversation:
            started = conversation.communicate("q")
            await trio.sleep(0.25)
            conversation.intervene("x", broadcast_level=2)
            await started.reply()
        nursery.cancel_scope.cancel()
    return conversation.transcript().to_dict()


async def fail_by_itself(watch: Watch) -> None:
    """A scenario that fails by itself."""
    async with open_conversation(Worker()) as conversation:
        watch(conversation)
        raise ValueError("no such thing")


def test_one_seed_gives_one_transcript() -> None:
    first = run_seeded(interrupted_transcript, 3)
    assert run_seeded(interrupted_transcript, 3) == first


def test_seeds_give_different_schedules() -> None:
    assert len({json.dumps(run_seeded(interrupted_transcript, seed)) for seed in range(10)}) > 1


@pytest.mark.slow
def test_a_seed_gives_the_same_bytes_in_every_process() -> None:
    running = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", PRINT_DIGESTS]
        running.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE))
    printed = [process.communicate(timeout=60)[0].decode().splitlines() for process in running]
    assert printed[0] == printed[1] and len(set(printed[0])) == 6


def test_the_scheduler_is_as_it_was_after_a_seeded_run() -> None:
    allowed, state = trio_run._ALLOW_DETERMINISTIC_SCHEDULING, trio_run._r.getstate()
    run_seeded(interrupted_transcript, 3)
    assert (trio_run._ALLOW_DETERMINISTIC_SCHEDULING, trio_run._r.getstate()) == (allowed, state)


def test_a_run_that_hangs_ends_at_its_limit() -> None:
    with pytest.raises(trio.TooSlowError):
        run_seeded(trio.sleep_forever, limit=10)


def test_a_trio_that_cannot_be_seeded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(trio_run, "_r")
    with pytest.raises(RuntimeError, match=r"trio .* cannot be seeded"):
        run_seeded(interrupted_transcript)


def test_every_moment_is_tried_unless_a_sample_is_asked_for() -> None:
    moments = count_moments(SCENARIOS["depth 1"])
    assert every_interrupt_point(SCENARIOS["depth 1"]).runs == moments > 30
    assert every_interrupt_point(SCENARIOS["depth 1"], seeds=range(3), sample=4).runs == 12


def test_a_report_reads_as_a_sentence() -> None:
    report = every_interrupt_point(SCENARIOS["depth 1"], sample=6)
    assert report.summary.startswith("6 runs over 1 seeds: ")
    assert str(InterruptReport()) == "0 runs over 0 seeds: nothing injected"


def test_a_scenario_that_fails_by_itself_is_broken_before_anything_is_injected() -> None:
    with pytest.raises(InvariantBroken, match=r"seed 0, undisturbed: .*no such thing") as broken:
        every_interrupt_point(fail_by_itself)
    assert isinstance(broken.value.__cause__, ValueError)


def test_an_injection_that_fails_is_reported() -> None:
    def inject(conversation: Conversation) -> None:
        raise KeyError("typo")

    with pytest.raises(InvariantBroken, match="typo"):
        run_interrupted(SCENARIOS["depth 1"], inject, seed=0, moment=5)


def test_a_verb_that_is_refused_injects_nothing() -> None:
    last = count_moments(SCENARIOS["depth 1"]) - 1
    assert run_interrupted(SCENARIOS["depth 1"], lambda conversation: conversation.communicate("x"), 0, last) == []


def test_the_outcome_of_every_receipt_is_given() -> None:
    assert run_interrupted(SCENARIOS["depth 2"], interrupt(1, times=2), 0, 40) == ["seen", "seen"]


class Outliving(Worker):
    """Starts a task that ends with the host's nursery, and not with its attempt."""

    def __init__(self, nursery: trio.Nursery, seconds: float) -> None:
        super().__init__()
        self.nursery = nursery
        self.seconds = seconds

    async def work(self, context: TurnContext) -> None:
        self.nursery.start_soon(trio.sleep, self.seconds)
        await trio.sleep(1)


def outliving(seconds: float) -> Scenario:
    """A conversation with such a role."""

    async def run(watch: Watch) -> None:
        async with trio.open_nursery() as nursery:
            async with open_conversation(Outliving(nursery, seconds)) as conversation:
                await watch(conversation).send("q")
            nursery.cancel_scope.cancel()

    return run


def test_a_task_that_outlives_its_round_is_named() -> None:
    with pytest.raises(InvariantBroken, match=r"undisturbed: nothing is left behind: the round has ended over .*sleep"):
        count_moments(outliving(2))


def test_a_task_that_outlives_its_attempt_is_named() -> None:
    with pytest.raises(InvariantBroken, match=r"nothing is left behind: attempt 2 of .* begins over .*sleep"):
        every_interrupt_point(outliving(0.9))


class Telling(Worker):
    """Tells somebody, who goes on when the round has ended."""

    async def work(self, context: TurnContext) -> None:
        await context.tell("late", "go on")


def test_a_task_that_outlives_told_work_is_named_when_the_conversation_closes() -> None:
    async def run(watch: Watch) -> None:
        async with trio.open_nursery() as nursery:
            late = Outliving(nursery, 2)
            late.name = "late"
            async with open_conversation(Telling(), late) as conversation:
                await watch(conversation).send("q")
                await conversation.wait_idle()
            nursery.cancel_scope.cancel()

    with pytest.raises(InvariantBroken, match=r"nothing is left behind: the conversation has closed over .*sleep"):
        count_moments(run)


def test_a_system_task_that_outlives_the_scenario_is_named() -> None:
    async def run(watch: Watch) -> None:
        trio.lowlevel.spawn_system_task(trio.sleep_forever, name="forgotten")
        await SCENARIOS["depth 1"](watch)

    with pytest.raises(InvariantBroken, match="alive after the scenario: task forgotten"):
        count_moments(run)


class Lasting(Worker):
    """Lets a task run in a nursery that its `live` has opened."""

    @asynccontextmanager
    async def live(self, context: LiveContext) -> AsyncIterator[trio.Nursery]:
        async with trio.open_nursery() as nursery:
            yield nursery
            nursery.cancel_scope.cancel()

    async def work(self, context: TurnContext) -> None:
        context.state.start_soon(trio.sleep_forever)
        await super().work(context)


def test_what_live_has_opened_is_no_leftover() -> None:
    async def run(watch: Watch) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(the_bell.ring, [])
            async with open_conversation(Lasting()) as conversation:
                await watch(conversation).send("q")
            nursery.cancel_scope.cancel()

    assert every_interrupt_point(run, sample=8).outcomes["seen"]


def test_the_threads_that_trio_keeps_for_later_are_no_leftovers() -> None:
    async def use_a_thread() -> None:
        await trio.to_thread.run_sync(str)

    before = Holdings.now()
    trio.run(use_a_thread)
    assert any(thread.name.startswith(TRIO_WORKERS) for thread in threading.enumerate())
    assert before.left_behind() == []


def test_what_a_thread_comes_to_after_the_words_breaks_nothing(gate: Gate) -> None:
    def wait() -> str:
        return gate.pass_through()

    class Caller(Worker):
        async def work(self, context: TurnContext) -> None:
            await context.call(Tool(wait), {})

    class Asker(Planner):
        async def receive(self, post: Post, context: TurnContext) -> Post:
            if not context.user_words:
                return post.reply((await context.ask("worker", "do")).message)
            gate.open()
            while not any(note.marks.state == "late" for note in await notes(context, "worker")):
                pass  # to wait would let the clock jump
            return post.reply("heard")

    async def run(watch: Watch) -> None:
        async with open_conversation(Asker("asker"), Caller()) as conversation:
            started = watch(conversation).communicate("q")
            await trio.sleep(1)
            conversation.intervene("x", broadcast_level=2)
            assert (await started.reply()).message == "heard"

    assert run_interrupted(run, lambda conversation: None, seed=0, moment=1) == []


async def notes(context: TurnContext, role: str) -> tuple[Post, ...]:
    """What the last round holds of a role."""
    return (await get_role_rounds(context, role))[-1].post_list


@contextmanager
def a_descriptor() -> Iterator[None]:
    number = os.open(os.devnull, os.O_RDONLY)
    yield
    os.close(number)


@contextmanager
def a_thread() -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="left")
    thread.start()
    yield
    over.set()
    thread.join()


@contextmanager
def a_process() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield
    process.communicate(b"\n")


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="only Linux lists what a process has open")
@pytest.mark.parametrize(("open_one", "named"), [(a_descriptor, "descriptor"), (a_process, "process")])
def test_what_an_interrupted_run_leaves_open_is_named(open_one: Opener, named: str) -> None:
    assert_it_is_named(open_one, named)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="only Linux lists what a process has open")
def test_looking_for_descriptors_leaves_none() -> None:
    before = Holdings.now()
    with a_descriptor():
        assert [what.endswith(os.devnull) for what in before.left_behind()] == [True]


def test_a_thread_that_an_interrupted_run_leaves_is_named() -> None:
    assert_it_is_named(a_thread, "thread left")


def assert_it_is_named(open_one: Opener, named: str) -> None:
    """A role whose second attempt leaves something open, which the undisturbed run does not show."""
    with ExitStack() as stack:

        class Leaving(Worker):
            async def work(self, context: TurnContext) -> None:
                if context.attempt == 2:
                    stack.enter_context(open_one())

        async def run(watch: Watch) -> None:
            async with open_conversation(Leaving()) as conversation:
                await watch(conversation).send("q")

        with pytest.raises(InvariantBroken, match=f"nothing is left behind: alive after the scenario: .*{named}"):
            every_interrupt_point(run)


def test_a_transcript_that_does_not_load_as_it_was_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "dump", lambda data: dump(data).replace(b"User", b"Somebody"))
    with pytest.raises(InvariantBroken, match=r"a transcript that is written loads again: .*Somebody"):
        count_moments(SCENARIOS["depth 1"])


def test_a_transcript_that_does_not_load_at_all_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "dump", lambda data: dump(data).replace(b"rounds", b"sounds"))
    with pytest.raises(InvariantBroken, match=r"does not load: .*rounds"):
        count_moments(SCENARIOS["depth 1"])


def test_one_run_in_so_many_loads_its_transcript(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []

    def dump_and_count(data: object) -> bytes:
        written.append(data)
        return dump(data)

    monkeypatch.setattr(record, "dump", dump_and_count)
    assert LOADED < every_interrupt_point(SCENARIOS["depth 1"]).runs < 2 * LOADED
    assert len(written) == 2


def posts_on_a_way(*kinds: Kind) -> list[Post]:
    """Posts of one role to another, made in this order, each the answer to one request."""
    marks = (Marks("request", kind) if kind == "reply" else Marks(kind=kind) for kind in kinds)
    return [Post.create("", "a", "b", marks=one) for one in marks]


def test_posts_of_one_way_that_change_places_are_out_of_order() -> None:
    first, second = posts_on_a_way("message", "message")
    other = Post.create("", "b", "a")
    assert not list(find_disorder([first, other, second], [first, other, second]))
    assert not list(find_disorder([other, first, second], [first, other, second]))
    assert list(find_disorder([second, first], [first, second]))
    first, second = posts_on_a_way("reply", "reply")
    assert list(find_disorder([second, first], [first, second]))


def test_ids_increase_but_for_replies_which_a_role_may_make_early() -> None:
    early, later = posts_on_a_way("reply", "message")
    assert not list(find_disorder([later, early], [later, early]))
    early, later = posts_on_a_way("message", "message")
    assert list(find_disorder([later, early], [later, early]))


def test_a_memory_that_files_out_of_order_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FiledRound, "add", lambda self, post: self.posts.insert(0, post))
    with pytest.raises(InvariantBroken, match=r"order is kept: .* stands behind"):
        count_moments(SCENARIOS["tools"])


@pytest.mark.slow
def test_a_report_says_who_was_about_to_run_and_what_went_on() -> None:
    report = every_interrupt_point(SCENARIOS["tools"])
    report.add(every_interrupt_point(SCENARIOS["a host that times out"]))
    assert report.moments.total() == report.runs
    assert {step for _, step in report.moments} == set(STEPS)
    assert {who for who, _ in report.moments} == {
        "boss",
        "worker",
        "memory",
        "watch",
        "host",
        "trio",
        "between batches",
    }
    assert not {who for who, step in report.moments if step == "tool"} & {"boss", "memory"}


def test_the_table_of_moments_adds_up() -> None:
    moments = Counter({("worker", "tool"): 2, ("boss", "tool"): 1, ("memory", "queued"): 4})
    report = InterruptReport(7, 1, Counter(seen=7), moments)
    assert str(report).splitlines() == [
        "7 runs over 1 seeds: 7 seen",
        "        queued  tool  all",
        "boss               1    1",
        "worker             2    2",
        "memory       4          4",
        "all          4     3    7",
    ]
    assert "a role             3    3" in report.table(roles="a role")


class Cautious(Planner):
    """Answers what failed under it, and why."""

    async def ask(self, name: str, context: TurnContext) -> str:
        try:
            return (await context.ask(name, "do")).message
        except RoleFailed as error:
            return f"{error.role}: {type(error.__cause__).__name__}"


async def ask_until_answered(conversation: Conversation) -> None:
    """A host that asks once more if its round fails, and is answered then."""
    try:
        reply = await conversation.send("q")
    except RoleFailed as error:
        assert isinstance(error.__cause__, InjectedFailure)
        reply = await conversation.send("again")
    assert reply.message in ("boss[]['worker[]']", "boss[]['worker: InjectedFailure']")
    await conversation.send("and again")


def test_a_failure_goes_to_who_asked_and_the_conversation_goes_on() -> None:
    cautious = scenario(lambda: Cautious("boss", Worker()), host=ask_until_answered)
    assert every_interrupt_point(cautious, fail(), sample=40).outcomes["failed"]
    assert every_interrupt_point(cautious, fail("boss"), sample=40).outcomes["failed"]
    assert every_interrupt_point(cautious, fail("nobody"), sample=3).outcomes == {"met nobody": 3}


def test_a_host_that_does_not_expect_the_failure_may_end_with_it() -> None:
    outcomes = every_interrupt_point(SCENARIOS["depth 2"], fail()).outcomes
    assert set(outcomes) == {"failed", "met nobody"} and outcomes["failed"] > 20


def test_a_role_may_handle_its_failure() -> None:
    class Sturdy(Worker):
        async def work(self, context: TurnContext) -> None:
            with suppress(InjectedFailure):
                await trio.sleep(1)

    async def run(watch: Watch) -> None:
        async with open_conversation(Sturdy()) as conversation:
            with suppress(RoleFailed):
                await watch(conversation).send("q")

    assert every_interrupt_point(run, fail()).outcomes["handled"]


class Hasty(Planner):
    """Waits a little for a subordinate, and then does without."""

    async def receive(self, post: Post, context: TurnContext) -> Post:
        with trio.move_on_after(0.15):
            await context.ask("worker", "do")
        return post.reply("done")


def test_nothing_fails_in_the_wait_for_recalled_work() -> None:
    hasty = scenario(lambda: Hasty("boss", LateWorker()))
    assert every_interrupt_point(hasty, fail("boss"), sample=20).outcomes["failed"]


def forget_the_error(self: Attempts, turn: Turn, error: Exception) -> None:
    """The asker's answer is lost from memory."""
    self._keep_draft(turn)


def fail_all_that_is_told(self: Attempts, turn: Turn, error: Exception) -> None:
    """The role takes no more posts."""
    settle_error(self, turn, error)
    entry = self._router.directory.find(turn.role)
    entry.failed = RoleFailed(turn.role, "", error)


settle_error = Attempts._settle_error


@pytest.mark.parametrize(("fault", "said"), [(forget_the_error, "who asked got"), (fail_all_that_is_told, "any more")])
def test_a_failure_that_does_more_than_it_should_is_caught(fault: Settle, said: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(Attempts, "_settle_error", fault)
    with pytest.raises(InvariantBroken, match=f"a failure goes to whoever asked: .*{said}"):
        every_interrupt_point(SCENARIOS["depth 2"], fail())


def test_a_failure_that_reaches_somebody_else_is_caught(monkeypatch: Patch) -> None:
    spread: list[Exception] = []
    end = Turn.end

    def end_with_the_last_error(self: Turn, result: Post | Exception | None) -> None:
        end(self, spread[-1] if spread and isinstance(result, Post) else result)
        spread.extend([result] if isinstance(result, RoleFailed) else [])

    monkeypatch.setattr(Turn, "end", end_with_the_last_error)
    with pytest.raises(InvariantBroken, match=r"a failure goes to whoever asked: .* was to fail, and .* did"):
        run_interrupted(scenario(lambda: Cautious("boss", Worker("a"), Worker("b"))), fail("a"), seed=0, moment=30)


def test_a_proof_travels_between_processes_with_what_broke(monkeypatch: Patch) -> None:
    monkeypatch.setitem(SCENARIOS, "failing", fail_by_itself)
    proof = pickle.loads(pickle.dumps(prove.prove(("failing", "level 1"), seeds=1, sample=None)))
    assert [invariants for _, invariants in proof.broken] == [{Invariant.HOST_UNHARMED}]
    assert proof.empty_steps == list(STEPS)


USERS_TEST = """
def test_fixture(every_interrupt_point):
    options = every_interrupt_point.keywords
    print("tries", list(options["seeds"]), options["sample"], every_interrupt_point.func.__module__)
"""


@pytest.mark.parametrize(
    ("options", "tried"), [([], "[0] None"), (["--interrupt-seeds=2", "--interrupt-sample=3"], "[0, 1] 3")]
)
def test_the_fixture_takes_its_seeds_and_sample_from_the_command_line(
    pytester: pytest.Pytester, options: list[str], tried: str
) -> None:
    pytester.makepyfile(USERS_TEST)
    result = pytester.runpytest_inprocess("-s", *options)
    result.stdout.fnmatch_lines([f"*tries {tried} callboard.runtime.testing*".replace("[", "[[]")])


def test_the_fixture_refuses_a_number_that_is_none(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("--interrupt-seeds=0")
    result.stderr.fnmatch_lines(["*'0' is no whole number from 1 on*"])


def test_the_plugin_loads_nothing_of_callboard_before_it_is_used() -> None:
    program = "import sys, pytest, callboard.pytest_plugin; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "callboard.pytest_plugin" in loaded and not {"trio", "pydantic", "callboard.runtime"} & set(loaded)
