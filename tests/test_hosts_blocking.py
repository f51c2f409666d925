"""Conversations for code that blocks: scripts, notebooks, threads of a WSGI server; and what Ctrl-C does there."""

import gc
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import pytest
import trio

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import ConversationClosed, RoleFailed, RoundStopped
from callboard.runtime.event import EventsDropped, RoundEnded
from callboard.runtime.hosts import BlockingConversation, BlockingHost
from callboard.runtime.hosts.job import Job
from callboard.runtime.hosts.trio_thread import TrioThread
from callboard.runtime.post import Post

from .test_hosts_asyncio import Clerk, Entered, clean_up, ending, failing, raises, tenant
from .test_imports import ROOT


@contextmanager
def conversation_with(clerk: Actor) -> Iterator[BlockingConversation]:
    """A conversation, of which nothing is left afterwards."""
    with BlockingHost() as host, host.open_conversation(clerk) as conversation:
        yield conversation
    gc.collect()
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("callboard")]


@contextmanager
def ctrl_c(*seconds: float) -> Iterator[None]:
    """Presses it after so many seconds, each time."""
    main = threading.get_ident()
    timers = [threading.Timer(delay, signal.pthread_kill, (main, signal.SIGINT)) for delay in seconds]
    for timer in timers:
        timer.start()
    try:
        yield
    finally:
        for timer in timers:
            timer.join()


def test_a_script_holds_a_conversation() -> None:
    with conversation_with(Clerk()) as conversation:
        assert conversation.send("a").message == "a"
        assert [one.user_query for one in conversation.transcript().rounds] == ["a"]
        assert conversation.usage.total.replies == 1


def test_a_receipt_is_waited_for_in_place() -> None:
    with conversation_with(Clerk()) as conversation:
        started = conversation.communicate("wait")
        receipt = conversation.intervene("x")
        assert (receipt.action, receipt.reached, receipt.seen()) == ("intervened", ("Clerk",), True)
        assert started.reply().message == "wait x"


def test_exceptions_leave_as_themselves_here_too() -> None:
    clerk = Clerk()
    with BlockingHost() as host, host.open_conversation(clerk) as conversation:
        with pytest.raises(RoleFailed) as failure:
            conversation.send("fail")
        assert failure.value.__cause__ is clerk.error
        with pytest.raises(SystemExit) as caught:
            host.run(raises, SystemExit(3))
        assert caught.value.code == 3
        assert conversation.send("a").message == "a"


def test_many_threads_speak_at_once_with_context_variables_of_their_own() -> None:
    def ask(host: BlockingHost, name: str) -> str:
        tenant.set(name)
        with host.open_conversation(Clerk()) as conversation:
            return conversation.send("tenant").message

    names = [f"tenant {number}" for number in range(20)]
    with BlockingHost() as host, ThreadPoolExecutor(8) as threads:
        assert list(threads.map(partial(ask, host), names)) == [f"{name} trio" for name in names]


def test_ctrl_c_stops_the_round_and_the_conversation_goes_on() -> None:
    clerk = Clerk()
    with conversation_with(clerk) as conversation:
        for times in (1, 2):
            with ctrl_c(0.05), pytest.raises(KeyboardInterrupt):
                conversation.send("wait")
            assert clerk.cleaned_up == times
            assert conversation.transcript().rounds[-1].state == "stopped"
            assert conversation.statistics().turns == 0
        assert conversation.send("a").message == "a"


def test_ctrl_c_stops_all_that_the_round_was_about_and_holds_what_stands_in_line() -> None:
    with conversation_with(Clerk()) as conversation:
        started = conversation.communicate("wait")
        later = conversation.enqueue("later")
        with ctrl_c(0.05), pytest.raises(KeyboardInterrupt):
            conversation.send("in line")
        with pytest.raises(RoundStopped, match="keyboard"):
            started.reply()
        conversation.wait_idle()
        assert later.state == "waiting"
        conversation.resume()
        assert later.reply().message == "later"


def test_ctrl_c_at_any_moment_of_a_send_leaves_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    submit = TrioThread.submit

    def interrupted_before(self: TrioThread, job: Job[Any]) -> None:
        raise KeyboardInterrupt

    def interrupted_after(self: TrioThread, job: Job[Any]) -> None:
        submit(self, job)
        raise KeyboardInterrupt

    with conversation_with(Clerk()) as conversation:
        for moment in (interrupted_before, interrupted_after):
            with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
                patch.setattr(TrioThread, "submit", moment)
                conversation.send("wait")
            assert conversation.statistics().turns == 0
        for number in range(25):
            with pytest.raises(KeyboardInterrupt), ctrl_c(number * 0.0001):
                conversation.send("wait")
                time.sleep(5)
            assert conversation.statistics().turns == 0
        assert conversation.send("a").message == "a"


def test_ctrl_c_while_a_block_is_entered_or_left_waits_for_it() -> None:
    left: list[str] = []
    with BlockingHost() as host:
        with ctrl_c(0.05), pytest.raises(KeyboardInterrupt), host.enter(slow(left)):
            raise AssertionError("entered all the same")
        assert left == ["not entered"]
        with ctrl_c(0.05), pytest.raises(KeyboardInterrupt), host.enter(ending(left)):
            pass
        assert left == ["not entered", "left"]


@asynccontextmanager
async def slow(left: list[str]) -> AsyncIterator[None]:
    """Is being entered until it is cancelled."""
    try:
        await trio.sleep_forever()
    finally:
        left.append("not entered")
    yield


