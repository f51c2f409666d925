"""Conversations for an asyncio program: they live in a trio thread, and nothing is lost on the way to it."""

import asyncio
import contextlib
import gc
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest
import sniffio
import trio

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import ConversationClosed, RoleFailed, RoundStopped, UnknownRole
from callboard.runtime.event import EventsDropped, RoundEnded
from callboard.runtime.hosts import TrioHost
from callboard.runtime.hosts.job import Job
from callboard.runtime.hosts.reader import Reader
from callboard.runtime.post import Post

LIMIT = 20
"""Seconds after which a test counts as hung."""

tenant: ContextVar[str] = ContextVar("tenant")


class Clerk(Actor):
    """Answers what it heard; "wait" waits for words, "fail" fails, "tenant" names it, "block" stalls its thread."""

    name = "Clerk"

    def __init__(self) -> None:
        self.at_work = threading.Event()
        self.cleaned_up = 0
        self.error = ValueError("no such supplier")

    async def receive(self, post: Post, context: TurnContext) -> Post:
        match post.message:
            case "fail":
                raise self.error
            case "tenant":
                return post.reply(f"{tenant.get()} {sniffio.current_async_library()}")
            case "block":
                time.sleep(0.3)  # noqa: ASYNC251 (the mistake that this role is there to make)
            case "wait" if not context.user_words:
                await self._wait()
            case "write":
                for _ in range(500):
                    context.draft.write("x")
        return post.reply(" ".join([post.message, *(words.message for words in context.user_words)]))

    async def wait_at_work(self) -> None:
        """Until it waits for words; for tasks of asyncio."""
        assert await asyncio.to_thread(self.at_work.wait, LIMIT)

    async def _wait(self) -> None:
        self.at_work.set()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.02)
            self.cleaned_up += 1


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs an asyncio program; nothing of it may be left."""
    asyncio.run(asyncio.wait_for(main(), LIMIT))
    gc.collect()
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("callboard")]


def test_an_asyncio_task_holds_a_conversation() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_conversation(Clerk()) as conversation:
            assert (await conversation.send("a")).message == "a"
            assert [one.user_query for one in (await conversation.transcript()).rounds] == ["a"]
            assert (await conversation.usage).total.replies == 1
            assert (conversation.paused, conversation.id) == (False, (await conversation.transcript()).id)

    run(main)


def test_words_interrupt_a_send_that_was_made_just_before() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_conversation(Clerk()) as conversation:
            for _ in range(20):
                sent = asyncio.create_task(conversation.send("wait"))
                await asyncio.sleep(0)
                receipt = await conversation.intervene("x")
                assert (receipt.action, receipt.reached) == ("intervened", ("Clerk",))
                assert await receipt.seen()
                assert (await sent).message == (await receipt.reply()).message == "wait x"

    run(main)


def test_calls_that_come_together_take_hold_one_after_another_whether_they_can_wait_or_not() -> None:
    taken: list[int] = []

    async def take(number: int) -> None:
        taken.append(number)

    async def main() -> None:
        async with TrioHost() as host:
            stalled = asyncio.create_task(host.run(stall, 0.02))
            await asyncio.sleep(0.01)
            calls = [host.run(take, n) if n % 3 else host._bridge.call(taken.append, n) for n in range(30)]
            await asyncio.gather(stalled, *calls)

    run(main)
    assert taken == list(range(30))


def test_sends_stand_in_line_in_the_order_of_the_calls() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_conversation(Clerk()) as conversation:
            asked = [str(number) for number in range(50)]
            await asyncio.gather(*(conversation.send(text) for text in asked))
            assert [one.user_query for one in (await conversation.transcript()).rounds] == asked

    run(main)


def test_what_is_put_in_line_can_be_read_edited_and_withdrawn() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_conversation(Clerk()) as conversation:
            await conversation.communicate("wait")
            first, second = await conversation.enqueue("b"), await conversation.enqueue("c")
            assert await conversation.queued() == (first, second)
            assert (second.position, second.state) == (1, "waiting")
            assert await first.edit("B")
            assert await second.withdraw()
            await conversation.intervene("x")
            assert (await first.reply()).message == "B"

    run(main)


def test_exceptions_leave_as_themselves() -> None:
    async def main() -> None:
        clerk = Clerk()
        async with TrioHost() as host, host.open_conversation(clerk) as conversation:
            with pytest.raises(RoleFailed) as failure:
                await conversation.send("fail")
            assert failure.value.__cause__ is clerk.error
            with pytest.raises(UnknownRole):
                await conversation.intervene("x", role="nobody")
            for error in (clerk.error, SystemExit(3), BaseExceptionGroup("two", [KeyboardInterrupt(), OSError()])):
                with pytest.raises(type(error)) as caught:
                    await host.run(raises, error)
                assert caught.value is error
            assert (await conversation.send("a")).message == "a"

    run(main)


async def raises(error: BaseException) -> None:
    """An async function that fails."""
    await trio.lowlevel.checkpoint()
    raise error


@pytest.mark.parametrize("times", [1, 2])
def test_a_cancelled_send_waits_for_the_clean_up(times: int) -> None:
    async def main() -> None:
        clerk = Clerk()
        async with TrioHost() as host, host.open_conversation(clerk) as conversation:
            sent = asyncio.create_task(conversation.send("wait"))
            await clerk.wait_at_work()
            for _ in range(times):
                sent.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await sent
            assert clerk.cleaned_up == 1
            assert (await conversation.send("a")).message == "a"

    run(main)


def test_a_timeout_of_asyncio_ends_a_round() -> None:
    async def main() -> None:
        clerk = Clerk()
        async with TrioHost() as host, host.open_conversation(clerk) as conversation:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await conversation.send("wait")
            assert clerk.cleaned_up == 1

    run(main)


def test_a_receipt_may_be_given_up_and_the_round_goes_on() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_conversation(Clerk()) as conversation:
            started = await conversation.communicate("wait")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(started.reply(), 0.02)
            await conversation.intervene("x")
            assert (await started.reply()).message == "wait x"

    run(main)


def test_roles_see_the_callers_context_variables_and_that_they_run_on_trio() -> None:
    async def main() -> None:
        async def ask(name: str) -> str:
            tenant.set(name)
            async with host.open_conversation(Clerk()) as conversation:
                receipt = await conversation.communicate("tenant")
                assert (await receipt.reply()).message == f"{name} trio"
                return (await conversation.send("tenant")).message

        async with TrioHost() as host:
            assert set(await asyncio.gather(ask("a"), ask("b"))) == {"a trio", "b trio"}

    run(main)


def test_leaving_the_block_ends_the_work_and_the_iterations() -> None:
    async def main() -> None:
        clerk = Clerk()
        async with TrioHost() as host:
            async with host.open_conversation(clerk) as conversation:
                replies = conversation.replies()
                seen = asyncio.create_task(collect(conversation.events()))
                await conversation.send("a")
                started = await conversation.communicate("wait")
                await clerk.wait_at_work()
            assert clerk.cleaned_up == 1
            assert isinstance((await seen)[-1], RoundEnded)
            assert [post.message async for post in replies][:1] == ["a"]
            with pytest.raises(ConversationClosed):
                await started.reply()
            with pytest.raises(ConversationClosed):
                await conversation.send("b")

    run(main)


async def collect(items: AsyncIterator[Any]) -> list[Any]:
    """All of them."""
    return [item async for item in items]


def test_a_slow_reader_is_told_what_it_lost_and_slows_nobody() -> None:
    async def main() -> None:
        async with TrioHost() as host:
            async with host.open_conversation(Clerk()) as conversation:
                slow, fast = conversation.events(buffer=10), conversation.events()
                await conversation.send("write")
            lost, got = await collect(slow), await collect(fast)
            assert len(got) > 500
            assert isinstance(lost[0], EventsDropped)
            assert (lost[0].count + len(lost) - 1, len(lost)) == (len(got), 11)

    run(main)


def test_what_has_gathered_comes_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    fills: list[None] = []
    fill = Reader.fill

    async def counted(self: Reader[Any]) -> None:
        fills.append(None)
        await fill(self)

    async def main() -> None:
        async with TrioHost() as host:
            async with host.open_conversation(Clerk()) as conversation:
                events = conversation.events()
                await conversation.send("write")
            assert len(await collect(events)) > 500
            assert len(fills) < 20

    monkeypatch.setattr(Reader, "fill", counted)
    run(main)


def test_a_reader_that_is_cancelled_loses_nothing() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_conversation(Clerk()) as conversation:
            replies = conversation.replies()
            for number in range(20):
                waiting = asyncio.create_task(anext(replies))
                await asyncio.sleep(0)
                sent = asyncio.create_task(conversation.send(str(number)))
                await asyncio.sleep(0.0002 * number)
                waiting.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    assert (await waiting).message == str(number)
                    await sent
                    continue
                await sent
                assert (await anext(replies)).message == str(number)

    run(main)


def test_a_reader_that_is_dropped_is_forgotten() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_conversation(Clerk()) as conversation:
            events = conversation.events()
            publisher = conversation._handled._router.events
            await conversation.send("a")
            assert publisher.wanted
            freed_in: list[str] = []
            subscription = events._reader._subscription
            assert subscription is not None
            watch = weakref.ref(subscription, lambda _: freed_in.append(threading.current_thread().name))
            del subscription
            del events
            gc.collect()
            await conversation.send("a")
            assert not publisher.wanted
            assert (watch(), freed_in) == (None, ["callboard-trio"])

    run(main)


def test_an_impossible_buffer_is_refused_by_the_first_step() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_conversation(Clerk()) as conversation:
            with pytest.raises(ValueError, match="at least one"):
                await anext(conversation.events(buffer=0))

    run(main)


def test_closing_the_host_ends_conversations_first_and_waits_for_all() -> None:
    async def main() -> None:
        clerk = Clerk()
        cleaned_up: list[int] = []
        model = Entered(lambda: cleaned_up.append(clerk.cleaned_up))
        host = await TrioHost().__aenter__()
        opened: asyncio.Queue[None] = asyncio.Queue()

        async def talk() -> None:
            async with host.enter(model), host.open_conversation(clerk) as conversation:
                replies = conversation.replies()
                await conversation.send("a")
                opened.put_nowait(None)
                with pytest.raises(ConversationClosed):
                    await conversation.send("wait")
                assert [post.message async for post in replies] == ["a", ""]

        talking = asyncio.create_task(talk())
        await opened.get()
        await clerk.wait_at_work()
        await host.__aexit__(None, None, None)
        assert (cleaned_up, model.left_at is None) == ([1], False)
        await talking
        with pytest.raises(ConversationClosed):
            async with host.open_conversation(Clerk()):
                raise AssertionError("opened on a closed host")
        with pytest.raises(RuntimeError):
            await host.__aenter__()

    run(main)


class Entered:
    """A context manager of trio's."""

    def __init__(self, on_leaving: Callable[[], None] = lambda: None) -> None:
        self.left_at: float | None = None
        self._on_leaving = on_leaving

    async def __aenter__(self) -> str:
        await trio.lowlevel.checkpoint()
        return sniffio.current_async_library()

    async def __aexit__(self, *_: object) -> None:
        self._on_leaving()
        with trio.CancelScope(shield=True):
            await trio.sleep(0.01)
        self.left_at = trio.current_time()


