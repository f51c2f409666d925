"""Hostile tools: whatever a tool does when it is cancelled, the answer comes with the user's words, in the time stated.

Time is virtual unless a test says otherwise: 0 seconds are the steps of the tasks and nothing else. Afterwards no task,
thread at work, process or descriptor is there that was not there before.
"""

import gc
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.event import AttemptCut, DraftGrew, Event, PostRecorded, WorkAbandoned
from callboard.runtime.ids import Ids
from callboard.runtime.nursery import open_nursery
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.receipt import Receipt, Stopped
from callboard.runtime.tool import Report, Tool
from callboard.runtime.watchdog import Blockage, open_watchdog

from . import work_to_stop as work
from .roles import Does, log, posts
from .test_code_runner import reaped, wait_gone
from .test_thread_call import Gate, gate

__all__ = ["gate"]

# Real seconds in which what is stopped at once has stopped, also on a machine that is busy; 0.1 on one that is not.
AT_ONCE = 5.0

LEFT = "a thread that did not end within 2 s: it is left behind"
GOES_ON = "an async function that swallows its cancellation, or cleans up for more than {} s: it is waited for"


class Caller(Actor):
    """Calls a tool, and answers with the user's words as soon as there are any."""

    name = "Caller"

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    async def receive(self, post: Post, context: TurnContext) -> Post:
        if said := [words.message for words in context.user_words]:
            return post.reply(f"heard {' '.join(said)}")
        return post.reply(f"done: {await self.call(context)}")

    async def call(self, context: TurnContext) -> Any:
        return await context.call(self.tool, {})


class Course:
    """A conversation in which a tool is interrupted, as it goes and when it is over."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.seconds = 0.0
        """From the words to the answer."""
        self.receipt: Receipt
        self.stopped: Stopped
        self.abandoned: list[str] = []
        """What `WorkAbandoned` told of, among the events that were read."""
        self._events = conversation.events()

    async def see(self, kind: Callable[[Event], bool]) -> Any:
        """The next event of that kind; None if there is none before the conversation ends."""
        async for event in self._events:
            if isinstance(event, WorkAbandoned):
                self.abandoned.append(event.what)
            if kind(event):
                return event
        return None

    async def report(self) -> int:
        """Waits for a tool to report `ready` and the number of a process; that number."""
        grown = await self.see(lambda event: isinstance(event, DraftGrew))
        return int(grown.text.split()[1])

    async def late(self) -> Post:
        """Waits for a note of state late."""
        recorded = await self.see(lambda event: isinstance(event, PostRecorded) and event.post.marks.state == "late")
        post: Post = recorded.post
        return post

    @property
    def notes(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Of the notes of calls: their state, and what they say beside the call and the tool."""
        return [(post.marks.state, content(post)) for post in self.posts if post.get_attachment("function")]

    @property
    def posts(self) -> list[Post]:
        """All that was recorded."""
        return posts(self.conversation)


def content(post: Post) -> dict[str, Any]:
    """What the note of a call says beside the call and the tool."""
    (note,) = post.get_attachment("function")
    said: dict[str, Any] = json.loads(str(note.content))
    return {key: value for key, value in said.items() if key not in ("call", "tool")}


async def a_second(course: Course) -> None:
    """Lets one pass."""
    await trio.sleep(1)


@asynccontextmanager
async def interrupted(
    root: Actor, when: Callable[[Course], Awaitable[object]] = a_second, level: int = 1, **options: Any
) -> AsyncIterator[Course]:
    """Interrupts the tool at that moment; the answer must have the words, and the conversation is still open."""
    async with open_conversation(root, options=ConversationOptions(**options)) as conversation:
        course = Course(conversation)
        started = conversation.communicate("go")
        await when(course)
        begun = trio.current_time()
        course.receipt = conversation.intervene("the words", broadcast_level=level)
        answer = (await started.reply()).message
        course.seconds = trio.current_time() - begun
        course.stopped = await course.receipt.stopped()
        yield course
    await course.see(lambda event: False)
    assert answer == "heard the words"


async def interrupt(
    root: Actor, when: Callable[[Course], Awaitable[object]] = a_second, level: int = 1, **options: Any
) -> Course:
    """The same, once all is over."""
    async with interrupted(root, when, level, **options) as course:
        pass
    return course


def under_a_boss(tool: Tool) -> Actor:
    """A role that calls a tool, under one that answers with the user's words as soon as there are any."""

    async def ask(post: Post, context: TurnContext) -> str:
        said = [words.message for words in context.user_words]
        return f"heard {' '.join(said)}" if said else (await context.ask("Caller", "do")).message

    return Does("Boss", ask, Caller(tool))