def test_ctrl_c_while_a_host_is_closed_waits_for_its_end() -> None:
    done: list[str] = []
    with ThreadPoolExecutor(1) as threads:
        with ctrl_c(0.15), pytest.raises(KeyboardInterrupt), BlockingHost() as host:
            running = threads.submit(host.run, clean_up, 0.2, done)
            time.sleep(0.05)
        assert done
        assert isinstance(running.exception(), ConversationClosed)


def test_ctrl_c_ends_any_other_wait_and_the_round_goes_on() -> None:
    with conversation_with(Clerk()) as conversation:
        started = conversation.communicate("wait")
        with ctrl_c(0.05), pytest.raises(KeyboardInterrupt):
            started.reply()
        conversation.intervene("x")
        assert started.reply().message == "wait x"


class Stubborn(Actor):
    """Cleans up for half a second."""

    name = "Stubborn"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.5)
        return post.reply("done")


def test_a_second_ctrl_c_leaves_at_once() -> None:
    with conversation_with(Stubborn()) as conversation:
        began = time.monotonic()
        with ctrl_c(0.05, 0.1), pytest.raises(KeyboardInterrupt):
            conversation.send("a")
        assert time.monotonic() - began < 0.4
        conversation.wait_idle()
        assert time.monotonic() - began >= 0.5


def test_ctrl_c_in_the_block_closes_all_in_order() -> None:
    clerk = Clerk()
    with ctrl_c(0.05), pytest.raises(KeyboardInterrupt), conversation_with(clerk) as conversation:
        conversation.communicate("wait")
        assert clerk.at_work.wait(5)
        time.sleep(5)
    assert clerk.cleaned_up == 1


def test_events_are_read_in_a_loop() -> None:
    with conversation_with(Clerk()) as conversation:
        all_of_it, slow = conversation.events(), conversation.events(buffer=10)
        conversation.send("write")
        seen = []
        for event in all_of_it:
            seen.append(event)
            if isinstance(event, RoundEnded):
                break
        assert len(seen) > 500
        assert next(slow) == EventsDropped(len(seen) - 10)


def test_a_loop_over_replies_ends_with_the_conversation_even_when_the_host_is_gone() -> None:
    with BlockingHost() as host:
        with host.open_conversation(Clerk()) as conversation:
            early, late = conversation.replies(), conversation.replies()
            for number in range(300):
                conversation.send(str(number))
        assert [post.message for post in early] == [str(number) for number in range(300)]
    assert [post.message for post in late] == [str(number) for number in range(300)]


def test_a_loop_that_begins_while_the_host_is_closed_gets_what_is_left() -> None:
    clerk = Clerk()
    host = BlockingHost().__enter__()
    with ThreadPoolExecutor(1) as threads, host.open_conversation(clerk) as conversation:
        replies = conversation.replies()
        conversation.send("a")
        conversation.communicate("wait")
        assert clerk.at_work.wait(5)
        closing = threads.submit(host.__exit__, None, None, None)
        time.sleep(0.005)
        assert [post.message for post in replies] == ["a", ""]
        closing.result(5)


def test_a_subscription_that_is_dropped_is_freed_in_trios_thread() -> None:
    with conversation_with(Clerk()) as conversation:
        events = conversation.events()
        freed_in: list[str] = []
        subscription = events._reader._subscription
        assert subscription is not None
        watch = weakref.ref(subscription, lambda _: freed_in.append(threading.current_thread().name))
        del subscription, events
        conversation.send("a")
        assert (watch(), freed_in) == (None, ["callboard-trio"])


def test_what_is_entered_is_left_and_its_failure_leaves_the_block() -> None:
    manager, error = Entered(), ValueError("gone")
    with BlockingHost() as host:
        with host.enter(manager) as value:
            assert (value, manager.left_at) == ("trio", None)
        assert manager.left_at is not None
        with pytest.raises(ValueError, match="gone") as caught, host.enter(failing(error, 0.01)):
            time.sleep(0.03)
        assert caught.value is error


def test_a_closed_host_refuses() -> None:
    clerk = Clerk()
    with BlockingHost() as host, host.open_conversation(clerk) as conversation:
        started = conversation.communicate("wait")
        assert clerk.at_work.wait(5)
    for call in (partial(conversation.send, "a"), started.reply, partial(host.open_conversation(clerk).__enter__)):
        with pytest.raises(ConversationClosed):
            call()
    assert (started.action, clerk.cleaned_up) == ("started", 1)
    with pytest.raises(RuntimeError):
        host.__enter__()


class Caller(Actor):
    """Calls a verb that blocks, from inside trio."""

    name = "Caller"

    def __init__(self) -> None:
        self.conversation: BlockingConversation | None = None

    async def receive(self, post: Post, context: TurnContext) -> Post:
        assert self.conversation is not None
        self.conversation.pause()
        return post.reply("never")


def test_a_role_that_would_wait_for_its_own_thread_is_refused() -> None:
    caller = Caller()
    with conversation_with(caller) as caller.conversation, pytest.raises(RoleFailed, match="its own thread"):
        caller.conversation.send("a")


LEFT_OPEN = """
import trio
from callboard.runtime import Actor
from callboard.runtime.hosts import BlockingHost

class Clerk(Actor):
    name = "Clerk"
    async def receive(self, post, context):
        try:
            await trio.sleep_forever()
        finally:
            print("cleaned up")

host = BlockingHost().__enter__()
opened = host.open_conversation(Clerk())
conversation = opened.__enter__()
events = conversation.events()
conversation.communicate("a")
while type(next(events)).__name__ != "AttemptBegan":
    pass
"""


def test_an_interpreter_that_ends_closes_what_was_left_open() -> None:
    command = [sys.executable, "-W", "error", "-c", LEFT_OPEN]
    ended = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=30)
    assert (ended.stdout, ended.stderr) == ("cleaned up\n", "")