def test_what_is_entered_is_left_with_the_block_cancelled_or_not() -> None:
    async def main() -> None:
        async with TrioHost() as host:
            manager = Entered()
            async with host.enter(manager) as value:
                assert (value, manager.left_at) == ("trio", None)
            assert manager.left_at is not None
            cancelled = Entered()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02), host.enter(cancelled):
                    await asyncio.Event().wait()
            assert cancelled.left_at is not None

    run(main)


@contextlib.asynccontextmanager
async def failing(error: Exception, seconds: float) -> AsyncIterator[None]:
    """Fails after so many seconds, cancelling its block."""

    async def fail() -> None:
        await trio.sleep(seconds)
        raise error

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            yield
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


def test_what_fails_under_a_block_cancels_the_block_and_leaves_it() -> None:
    async def main() -> None:
        error = ValueError("gone")
        async with TrioHost() as host:
            with pytest.raises(ValueError, match="gone") as caught:
                async with host.enter(failing(error, 0.01)):
                    await asyncio.Event().wait()
            assert caught.value is error
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0
            await asyncio.sleep(0.01)

    run(main)


def test_a_cancelled_opening_leaves_nothing_open() -> None:
    async def main() -> None:
        async with TrioHost() as host:
            for number in range(20):
                manager = Entered()

                async def enter(manager: Entered = manager) -> None:
                    async with host.enter(manager):
                        await asyncio.Event().wait()

                task = asyncio.create_task(enter())
                await asyncio.sleep(0.0001 * number)
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled()
                assert await host.run(tasks_of_the_host) == 1  # this one

    run(main)