def waiting(gate: Gate, error: Exception | None = None) -> Callable[[], str]:
    """A function that nothing ends but the gate."""

    def wait() -> str:
        return gate.pass_through(error)

    return wait


def holding(gate: Gate) -> tuple[Tool, trio.Event]:
    """A tool in a thread that nothing ends but the gate, and the event that it runs."""
    runs = trio.Event()

    def hold() -> str:
        trio.from_thread.run_sync(runs.set)
        return gate.pass_through()

    return Tool(hold), runs


def alive() -> tuple[object, ...]:
    """The tasks of this run, the threads at work, the children of this process, and its descriptors."""
    tasks = trio.lowlevel.current_statistics().tasks_living
    # trio keeps threads for the next call for a while, under this name.
    threads = [thread.name for thread in threading.enumerate() if not thread.name.startswith("Trio thread")]
    if sys.platform != "linux":
        return tasks, threads
    stats = {name: _stat(name) for name in os.listdir("/proc") if name.isdecimal()}
    children = sorted(name for name, parent in stats.items() if parent == str(os.getpid()))
    return tasks, threads, children, sorted(os.listdir("/proc/self/fd"))


def _stat(pid: str) -> str | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
    except OSError:
        return None


class Noticed(Tool):
    """Its `came` is set when what a thread of it came to late was handed on."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.came = trio.Event()

    async def run(self, arguments: Mapping[str, Any], report: Report, **ends: Any) -> Any:
        on_late = ends.pop("on_late")

        def notice(result: object) -> None:
            on_late(result)
            self.came.set()

        return await super().run(arguments, report, on_late=notice, **ends)


@pytest.fixture(autouse=True)
async def nothing_is_left() -> AsyncIterator[None]:
    """Nothing is alive after a test that was not before."""
    before = alive()
    yield
    await wait_all_tasks_blocked()
    assert alive() == before


@contextmanager
def swallowed() -> Iterator[None]:
    """A clause that takes a cancellation for an error like any other."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, trio.Cancelled):
            raise


async def test_one_that_swallows_once_is_stopped_in_0_s(autojump_clock: MockClock) -> None:
    async def tool() -> None:
        with swallowed():
            await trio.sleep_forever()
        await trio.sleep_forever()

    assert (await interrupt(Caller(Tool(tool)))).seconds == 0


async def test_one_that_swallows_ten_times_is_stopped_in_0_s(autojump_clock: MockClock) -> None:
    async def tool() -> None:
        for _ in range(10):
            with swallowed():
                await trio.sleep(3600)
        await trio.sleep_forever()

    assert (await interrupt(Caller(Tool(tool)))).seconds == 0


async def test_one_that_swallows_ten_times_with_a_shielded_delay_is_stopped_when_these_are_over(
    autojump_clock: MockClock,
) -> None:
    async def tool() -> None:
        for _ in range(10):
            with swallowed():
                await trio.sleep(3600)
            with trio.CancelScope(shield=True):
                await trio.sleep(0.125)
        await trio.sleep_forever()

    assert (await interrupt(Caller(Tool(tool)))).seconds == 1.25


async def test_one_that_cleans_up_for_2_s_is_waited_for_that_long(autojump_clock: MockClock) -> None:
    cleaned: list[bool] = []

    async def tool() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True, relative_deadline=3):
                await trio.sleep(2)
            cleaned.append(True)

    course = await interrupt(Caller(Tool(tool)), ladder=3)
    assert course.seconds == 2
    assert cleaned and not course.abandoned and not course.stopped.abandoned


async def test_one_that_cleans_up_for_longer_than_the_ladder_is_told_to_all_words_and_waited_for(
    autojump_clock: MockClock,
) -> None:
    async def tidy() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(9)
        await trio.lowlevel.checkpoint()

    async def call(post: Post, context: TurnContext) -> str:
        if said := [words.message for words in context.user_words]:
            return f"heard {said[-1]}"
        await context.call(Tool(tidy), {})
        return "never"

    receipts: list[Receipt] = []

    async def nudge_twice(course: Course) -> None:
        for _ in range(2):
            await trio.sleep(3)
            receipts.append(course.conversation.nudge())

    course = await interrupt(Does("Caller", call), nudge_twice)
    assert course.seconds == 3
    assert course.abandoned == [f"tidy: {GOES_ON.format(2)}"]
    for receipt in (*receipts, course.receipt):
        assert list((await receipt.stopped()).abandoned) == course.abandoned


