"""Many conversations over one host, with random errors, words, cancellations, early ends and a deploy: nothing of them
is left alive."""

import asyncio
import gc
import random
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import trio

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import BoardClosed, BoardFull, CallboardError, ConversationClosed, RoleFailed
from callboard.runtime.hosts import AsyncioBoard, AsyncioConversation, BlockingBoard, BlockingHost, TrioHost
from callboard.runtime.post import Post

MANY = 1500
AT_ONCE = 40
RUNNING = 50
"""Conversations that are at work when the host is closed."""
CLIENTS = 30
"""Who come to a board again and again."""
PATIENCE = 2
"""Seconds for a conversation that may wait for ever; of the others even a busy machine has most done by then."""
LIMIT = 60


class Worker(Actor):
    """Works a few milliseconds, asks the next one, fails now and then; its clean-up takes time and must happen."""

    def __init__(self, luck: random.Random, depth: int) -> None:
        self.name = f"worker{depth}"
        self.below = [Worker(luck, depth - 1)] if depth else []
        self.subordinates = tuple(self.below)
        self.alive = 0
        self._luck = luck

    def all_alive(self) -> int:
        """How many attempts of its own and of those below are not over."""
        return self.alive + sum(below.all_alive() for below in self.below)

    async def receive(self, post: Post, context: TurnContext) -> Post:
        self.alive += 1
        try:
            await trio.sleep(self._luck.random() * 0.004)
            context.draft.write("a word ")
            if post.message == "for ever" and not self.subordinates:
                await trio.sleep_forever()
            if self._luck.random() < 0.05:
                raise ValueError("bad luck")
            for below in self.subordinates:
                await context.ask(below.name, post.message)
                context.draft.write("and another ")
            return post.reply("done")
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(self._luck.random() * 0.003)
            self.alive -= 1


async def meddle(conversation: AsyncioConversation, luck: random.Random) -> None:
    """Speaks, stops, pauses and looks, for as long as nobody ends it."""
    verbs: list[Callable[[], Awaitable[object]]] = [
        partial(conversation.intervene, "x", broadcast_level=luck.choice([1, 2, -1])),
        partial(conversation.stop, "enough"),
        partial(conversation.communicate, "more"),
        partial(conversation.enqueue, "later"),
        conversation.nudge,
        conversation.pause,
        conversation.resume,
        conversation.statistics,
        conversation.transcript,
    ]
    async for _ in conversation.events(buffer=luck.choice([1, 10, 1000])):
        if luck.random() < 0.05:
            await luck.choice(verbs)()


async def read_some(conversation: AsyncioConversation, luck: random.Random, message: str) -> None:
    """A round whose reply is read while it grows, now and then not to its end."""
    async with conversation.stream(message, buffer=luck.choice([1, 10, 1000])) as reply:
        async for _ in reply:
            if luck.random() < 0.3:
                return


async def one(host: TrioHost, seed: int, message: str) -> None:
    """A conversation in a block, perhaps with another within; when it is left, by whatever, nothing of it is alive."""
    luck = random.Random(seed)
    root = Worker(luck, 2)
    try:
        async with host.open_conversation(root) as conversation, asyncio.TaskGroup() as group:
            meddler = group.create_task(meddle(conversation, luck))
            try:
                for _ in range(2):
                    await conversation.resume()
                    read = luck.random() < 0.5
                    await (read_some(conversation, luck, message) if read else conversation.send(message))
                if luck.random() < 0.3:
                    await one(host, seed + MANY * 1000, message)
            finally:
                meddler.cancel()
    finally:
        assert root.all_alive() == 0, f"seed {seed} is alive"


async def tortured(host: TrioHost, seed: int) -> str:
    """The outcome of one conversation whose task is cancelled once, twice or never."""
    luck = random.Random(-seed)
    task = asyncio.create_task(one(host, seed, luck.choice(["once", "once", "once", "for ever"])))
    for _ in range(luck.choice([0, 0, 1, 2])):
        await asyncio.wait([task], timeout=luck.random() * luck.choice([0.02, 0.2, 1]))
        task.cancel()
    done, _ = await asyncio.wait([task], timeout=PATIENCE)
    while not done:
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=10)
    return outcome(task)


def outcome(task: asyncio.Task[Any]) -> str:
    """How a task ended; an error that nobody expects is raised."""
    if task.cancelled():
        return "cancelled"
    error = task.exception()
    if error is None:
        return "done"
    if isinstance(error, ExceptionGroup):
        _, others = error.split(CallboardError)
        if others is None:
            return "failed"
    raise error


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_nothing_is_left_of_many_conversations(seed: int) -> None:
    outcomes: Counter[str] = Counter()
    complaints: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, said: complaints.append(said))
        room = asyncio.Semaphore(AT_ONCE)

        async def limited(host: TrioHost, number: int) -> None:
            async with room:
                outcomes[await tortured(host, seed * MANY + number)] += 1

        async with TrioHost() as host:
            async with asyncio.TaskGroup() as group:
                for number in range(MANY):
                    group.create_task(limited(host, number))
            running = [asyncio.create_task(one(host, -number, "for ever")) for number in range(RUNNING)]
            await asyncio.sleep(0.3)
        errors = [error for error in await asyncio.gather(*running, return_exceptions=True) if error is not None]
        assert len(errors) > RUNNING / 5, "the others left their streams early"
        for error in errors:
            assert isinstance(error, BaseExceptionGroup), error
            assert error.split(CallboardError)[1] is None

    asyncio.run(asyncio.wait_for(main(), LIMIT))
    gc.collect()
    assert not complaints
    assert sum(outcomes.values()) == MANY
    assert min(outcomes["done"], outcomes["failed"], outcomes["cancelled"]) > 20, outcomes
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("callboard")]