async def tasks_of_the_host() -> int:
    """How many tasks run under the host's main task."""
    main = trio.lowlevel.current_task()
    while main.parent_nursery is not None and main.parent_nursery.parent_task.parent_nursery is not None:
        parent = main.parent_nursery.parent_task
        if parent.parent_nursery is None or parent.name == "<init>":
            break
        main = parent
    return sum(len(nursery.child_tasks) for nursery in main.child_nurseries)


def test_a_role_that_blocks_does_not_stall_the_loop() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_conversation(Clerk()) as conversation:
            sent = asyncio.create_task(conversation.send("block"))
            longest, last = 0.0, time.monotonic()
            while not sent.done():
                await asyncio.sleep(0.001)
                now = time.monotonic()
                longest, last = max(longest, now - last), now
            assert (await sent).message == "block"
            assert longest < 0.15

    run(main)


async def test_a_host_works_beside_a_trio_run_of_its_own_process() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_conversation(Clerk()) as conversation:
            assert (await conversation.send("a")).message == "a"

    await trio.to_thread.run_sync(run, main)


def test_a_sync_verb_that_was_cancelled_in_time_is_never_called() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_conversation(Clerk()) as conversation:
            stalled = asyncio.create_task(host.run(stall, 0.05))
            await asyncio.sleep(0.01)
            speaking = asyncio.create_task(conversation.communicate("a"))
            await asyncio.sleep(0.01)
            speaking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await speaking
            await stalled
            assert (await conversation.transcript()).rounds == ()

    run(main)


