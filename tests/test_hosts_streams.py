"""Replies that a host reads while they grow: what a reader in trio would read, in an asyncio task and in a thread."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import trio

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import ConversationClosed, RoleFailed, RoundStopped
from callboard.runtime.hosts import AsyncioConversation, BlockingHost, TrioHost
from callboard.runtime.hosts.reader import Reader
from callboard.runtime.post import Post
from callboard.runtime.streaming import Restarted, Skipped
from callboard.runtime.user_message import UserMessage

from .test_hosts_asyncio import LIMIT, run
from .test_hosts_blocking import conversation_with, ctrl_c


class Poet(Actor):
    """Writes what it is asked; "wait" waits for words in the middle, "fail" fails there, "many" writes for long."""

    name = "Poet"

    def __init__(self) -> None:
        self.cleaned_up = 0
        self.at_work, self.done = threading.Event(), threading.Event()

    async def receive(self, post: Post, context: TurnContext) -> Post:
        context.draft.write("begun")
        match post.message:
            case "wait" if not context.user_words:
                await self._wait()
            case "fail":
                raise ValueError("no rhyme")
            case "many":
                for number in range(300):
                    context.draft.write(f" {number}")
                    await trio.lowlevel.checkpoint()
        context.draft.write("".join(f" {words.message}" for words in context.user_words))
        self.done.set()
        return post.reply(context.draft.take())

    async def _wait(self) -> None:
        self.at_work.set()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.02)
            self.cleaned_up += 1


def with_a_conversation(main: Callable[[AsyncioConversation, Poet], Any]) -> None:
    """Runs an asyncio program in a conversation, of which nothing is left afterwards."""

    async def open_one() -> None:
        poet = Poet()
        async with TrioHost() as host, host.open_conversation(poet) as conversation:
            await main(conversation, poet)

    run(open_one)


def test_a_reply_is_read_while_it_grows_and_an_interruption_is_a_marker() -> None:
    async def main(conversation: AsyncioConversation, poet: Poet) -> None:
        async with conversation.stream("wait") as reply:
            assert (await anext(reply), reply.text) == ("begun", "begun")
            with pytest.raises(RuntimeError, match="not finished"):
                reply.post  # noqa: B018 (it raises)
            assert repr(reply) == "<AsyncioStreamedReply growing, 0 characters unread>"
            await conversation.intervene("x")
            assert (await anext(reply), reply.text) == (Restarted("Poet", 2), "")
            assert "".join([str(piece) async for piece in reply]) == reply.text == reply.post.message == "begun x"
        assert (reply.text, poet.cleaned_up) == (reply.post.message, 1)

    with_a_conversation(main)


def test_leaving_a_stream_early_stops_its_round_alone_and_waits_for_the_clean_up() -> None:
    async def main(conversation: AsyncioConversation, poet: Poet) -> None:
        async with conversation.stream("wait") as reply:
            later = await conversation.enqueue("later")
            assert await anext(reply) == "begun"
        assert poet.cleaned_up == 1
        assert (await later.reply()).message == "begun"
        rounds = (await conversation.transcript()).rounds
        assert [one.state for one in rounds] == ["stopped", "finished"]
        with pytest.raises(ValueError, match="mine"):
            async with conversation.stream("wait") as reply:
                await anext(reply)
                raise ValueError("mine")
        assert poet.cleaned_up == 2

    with_a_conversation(main)


@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_reader_whose_task_is_cancelled_waits_for_the_clean_up(times: int) -> None:
    async def main(conversation: AsyncioConversation, poet: Poet) -> None:
        begun = asyncio.Event()

        async def read() -> None:
            async with conversation.stream("wait") as reply:
                async for _ in reply:
                    begun.set()

        reading = asyncio.create_task(read())
        await begun.wait()
        for _ in range(times):
            reading.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert poet.cleaned_up == 1
        assert (await conversation.transcript()).rounds[0].state == "stopped"

    with_a_conversation(main)


@pytest.mark.slow
def test_a_step_that_is_cancelled_takes_nothing() -> None:
    async def main(conversation: AsyncioConversation, poet: Poet) -> None:
        async with conversation.stream("wait") as reply:
            await anext(reply)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(reply), 0.01)
            await conversation.intervene("x")
            assert await anext(reply) == Restarted("Poet", 2)
            assert await anext(reply) == "begun x"

    with_a_conversation(main)


def test_the_error_of_a_round_is_raised_after_the_last_piece() -> None:
    async def main(conversation: AsyncioConversation, poet: Poet) -> None:
        async with conversation.stream("fail") as reply:
            assert await anext(reply) == "begun"
            for _ in range(2):
                with pytest.raises(RoleFailed) as failure:
                    await anext(reply)
            assert str(failure.value.__cause__) == "no rhyme"
        with pytest.raises(RoundStopped, match="enough"):
            async with conversation.stream("wait") as reply:
                async for _ in reply:
                    await conversation.stop("enough")
        with pytest.raises(RoundStopped, match="enough"):
            reply.post  # noqa: B018 (it raises)

    with_a_conversation(main)


@pytest.mark.slow
def test_words_that_follow_a_stream_meet_its_round() -> None:
    async def main(conversation: AsyncioConversation, poet: Poet) -> None:
        async def read() -> str:
            async with conversation.stream("wait") as reply:
                async for _ in reply:
                    pass
                return reply.text

        for _ in range(10):
            reading = asyncio.create_task(read())
            await asyncio.sleep(0)
            assert (await conversation.intervene("x")).reached == ("Poet",)
            assert await reading == "begun x"

    with_a_conversation(main)


def test_a_slow_reader_gets_large_pieces_and_is_told_what_it_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    fills: list[None] = []
    fill = Reader.fill

    async def counted(self: Reader[Any]) -> None:
        fills.append(None)
        await fill(self)

    monkeypatch.setattr(Reader, "fill", counted)

    async def main(conversation: AsyncioConversation, poet: Poet) -> None:
        for buffer in (1_000_000, 10):
            poet.done.clear()
            fills.clear()
            async with conversation.stream("many", buffer=buffer) as reply:
                assert await asyncio.to_thread(poet.done.wait, LIMIT)
                pieces = [piece async for piece in reply]
            said = reply.post.message
            assert pieces == ([said] if buffer > 10 else [Skipped(len(said) - 10), said[-10:]])
            assert len(fills) <= 3
        with pytest.raises(ValueError, match="at least one"):
            async with conversation.stream("a", buffer=0):
                raise AssertionError("entered all the same")

    with_a_conversation(main)


@pytest.mark.slow
def test_a_message_that_was_said_before_is_read_from_now_on_and_leaving_recalls_nothing() -> None:
    async def main(conversation: AsyncioConversation, poet: Poet) -> None:
        started = await conversation.communicate(UserMessage("wait", id="one"))
        async with conversation.stream(UserMessage("wait", id="one")):
            pass
        await conversation.intervene("x")
        assert (await started.reply()).message == "begun x"

    with_a_conversation(main)


def test_a_stream_outlives_neither_its_conversation_nor_the_host() -> None:
    async def main() -> None:
        for close in ("conversation", "host"):
            host = await TrioHost().__aenter__()
            opened = host.open_conversation(Poet())
            conversation = await opened.__aenter__()
            async with conversation.stream("wait") as reply:
                await anext(reply)
                await conversation.intervene("x", delivery="after_turn")
                leaving = opened if close == "conversation" else host
                closing = asyncio.create_task(leaving.__aexit__(None, None, None))
                with pytest.raises(ConversationClosed):
                    async for _ in reply:
                        pass
                await closing
            with pytest.raises(ConversationClosed):
                async with conversation.stream("a"):
                    raise AssertionError("entered all the same")
            if close == "host":
                await opened.__aexit__(None, None, None)
            else:
                await host.__aexit__(None, None, None)

    run(main)


@pytest.mark.slow
def test_what_was_not_read_when_the_host_is_closed_is_read_before_its_error() -> None:
    async def main() -> None:
        poet = Poet()
        host = await TrioHost().__aenter__()
        async with host.open_conversation(poet) as conversation, conversation.stream("wait") as reply:
            assert await asyncio.to_thread(poet.at_work.wait, LIMIT)
            await host.__aexit__(None, None, None)
            assert await anext(reply) == "begun"
            with pytest.raises(ConversationClosed):
                await anext(reply)

    run(main)


def test_code_that_blocks_reads_a_reply_in_a_loop() -> None:
    poet = Poet()
    with conversation_with(poet) as conversation:
        with conversation.stream("many") as reply:
            read = "".join(piece for piece in reply if isinstance(piece, str))
        assert read == reply.text == reply.post.message
        with conversation.stream("wait") as reply:
            assert next(reply) == "begun"
            conversation.intervene("x")
            assert [next(reply), "".join(str(piece) for piece in reply)] == [Restarted("Poet", 2), "begun x"]
        with conversation.stream("wait") as reply:
            next(reply)
        assert (poet.cleaned_up, conversation.transcript().rounds[-1].state) == (2, "stopped")
        with pytest.raises(RoleFailed), conversation.stream("fail") as reply:
            for _ in reply:
                pass
        assert repr(reply) == "<BlockingStreamedReply finished, 0 characters unread>"


def test_ctrl_c_while_a_reply_is_read_stops_its_round_and_the_conversation_goes_on() -> None:
    poet = Poet()
    with conversation_with(poet) as conversation:
        with ctrl_c(0.02), pytest.raises(KeyboardInterrupt), conversation.stream("wait") as reply:
            for _ in reply:
                pass
        assert (poet.cleaned_up, conversation.statistics().turns) == (1, 0)
        assert conversation.transcript().rounds[-1].state == "stopped"
        assert conversation.send("a").message == "begun"


@pytest.mark.slow
def test_another_thread_ends_a_stream_by_closing_the_host() -> None:
    def read(host: BlockingHost) -> str:
        with host.open_conversation(Poet()) as conversation, conversation.stream("wait") as reply:
            with pytest.raises(ConversationClosed):
                for _ in reply:
                    pass
            return reply.text

    with ThreadPoolExecutor(2) as threads:
        with BlockingHost() as host:
            readings = [threads.submit(read, host) for _ in range(2)]
            time.sleep(0.05)
        assert [reading.result(LIMIT) for reading in readings] == ["begun"] * 2