async def test_one_that_raises_in_clean_up_fails_nobody_in_0_s(autojump_clock: MockClock) -> None:
    async def tool() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("no disk")

    course = await interrupt(Caller(Tool(tool)))
    assert course.seconds == 0
    assert ["no disk" in str(error) for error in course.stopped.errors] == [True]


async def test_one_with_tasks_in_its_own_nursery_is_stopped_with_them_in_0_s(autojump_clock: MockClock) -> None:
    ended: list[int] = []

    async def task(number: int) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(number)

    async def tool() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(task, number)

    assert (await interrupt(Caller(Tool(tool)))).seconds == 0
    assert sorted(ended) == list(range(10))


async def test_one_that_swallows_ten_times_in_its_own_nursery_is_stopped_in_0_s(autojump_clock: MockClock) -> None:
    async def task() -> None:
        for _ in range(10):
            with swallowed():
                await trio.sleep_forever()
        await trio.sleep_forever()

    async def tool() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(task)

    assert (await interrupt(Caller(Tool(tool)))).seconds == 0


@pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning")
async def test_one_that_leaves_a_generator_with_an_open_nursery_fails_nobody_in_0_s(
    autojump_clock: MockClock,
) -> None:
    ended: list[bool] = []

    async def task() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(True)

    async def numbers() -> AsyncIterator[int]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(task)
            yield 1

    async def tool() -> None:
        async for _ in numbers():
            await trio.sleep_forever()

    async with interrupted(Caller(Tool(tool))) as course:
        # The generator is closed by a task of trio's, which a conversation that is left in this very step overtakes:
        # it would raise "Nursery stack corrupted".
        await wait_all_tasks_blocked()
    assert course.seconds == 0
    assert ["Cancel scope stack corrupted" in str(error) for error in course.stopped.errors] == [True]
    gc.collect()
    await wait_all_tasks_blocked()
    assert ended == [True]


async def test_a_system_task_is_the_hosts_own_and_holds_nobody_up(autojump_clock: MockClock) -> None:
    """It is no child of the call's, and nothing tells whose it is: so it is neither ended nor reported."""
    scope = trio.CancelScope()

    async def stay() -> None:
        with scope:
            await trio.sleep_forever()

    async def tool() -> None:
        trio.lowlevel.spawn_system_task(stay)
        await trio.sleep_forever()

    assert (await interrupt(Caller(Tool(tool)))).seconds == 0
    scope.cancel(reason="the host ends it")


async def test_a_thread_that_asks_whether_it_is_cancelled_ends_at_once_in_real_time() -> None:
    runs = trio.Event()
    ended: list[bool] = []

    def tool() -> None:
        trio.from_thread.run_sync(runs.set)
        try:
            while True:
                trio.from_thread.check_cancelled()
        finally:
            ended.append(True)

    course = await interrupt(Caller(Tool(tool)), lambda course: runs.wait())
    assert course.seconds < AT_ONCE
    assert ended
    assert course.notes[1:] == [("partial", {"outcome": "interrupted"})]


async def test_a_thread_that_ends_within_the_ladder_is_waited_for_and_its_result_stands_behind_its_outcome(
    gate: Gate,
) -> None:
    tool, runs = holding(gate)

    async def open_when_all_wait() -> None:
        await wait_all_tasks_blocked()
        gate.open()

    async def begin(course: Course) -> None:
        await runs.wait()
        nursery.start_soon(open_when_all_wait)  # which begins after this step, in which the tool is cancelled

    async with open_nursery() as nursery:
        course = await interrupt(Caller(tool), begin, ladder=20)
    assert course.seconds < AT_ONCE
    assert not course.abandoned and not course.stopped.abandoned
    assert course.notes[1:] == [("partial", {"outcome": "interrupted"}), ("late", {"result": "through"})]
    assert [post.marks.kind for post in course.posts[2:]] == ["note", "note", "intervention", "reply"]
    assert course.posts[3].marks.in_reply_to == course.posts[2].id