async def stall(seconds: float) -> None:
    """Blocks the thread that it runs in."""
    await trio.lowlevel.checkpoint()
    time.sleep(seconds)  # noqa: ASYNC251 (that is what it is for)


async def clean_up(seconds: float, done: list[str]) -> None:
    """Waits for its cancellation, and then so many seconds."""
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep(seconds)
        done.append("cleaned up")


def test_what_clean_up_raises_leaves_a_cancelled_call() -> None:
    async def main() -> None:
        async with TrioHost() as host:
            error = ValueError("in clean-up")
            calling = asyncio.create_task(host.run(fail_when_cancelled, error))
            await asyncio.sleep(0.02)
            calling.cancel()
            with pytest.raises(ValueError, match="in clean-up") as caught:
                await calling
            assert caught.value is error

    run(main)


async def fail_when_cancelled(error: Exception) -> None:
    """Waits, and fails at its end."""
    try:
        await trio.sleep_forever()
    finally:
        raise error


def test_a_call_that_comes_while_the_host_is_closed_is_refused() -> None:
    async def main() -> None:
        done: list[str] = []
        host = await TrioHost().__aenter__()
        running = asyncio.create_task(host.run(clean_up, 0.1, done))
        await asyncio.sleep(0.02)
        closing = asyncio.create_task(host.__aexit__(None, None, None))
        await asyncio.sleep(0.02)
        with pytest.raises(ConversationClosed):
            await host.run(trio.sleep, 0)
        assert not done
        await closing
        assert done
        with pytest.raises(ConversationClosed):
            await running

    run(main)


