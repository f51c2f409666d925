"""Boards of a host: conversations that outlive a handler, a limit, a deploy; for asyncio and for code that blocks."""

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from callboard.runtime.context import LiveContext
from callboard.runtime.errors import BoardClosed, BoardFull, ConversationClosed, DuplicateName, RoundStopped
from callboard.runtime.hosts import AsyncioBoard, BlockingHost, TrioHost
from callboard.runtime.hosts.asyncio_held import AsyncioHeld

from .test_hosts_asyncio import Clerk, Entered, run
from .test_hosts_blocking import ctrl_c


class Failing(Clerk):
    """Cannot be left in order."""

    @asynccontextmanager
    async def live(self, context: LiveContext) -> AsyncIterator[None]:
        yield
        raise OSError("not left in order")


def test_a_started_conversation_outlives_its_handler_until_it_is_closed() -> None:
    async def main() -> None:
        clerk = Clerk()
        async with TrioHost() as host, host.open_board(clerk) as board:

            async def handle() -> None:
                conversation = await board.start_conversation("one")
                await conversation.communicate("wait")

            await asyncio.create_task(handle())
            await clerk.wait_at_work()
            found = await board.find("one")
            assert found == await board.find("one")
            assert (found is not None and found.id, await board.find("two"), len(board)) == ("one", None, 1)
            assert repr(board) == "<AsyncioBoard of Clerk, open, 1 conversations>"
            await board.close("one")
            assert (clerk.cleaned_up, await board.find("one"), len(board)) == (1, None, 0)

    run(main)


def test_a_conversation_opened_on_a_board_lives_in_the_callers_block() -> None:
    async def main() -> None:
        clerk = Clerk()
        async with TrioHost() as host:
            async with host.open_board(clerk, limit=2) as board:
                async with board.open_conversation("one") as conversation:
                    assert await board.find("one") == conversation
                    with pytest.raises(DuplicateName):
                        async with board.open_conversation("one"):
                            raise AssertionError("opened twice")
                    await board.start_conversation()
                    with pytest.raises(BoardFull):
                        await board.start_conversation()
                    await conversation.communicate("wait")
                    await clerk.wait_at_work()
                assert (clerk.cleaned_up, len(board)) == (1, 1)
            with pytest.raises(BoardClosed):
                await board.start_conversation()
            with pytest.raises(ValueError, match="whole number"):
                async with host.open_board(clerk, limit=0):
                    raise AssertionError("opened all the same")

    run(main)


@pytest.mark.slow
def test_leaving_a_board_ends_started_conversations_and_closes_held_ones() -> None:
    async def main() -> None:
        clerk, left, opened = Clerk(), asyncio.Event(), asyncio.Event()

        async def hold(board: AsyncioBoard) -> None:
            async with board.open_conversation() as conversation:
                opened.set()
                await left.wait()
                with pytest.raises(ConversationClosed):
                    await conversation.send("a")

        async with TrioHost() as host:
            async with host.open_board(clerk) as board:
                holding = asyncio.create_task(hold(board))
                await opened.wait()
                await (await board.start_conversation()).communicate("wait")
                await clerk.wait_at_work()
            assert (clerk.cleaned_up, len(board)) == (1, 1)
            left.set()
            await holding
            assert len(board) == 0

    run(main)


def test_a_board_is_drained_within_seconds() -> None:
    async def main() -> None:
        clerk = Clerk()
        async with TrioHost() as host, host.open_board(clerk) as board:
            short, long = await board.start_conversation("short"), await board.start_conversation("long")
            finishing, running = await short.communicate("wait"), await long.communicate("wait")
            later = await long.enqueue("later")
            draining = asyncio.create_task(board.drain(0.05))
            await asyncio.sleep(0)
            await short.intervene("x")
            began = time.monotonic()
            with pytest.raises(BoardClosed):
                await board.start_conversation()
            with pytest.raises(ConversationClosed):
                await short.enqueue("a")
            report = await draining
            assert 0.02 < time.monotonic() - began < 5
            assert [one.conversation for one in report.finished] == ["short"]
            assert [one.conversation for one in report.stopped] == ["long"]
            assert [one.message.message for one in report.in_line] == ["later"]
            assert report == await board.drain()
            assert (await finishing.reply()).message == "wait x"
            for receipt, error in ((running, RoundStopped), (later, ConversationClosed)):
                with pytest.raises(error):
                    await receipt.reply()
            assert len((await short.transcript()).rounds) == 1

    run(main)