async def test_a_thread_that_does_not_end_is_left_behind_after_2_s_and_its_result_comes_late(
    autojump_clock: MockClock, gate: Gate
) -> None:
    ids = Ids(lambda: 0)
    async with interrupted(Caller(Tool(waiting(gate))), ids=ids) as course:
        assert course.seconds == 2
        assert course.stopped.abandoned == (f"wait: {LEFT}",)
        gate.open()
        late = await course.late()
    assert course.abandoned == [f"wait: {LEFT}"]
    assert course.notes[1:] == [("partial", {"outcome": "interrupted"}), ("late", {"result": "through"})]
    assert [post.marks.kind for post in course.posts[2:]] == ["note", "intervention", "reply", "note"]
    assert (late.marks.in_reply_to, late.marks.at) == (course.posts[2].id, "1970-01-01T00:00:00.000000Z")


async def test_what_a_thread_that_was_left_behind_raises_comes_late_too(autojump_clock: MockClock, gate: Gate) -> None:
    async with interrupted(Caller(Tool(waiting(gate, OSError("no disk"))))) as course:
        gate.open()
        assert content(await course.late()) == {"error": "OSError: no disk"}


async def test_the_thread_of_a_recalled_role_is_told_to_the_words_that_recalled_it(
    autojump_clock: MockClock, gate: Gate
) -> None:
    async with interrupted(under_a_boss(Tool(waiting(gate))), level=2) as course:
        assert course.seconds == 2
        assert (course.receipt.recalled, course.stopped.abandoned) == (("Caller",), (f"wait: {LEFT}",))
        gate.open()
        late = await course.late()
    assert (late.send_from, content(late)) == ("Caller", {"result": "through"})
    assert log(course.conversation)[3:] == [
        "Caller > Caller note partial ",
        "Caller > Boss reply partial ",
        "User > Caller intervention the words",
        "User > Boss intervention the words",
        "Boss > User reply heard the words",
        "Caller > Caller note late ",
    ]


async def test_nothing_of_a_thread_is_recorded_once_the_conversation_has_closed(
    autojump_clock: MockClock, gate: Gate
) -> None:
    tool = Noticed(waiting(gate))
    course = await interrupt(Caller(tool))
    recorded = course.posts
    gate.open()
    await tool.came.wait()
    assert course.posts == recorded


async def test_what_ends_while_the_conversation_is_left_is_still_recorded(gate: Gate) -> None:
    tool, runs = holding(gate)

    async def open_when_cut() -> None:
        await course.see(lambda event: isinstance(event, AttemptCut))
        await wait_all_tasks_blocked()
        gate.open()

    async with open_nursery() as nursery, open_conversation(Caller(tool)) as conversation:
        course = Course(conversation)
        conversation.communicate("go")
        await runs.wait()
        nursery.start_soon(open_when_cut)
    assert course.notes[1:] == [("partial", {"outcome": "interrupted"}), ("late", {"result": "through"})]


async def test_a_thread_that_outlives_its_time_limit_is_an_event_and_no_words_own(
    autojump_clock: MockClock, gate: Gate
) -> None:
    async def call(post: Post, context: TurnContext) -> str:
        if said := [words.message for words in context.user_words]:
            return f"heard {' '.join(said)}"
        with pytest.raises(Exception, match="TooSlowError"):
            await context.call(Tool(waiting(gate), timeout=1), {})
        await trio.sleep_forever()
        return "never"

    async def wait(course: Course) -> None:
        await trio.sleep(9)

    async with interrupted(Does("Caller", call), wait) as course:
        assert course.seconds == 0
        gate.open()
        await course.late()
    assert (course.abandoned, course.stopped.abandoned) == ([f"wait: {LEFT}"], ())
    assert course.notes[1:] == [
        ("whole", {"outcome": "failed", "error": "TooSlowError"}),
        ("late", {"result": "through"}),
    ]


async def test_a_thread_that_is_let_finish_is_left_behind_when_its_grace_and_then_the_ladder_are_over(
    autojump_clock: MockClock, gate: Gate
) -> None:
    tool = Tool(waiting(gate), interruptible=False, grace=5)
    async with interrupted(Caller(tool)) as course:
        assert course.seconds == 7
        assert course.stopped.abandoned == (f"wait: {LEFT}",)
        gate.open()
        await course.late()


async def test_a_child_process_in_a_session_of_its_own_is_killed_at_once_in_real_time() -> None:
    pids: list[int] = []

    async def ready(course: Course) -> None:
        pids.append(await course.report())

    course = await interrupt(Caller(Tool(work.start_child, in_process=True)), ready)
    assert course.seconds < AT_ONCE
    assert course.notes[1:] == [("partial", {"outcome": "interrupted", "progress": f"ready {pids[0]}"})]
    await wait_gone(pids[0])