async def visit(board: AsyncioBoard, luck: random.Random, started: list[str]) -> None:
    """What a handler does that may be cancelled at any moment; adds what outlives it."""
    message = luck.choice(["once"] * 5 + ["for ever"])
    if luck.random() < 0.5:
        async with board.open_conversation() as conversation:
            await read_some(conversation, luck, message)
        return
    conversation = await board.start_conversation()
    started.append(conversation.id)
    await conversation.communicate(message)
    if luck.random() < 0.5:
        await conversation.enqueue("later")
    if luck.random() < 0.5:
        await read_some(conversation, luck, message)


async def come_again(board: AsyncioBoard, seed: int, outcomes: Counter[str]) -> None:
    """Visits by one client, until the board takes none."""
    luck, started = random.Random(seed), list[str]()
    while True:
        try:
            async with asyncio.timeout(luck.random() * luck.choice([0.02, 0.2, 1])):
                await visit(board, luck, started)
            outcomes["done"] += 1
        except BoardClosed:
            outcomes["refused"] += 1
            return
        except TimeoutError:
            outcomes["cancelled"] += 1
        except BoardFull:
            outcomes["full"] += 1
            while started:
                await board.close(started.pop())
            await asyncio.sleep(0.01)
        except CallboardError:
            outcomes["failed"] += 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_nothing_runs_on_a_board_that_was_drained_under_load(seed: int) -> None:
    root, outcomes, complaints = Worker(random.Random(seed), 2), Counter[str](), list[dict[str, Any]]()

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, said: complaints.append(said))
        async with TrioHost() as host, host.open_board(root, limit=CLIENTS + CLIENTS // 2) as board:
            async with asyncio.TaskGroup() as group:
                for number in range(CLIENTS):
                    group.create_task(come_again(board, seed * CLIENTS + number, outcomes))
                await asyncio.sleep(1)
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(board.drain(), 0.01)
                report, same = await asyncio.gather(board.drain(0.1), board.drain(30))
                assert root.all_alive() == 0
            assert same == report
            for conversation in {one.conversation for one in (*report.finished, *report.stopped)}:
                found = await board.find(conversation)
                states = {one.state for one in (await found.transcript()).rounds} if found is not None else set()
                assert "created" not in states
            outcomes.update(finished=len(report.finished), stopped=len(report.stopped), line=len(report.in_line))
        assert (len(board), root.all_alive()) == (0, 0)

    asyncio.run(asyncio.wait_for(main(), LIMIT))
    gc.collect()
    print(dict(outcomes))
    assert not complaints
    assert outcomes["refused"] == CLIENTS
    assert min(outcomes[one] for one in ("done", "cancelled", "full", "failed", "stopped", "line")) > 0, outcomes
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("callboard")]


@pytest.mark.slow
def test_nothing_is_left_when_a_board_is_drained_under_many_threads() -> None:
    def talk(board: BlockingBoard, seed: int) -> int:
        luck, rounds = random.Random(seed), 0
        try:
            with board.open_conversation() as conversation:
                while True:
                    with suppress(RoleFailed), conversation.stream("once") as reply:
                        for _ in reply:
                            if luck.random() < 0.3:
                                break
                    rounds += 1
        except ConversationClosed:
            return rounds

    root = Worker(random.Random(1), 2)
    with BlockingHost() as host, host.open_board(root) as board, ThreadPoolExecutor(RUNNING) as threads:
        talks = [threads.submit(talk, board, seed) for seed in range(RUNNING)]
        threading.Event().wait(0.5)
        report = board.drain(0.1)
        assert root.all_alive() == 0
        assert min(talk.result(LIMIT) for talk in talks) > 0
        assert {one.state for one in (*report.finished, *report.stopped)} <= {"finished", "failed", "stopped"}


@pytest.mark.slow
def test_nothing_is_left_when_a_host_is_closed_under_many_threads() -> None:
    def talk(host: BlockingHost, seed: int) -> int:
        root = Worker(random.Random(seed), 2)
        try:
            with host.open_conversation(root) as conversation:
                while True:
                    try:
                        conversation.send("for ever" if seed % 2 else "once")
                    except ConversationClosed:
                        return root.all_alive()
                    except CallboardError:
                        continue
        except ConversationClosed:
            return root.all_alive()

    with ThreadPoolExecutor(RUNNING) as threads:
        with BlockingHost() as host:
            talks = [threads.submit(talk, host, seed) for seed in range(RUNNING)]
            threading.Event().wait(0.5)
        assert [talk.result(LIMIT) for talk in talks] == [0] * RUNNING