def test_calls_that_wait_to_begin_when_the_host_is_closed_are_refused() -> None:
    async def main() -> None:
        async with TrioHost() as host:
            calls = [asyncio.create_task(host.run(stall, 0.02))]
            await asyncio.sleep(0.01)
            calls += [asyncio.create_task(host.run(trio.sleep, 1)) for _ in range(5)]
            await asyncio.sleep(0)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [type(None), *[ConversationClosed] * 5]

    run(main)


def test_a_reader_that_comes_while_the_host_is_closed_gets_what_is_left() -> None:
    async def main() -> None:
        clerk = Clerk()
        host = await TrioHost().__aenter__()
        async with host.open_conversation(clerk) as conversation:
            replies = conversation.replies()
            await conversation.send("a")
            await conversation.communicate("wait")
            await clerk.wait_at_work()
            closing = asyncio.create_task(host.__aexit__(None, None, None))
            await asyncio.sleep(0.005)
            assert [post.message async for post in replies] == ["a", ""]
            await closing

    run(main)


def test_leaving_goes_on_when_it_is_cancelled_and_the_cancellation_follows() -> None:
    async def main() -> None:
        done: list[str] = []
        async with TrioHost() as host:

            async def hold() -> None:
                async with host.enter(ending(done)):
                    pass

            holding = asyncio.create_task(hold())
            await asyncio.sleep(0.02)
            holding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await holding
            assert done

    run(main)


@contextlib.asynccontextmanager
async def ending(done: list[str]) -> AsyncIterator[None]:
    """Takes its time to be left."""
    yield
    with trio.CancelScope(shield=True):
        await trio.sleep(0.1)
    done.append("left")


@pytest.mark.parametrize("seconds", [0, 0.02])
def test_a_host_that_is_cancelled_while_it_opens_or_closes_is_closed(seconds: float) -> None:
    async def main() -> None:
        done: list[str] = []
        held: list[asyncio.Task[None]] = []

        async def open_and_close() -> None:
            async with TrioHost() as host:
                held.append(asyncio.create_task(host.run(clean_up, 0.1, done)))
                await asyncio.sleep(0.01)

        opening = asyncio.create_task(open_and_close())
        await asyncio.sleep(seconds)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert len(done) == len(held) == bool(seconds)
        await asyncio.gather(*held, return_exceptions=True)

    run(main)


def test_a_host_belongs_to_its_loop() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_conversation(Clerk()) as conversation:

            async def elsewhere() -> None:
                with pytest.raises(RuntimeError, match="loop"):
                    await conversation.send("a")

            await asyncio.to_thread(asyncio.run, elsewhere())
        with pytest.raises(ConversationClosed, match="not open"):
            async with TrioHost().open_conversation(Clerk()):
                raise AssertionError("opened without a thread")

    run(main)


def test_a_stop_ends_the_send_of_another_task() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_conversation(Clerk()) as conversation:
            sent = asyncio.create_task(conversation.send("wait"))
            await asyncio.sleep(0)
            await conversation.stop("enough")
            with pytest.raises(RoundStopped, match="enough"):
                await sent

    run(main)


def test_a_loop_that_was_closed_with_the_host_open_takes_the_thread_along() -> None:
    host = TrioHost()

    async def leave_open() -> None:
        await host.__aenter__()
        host._bridge.submit(Job(partial(trio.sleep, 0.02)))

    asyncio.run(leave_open())
    host._bridge.thread.join()