async def test_a_function_in_a_process_that_swallows_for_ever_is_killed_at_once_in_real_time() -> None:
    pids: list[int] = []

    async def ready(course: Course) -> None:
        pids.append(await course.report())

    course = await interrupt(Caller(Tool(work.swallow_for_ever, in_process=True)), ready)
    assert course.seconds < AT_ONCE
    assert not course.abandoned and not course.stopped.abandoned
    assert reaped(pids[0])


async def test_its_async_twin_in_a_nursery_of_its_own_is_reported_after_the_ladder_and_waited_for() -> None:
    """In real time: it goes round and round, so no virtual time would pass."""
    mercy = trio.Event()
    told: list[float] = []
    begun: list[float] = []

    async def task() -> None:
        while not mercy.is_set():
            with swallowed():
                await mercy.wait()

    async def swallow_for_ever() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(task)
        await trio.lowlevel.checkpoint()

    async def have_mercy(course: Course) -> None:
        await course.see(lambda event: isinstance(event, WorkAbandoned))
        told.append(trio.current_time())
        mercy.set()

    async def begin(course: Course) -> None:
        await wait_all_tasks_blocked()
        nursery.start_soon(have_mercy, course)
        begun.append(trio.current_time())

    with trio.fail_after(20):
        async with open_nursery() as nursery:
            course = await interrupt(Caller(Tool(swallow_for_ever)), begin, ladder=0.0625)
    assert told[0] >= begun[0] + 0.0625
    assert course.abandoned == list(course.stopped.abandoned) == [f"swallow_for_ever: {GOES_ON.format(0.0625)}"]


async def test_one_whose_grace_is_over_in_a_block_that_goes_on_fails_there_and_fails_nobody(
    autojump_clock: MockClock,
) -> None:
    async def call(post: Post, context: TurnContext) -> str:
        if said := [words.message for words in context.user_words]:
            return f"heard {' '.join(said)}"
        async with context.uninterruptible(grace=30):
            await context.call(Tool(trio.sleep, interruptible=False, grace=3), {"seconds": 50})
        return "never"

    course = await interrupt(Does("Caller", call))
    assert course.seconds == 3
    assert course.notes[1:] == [("whole", {"outcome": "failed", "error": "TooSlowError: its grace is over"})]
    assert [str(error) for error in course.stopped.errors] == ["sleep failed: TooSlowError: its grace is over"]


class Unshowable:
    """What no text stands for."""

    def __repr__(self) -> str:
        raise OSError("no words")


def endless() -> list[object]:
    """A list that holds itself."""
    items: list[object] = []
    items.append(items)
    return items


def deep() -> list[object]:
    """A list that is nested too deep to be written."""
    items: list[object] = []
    for _ in range(5000):
        items = [items]
    return items


@pytest.mark.parametrize(
    ("make", "written"),
    [
        (Unshowable, "<Unshowable>"),
        (lambda: {"half": "\ud800", "thing": Unshowable()}, {"half": "\ud800", "thing": "<Unshowable>"}),
        (endless, "[[...]]"),
        (deep, None),  # how deep is too deep, Python's versions see differently
    ],
    ids=["no text", "half a letter", "endless", "deep"],
)
async def test_one_that_returns_what_cannot_be_written_has_an_outcome_all_the_same(
    make: Callable[[], object], written: object
) -> None:
    async def tool() -> object:
        return make()

    async def call(post: Post, context: TurnContext) -> str:
        return type(await context.call(Tool(tool), {})).__name__

    async with open_conversation(Does("Caller", call)) as conversation:
        course = Course(conversation)
        assert (await conversation.send("go")).message == type(make()).__name__
    state, note = course.notes[1]
    assert (state, note["outcome"]) == ("whole", "done")
    assert note["result"] == written or written is None


async def test_a_loop_without_a_checkpoint_is_named_with_its_role_after_a_real_second() -> None:
    told: list[Blockage] = []
    noticed = threading.Event()

    def on_blocked(blockage: Blockage) -> None:
        told.append(blockage)
        noticed.set()

    async def tool() -> str:
        until = time.monotonic() + 20
        while not noticed.is_set() and time.monotonic() < until:
            pass
        return "at last"

    async with open_watchdog(on_blocked=on_blocked), open_conversation(Caller(Tool(tool))) as conversation:
        answer = await conversation.send("go")
    assert answer.message == "done: at last"
    assert told[0].role == "Caller"
    assert told[0].post == conversation.transcript().rounds[0].post_list[0].id
    assert told[0].where.startswith(f"{__file__}:")
