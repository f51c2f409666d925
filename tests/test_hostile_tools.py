"""Hostile tools: whatever a tool does when it is cancelled, the answer comes with the user's words, in the time stated.

Time is virtual unless a test says otherwise: 0 seconds are the steps of the tasks and nothing else. Afterwards no task,
thread at work, process or descriptor is there that was not there before.
"""

import gc
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.nursery import open_nursery
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.receipt import Stopped
from callboard.runtime.tool import Tool
from callboard.runtime.watchdog import Blockage, open_watchdog

from . import work_to_stop as work
from .test_code_runner import reaped, wait_gone
from .test_thread_call import Gate, Late, gate

__all__ = ["gate"]

# Real seconds in which what is stopped at once has stopped, also on a machine that is busy; 0.1 on one that is not.
AT_ONCE = 5.0


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


class Told(Caller):
    """The same; keeps what the tool reported, what was abandoned, and what came late."""

    def __init__(self, tool: Tool, ladder: float = 2) -> None:
        super().__init__(tool)
        self.ladder = ladder
        self.abandoned: list[str] = []
        self.on_abandoned: Callable[[str], None] = self.abandoned.append
        self.late = Late()
        self.reported = trio.Event()
        self.pid = 0

    async def call(self, context: TurnContext) -> Any:
        return await self.tool.run({}, self.hear, ladder=self.ladder, on_abandoned=self.on_abandoned, on_late=self.late)

    def hear(self, text: str) -> None:
        """Called with what the tool reports: `ready` and the number of a process."""
        self.pid = self.pid or int(text.split()[1])
        self.reported.set()


class Outcome:
    """What came of a conversation that was interrupted."""

    def __init__(self, seconds: float, stopped: Stopped, notes: list[str]) -> None:
        self.seconds = seconds
        self.stopped = stopped
        self.notes = notes


async def a_second() -> None:
    """Lets one pass."""
    await trio.sleep(1)


async def interrupt(caller: Caller, when: Callable[[], Awaitable[None]] = a_second) -> Outcome:
    """Interrupts the tool at that moment; the answer must have the words."""
    async with open_conversation(caller) as conversation:
        started = conversation.communicate("go")
        await when()
        begun = trio.current_time()
        receipt = conversation.intervene("the words")
        answer = (await started.reply()).message
        seconds = trio.current_time() - begun
        stopped = await receipt.stopped()
        posts = conversation.transcript().rounds[0].post_list
    assert answer == "heard the words"
    notes = [str(note.content) for post in posts for note in post.get_attachment("function")]
    return Outcome(seconds, stopped, notes)


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

    caller = Told(Tool(tool), ladder=3)
    assert (await interrupt(caller)).seconds == 2
    assert cleaned and not caller.abandoned


async def test_one_that_raises_in_clean_up_fails_nobody_in_0_s(autojump_clock: MockClock) -> None:
    async def tool() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("no disk")

    outcome = await interrupt(Caller(Tool(tool)))
    assert outcome.seconds == 0
    assert ["no disk" in str(error) for error in outcome.stopped.errors] == [True]


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

    outcome = await interrupt(Caller(Tool(tool)))
    assert outcome.seconds == 0
    assert ["Cancel scope stack corrupted" in str(error) for error in outcome.stopped.errors] == [True]
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

    assert (await interrupt(Caller(Tool(tool)), runs.wait)).seconds < AT_ONCE
    assert ended


async def test_a_thread_that_ends_within_the_ladder_is_waited_for_and_its_result_comes_late(gate: Gate) -> None:
    runs = trio.Event()

    def tool() -> str:
        trio.from_thread.run_sync(runs.set)
        return gate.pass_through()

    async def open_when_all_wait() -> None:
        await wait_all_tasks_blocked()
        gate.open()

    async def begin() -> None:
        await runs.wait()
        nursery.start_soon(open_when_all_wait)  # which begins after this step, in which the tool is cancelled

    caller = Told(Tool(tool))
    async with open_nursery() as nursery:
        outcome = await interrupt(caller, begin)
    assert outcome.seconds < AT_ONCE
    assert not caller.abandoned
    assert await caller.late.come() == ("through", "none")


async def test_a_thread_that_does_not_end_is_left_behind_after_2_s_and_its_result_comes_late(
    autojump_clock: MockClock, gate: Gate
) -> None:
    def wait() -> str:
        return gate.pass_through()

    caller = Told(Tool(wait))
    assert (await interrupt(caller)).seconds == 2
    assert caller.abandoned == ["wait: a thread that did not end within 2 s: it is left behind"]
    gate.open()
    assert await caller.late.come() == ("through", "none")


async def test_a_child_process_in_a_session_of_its_own_is_killed_at_once_in_real_time() -> None:
    caller = Told(Tool(work.start_child, in_process=True))
    assert (await interrupt(caller, caller.reported.wait)).seconds < AT_ONCE
    await wait_gone(caller.pid)


async def test_a_function_in_a_process_that_swallows_for_ever_is_killed_at_once_in_real_time() -> None:
    caller = Told(Tool(work.swallow_for_ever, in_process=True))
    assert (await interrupt(caller, caller.reported.wait)).seconds < AT_ONCE
    assert reaped(caller.pid)


async def test_its_async_twin_in_a_nursery_of_its_own_is_reported_after_the_ladder_and_waited_for() -> None:
    """In real time: it goes round and round, so no virtual time would pass."""
    mercy = trio.Event()

    async def task() -> None:
        while not mercy.is_set():
            with swallowed():
                await mercy.wait()

    async def swallow_for_ever() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(task)
        await trio.lowlevel.checkpoint()

    def have_mercy(what: str) -> None:
        told.append((trio.current_time(), what))
        mercy.set()

    told: list[tuple[float, str]] = []
    begun: list[float] = []
    caller = Told(Tool(swallow_for_ever), ladder=0.0625)
    caller.on_abandoned = have_mercy

    async def begin() -> None:
        await wait_all_tasks_blocked()
        begun.append(trio.current_time())

    with trio.fail_after(20):
        await interrupt(caller, begin)
    ((at, what),) = told
    assert at >= begun[0] + 0.0625
    said = "an async function that swallows its cancellation, or cleans up for more than 0.0625 s: it is waited for"
    assert what == f"swallow_for_ever: {said}"


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