@pytest.mark.slow
def test_a_drain_that_is_cancelled_stops_nothing_and_can_be_taken_up() -> None:
    async def main() -> None:
        clerk = Clerk()
        async with TrioHost() as host, host.open_board(clerk) as board:
            conversation = await board.start_conversation()
            await conversation.communicate("wait")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(board.drain(), 0.02)
            await conversation.intervene("x")
            assert len((await board.drain()).finished) == 1

    run(main)


def test_who_waits_for_room_is_let_in_when_a_place_is_free() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_board(Clerk(), limit=2, tenant_limit=1) as board:
            first = await board.start_conversation(tenant="north")
            with pytest.raises(BoardFull, match="north"):
                await board.start_conversation(tenant="north")
            waiting = asyncio.create_task(board.start_conversation(tenant="north", patience=60))
            async with board.open_conversation(tenant="south"):
                pass
            assert not waiting.done()
            await board.close(first.id)
            assert (await waiting).id != first.id

    run(main)


def test_a_start_whose_task_is_cancelled_at_the_last_moment_has_started_nothing() -> None:
    async def main() -> None:
        async with TrioHost() as host, host.open_board(Clerk(), limit=1) as board:
            starting = asyncio.create_task(board.start_conversation())
            await asyncio.sleep(0)
            while not board._handled._started:
                time.sleep(0.001)  # noqa: ASYNC251 (the loop is not to see that it has started)
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
            assert len(board) == 0
            assert (await (await board.start_conversation()).send("a")).message == "a"

    run(main)


def test_the_failure_of_a_started_conversation_cancels_the_boards_block_and_leaves_it() -> None:
    async def main() -> None:
        async with TrioHost() as host:
            with pytest.raises(OSError, match="not left in order"):
                async with host.open_board(Failing()) as board:
                    conversation = await board.start_conversation("one")
                    await conversation.send("a")
                    await board.close("one")
                    await asyncio.Event().wait()
            async with host.open_conversation(Clerk()) as other:
                assert (await other.send("a")).message == "a"

    run(main)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["start_conversation", "open_conversation"])
def test_closing_the_host_ends_what_its_boards_hold_before_what_it_uses(verb: str) -> None:
    async def main() -> None:
        clerk, cleaned_up = Clerk(), list[int]()
        model = Entered(lambda: cleaned_up.append(clerk.cleaned_up))
        host = await TrioHost().__aenter__()
        async with host.enter(model), host.open_board(clerk) as board, AsyncExitStack() as stack:
            opened = getattr(board, verb)()
            conversation = await (opened if verb == "start_conversation" else stack.enter_async_context(opened))
            receipt = await conversation.communicate("wait")
            await clerk.wait_at_work()
            await host.__aexit__(None, None, None)
            assert (cleaned_up, len(board)) == ([1], 0)
            for call in (receipt.reply(), board.find("a"), board.drain(), board.close("a")):
                with pytest.raises(ConversationClosed):
                    await call

    run(main)


@pytest.mark.slow
def test_what_was_handed_over_cancels_nobody_when_it_fails_later() -> None:
    async def main() -> None:
        async with TrioHost() as host:
            held = AsyncioHeld(host._bridge, failing_when_left(), keeps=True)
            assert await held.hand_over() == "handed over"
            await asyncio.sleep(0.02)
            assert str(held._job.error) == "too late"

    run(main)


@asynccontextmanager
async def failing_when_left() -> AsyncIterator[str]:
    """Gives something, and cannot be left."""
    yield "handed over"
    raise ValueError("too late")


def test_threads_share_a_board() -> None:
    clerk = Clerk()
    with BlockingHost() as host, host.open_board(clerk, limit=20) as board, ThreadPoolExecutor(8) as threads:
        started = list(threads.map(board.start_conversation, map(str, range(20))))
        assert [one.id for one in started] == [str(number) for number in range(20)]
        with pytest.raises(BoardFull), board.open_conversation():
            raise AssertionError("opened on a full board")
        board.close("0")
        with board.open_conversation("held") as held:
            assert held.send("a").message == "a"
        started[1].communicate("wait")
        with ctrl_c(0.02), pytest.raises(KeyboardInterrupt):
            board.drain()
        found = board.find("1")
        assert found is not None
        assert (found, board.find("0"), repr(board)) == (
            started[1],
            None,
            "<BlockingBoard of Clerk, drained, 19 conversations>",
        )
        report = board.drain(0)
        assert ([one.conversation for one in report.stopped], clerk.cleaned_up) == (["1"], 1)
    gc.collect()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("callboard")]
