"""The board: conversations under one nursery, found by their ids, and how they end with it."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from callboard.runtime.board import Board
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import BoardClosed, BoardFull, ConversationClosed, DuplicateName
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post

from .test_conversation import Role, answers, asks, cleans_up, takes
from .test_lifetime import Lasting, raises_when_left, reports


async def test_an_opened_conversation_lives_in_the_callers_block() -> None:
    async with Board(Role("root", answers)) as board:
        async with board.open_conversation("one") as conversation:
            assert board.find("one") is conversation
            assert (await conversation.send("a")).message == "a"
        assert (board.find("one"), len(board)) == (None, 0)


async def test_a_started_conversation_lives_until_it_is_closed(autojump_clock: MockClock) -> None:
    async with Board(Role("root", answers)) as board:
        conversation = await board.start_conversation("one")
        assert (board.find("one") is conversation, conversation.id, len(board)) == (True, "one", 1)
        assert (await conversation.send("a")).message == "a"
        await board.close("one")
        assert (board.find("one"), len(board)) == (None, 0)


async def test_ids_are_made_for_conversations_without_one() -> None:
    options = ConversationOptions(id="of the options", mailbox=3)
    async with Board(Role("root", answers), options=options) as board:
        ids = [(await board.start_conversation()).id for _ in range(3)]
        async with board.open_conversation() as conversation:
            assert len({*ids, conversation.id, "of the options"}) == 5
            assert conversation.statistics().mailboxes["root"].capacity == 3


async def test_an_unknown_conversation_is_not_found() -> None:
    async with Board(Role("root", answers)) as board:
        assert board.find("nobody") is None
        await board.close("nobody")


async def test_closing_waits_until_nothing_is_alive(autojump_clock: MockClock) -> None:
    async with Board(Role("root", cleans_up(5))) as board:
        conversation = await board.start_conversation("one")
        receipt = conversation.communicate("a")
        await trio.sleep(1)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(board.close, "one")
        assert trio.current_time() == 6
        with pytest.raises(ConversationClosed):
            await receipt.reply()
        await board.close("one")


async def test_a_close_that_is_cancelled_ends_the_conversation_all_the_same(autojump_clock: MockClock) -> None:
    async with Board(Role("root", cleans_up(5))) as board:
        (await board.start_conversation("one")).communicate("a")
        await trio.sleep(1)
        with trio.move_on_after(1):
            await board.close("one")
        assert board.find("one") is not None
        await trio.sleep(5)
        assert board.find("one") is None


async def test_closing_a_held_conversation_leaves_it_to_its_holder(autojump_clock: MockClock) -> None:
    async with Board(Role("root", takes(9))) as board, board.open_conversation("one") as conversation:
        receipt = conversation.communicate("a")
        await board.close("one")
        assert board.find("one") is conversation
        with pytest.raises(ConversationClosed):
            await receipt.reply()
        with pytest.raises(ConversationClosed):
            await conversation.send("b")


async def test_an_id_in_use_is_refused(autojump_clock: MockClock) -> None:
    async with Board(Role("root", cleans_up(5))) as board:
        (await board.start_conversation("one")).communicate("a")
        with pytest.raises(DuplicateName):
            await board.start_conversation("one")
        with pytest.raises(DuplicateName):
            async with board.open_conversation("one"):
                raise AssertionError("the block is not entered")
        await board.close("one")
        assert (await board.start_conversation("one")).id == "one"


async def test_a_board_takes_conversations_in_its_block_only() -> None:
    board = Board(Role("root", answers))
    with pytest.raises(BoardClosed):
        board.open_conversation()
    async with board:
        held_back = board.open_conversation()
    with pytest.raises(BoardClosed):
        await board.start_conversation()
    with pytest.raises(BoardClosed):
        async with held_back:
            raise AssertionError("the block is not entered")
    with pytest.raises(BoardClosed, match="one block only"):
        async with board:
            raise AssertionError("the block is not entered")


async def test_leaving_the_board_ends_started_conversations_and_closes_held_ones(autojump_clock: MockClock) -> None:
    async def hold() -> None:
        async with board.open_conversation("held") as conversation:
            with pytest.raises(ConversationClosed):
                await conversation.send("a")
            ended.append((trio.current_time(), conversation.id))
            await trio.sleep(9)
        ended.append((trio.current_time(), conversation.id))

    ended: list[tuple[float, str]] = []
    async with trio.open_nursery() as hosts:
        async with Board(Role("root", cleans_up(5))) as board:
            hosts.start_soon(hold)
            started = await board.start_conversation("started")
            started.communicate("a")
            await trio.sleep(1)
        assert trio.current_time() == 6
        assert started.transcript().rounds[0].state == "stopped"
        assert (board.find("started"), repr(board)) == (None, "<Board of root, closed, 1 conversations>")
    assert ended == [(6, "held"), (15, "held")]


async def test_the_failure_of_a_host_is_that_of_its_conversation_alone(autojump_clock: MockClock) -> None:
    async def fail() -> None:
        with pytest.raises(ZeroDivisionError):
            async with board.open_conversation() as conversation:
                conversation.communicate("a")
                raise ZeroDivisionError

    async with Board(Role("root", takes(1))) as board, trio.open_nursery() as nursery:
        nursery.start_soon(fail)
        async with board.open_conversation() as conversation:
            assert (await conversation.send("b")).message == "b"
        assert (await (await board.start_conversation()).send("c")).message == "c"


async def test_the_failure_of_a_started_conversation_leaves_the_boards_block() -> None:
    with pytest.raises(OSError, match="not left in order"):
        async with Board(Lasting("root", reports, raises_when_left)) as board:
            await (await board.start_conversation("one")).send("a")
            await board.close("one")
            await trio.sleep_forever()


async def test_an_error_in_the_boards_block_leaves_as_itself(autojump_clock: MockClock) -> None:
    with pytest.raises(ValueError, match="mine"):
        async with Board(Role("root", cleans_up(5))) as board:
            (await board.start_conversation()).communicate("a")
            await trio.sleep(1)
            raise ValueError("mine")
    assert trio.current_time() == 6


async def test_a_cancellation_from_outside_ends_the_board_and_goes_on(autojump_clock: MockClock) -> None:
    with trio.move_on_after(1) as scope:
        async with Board(Role("root", cleans_up(5))) as board:
            (await board.start_conversation()).communicate("a")
            await trio.sleep_forever()
    assert (scope.cancelled_caught, trio.current_time(), len(board)) == (True, 6, 0)


async def test_the_same_actors_serve_many_conversations_at_once(autojump_clock: MockClock) -> None:
    async def serve(number: int) -> None:
        async with board.open_conversation(f"conv-{number}") as conversation:
            for word in ("a", "b"):
                replies.append((await conversation.send(f"{number} {word}")).message)
            lengths.append(sum(len(round_.post_list) for round_ in conversation.transcript().rounds))

    replies: list[str] = []
    lengths: list[int] = []
    async with Board(Role("root", asks("worker"), Role("worker", takes(1)))) as board:
        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(serve, number)
            await wait_all_tasks_blocked()
            assert (len(board), repr(board)) == (50, "<Board of root, open, 50 conversations>")
        assert trio.current_time() == 2
    assert sorted(replies) == sorted(f"{number} {word}" for number in range(50) for word in ("a", "b"))
    assert lengths == [8] * 50


async def test_a_start_that_is_cancelled_started_nothing() -> None:
    async with Board(Role("root", answers)) as board:
        with trio.CancelScope() as scope:
            scope.cancel()
            await board.start_conversation("one")
        assert (scope.cancelled_caught, len(board)) == (True, 0)
        assert isinstance(await board.start_conversation("one"), Conversation)


async def test_a_conversation_may_be_started_from_inside_a_turn() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        if post.message == "inner":
            return post.reply("from inside")
        inner = await board.start_conversation()
        return post.reply((await inner.send("inner")).message)

    async with Board(Role("root", work)) as board, board.open_conversation() as conversation:
        assert (await conversation.send("a")).message == "from inside"


async def test_a_full_board_refuses_until_a_conversation_has_ended(autojump_clock: MockClock) -> None:
    async with Board(Role("root", cleans_up(5)), limit=2) as board:
        (await board.start_conversation("one")).communicate("a")
        async with board.open_conversation("two"):
            with pytest.raises(BoardFull, match="holds 2 conversations") as full:
                await board.start_conversation()
            assert full.value.limit == 2
            with pytest.raises(BoardFull):
                async with board.open_conversation():
                    raise AssertionError("the block is not entered")
            with pytest.raises(DuplicateName):
                await board.start_conversation("one")
        assert (await board.start_conversation("three")).id == "three"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(board.close, "one")
            await trio.sleep(4)
            with pytest.raises(BoardFull):  # the clean-up of "one" still runs
                await board.start_conversation("four")
        assert (await board.start_conversation("four")).id == "four"


async def test_many_starts_at_once_never_pass_the_limit() -> None:
    async def start() -> None:
        try:
            await board.start_conversation()
        except BoardFull:
            refused.append(len(board))

    refused: list[int] = []
    async with Board(Role("root", answers), limit=3) as board:
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(start)
        assert (len(board), refused) == (3, [3] * 7)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3"])
def test_a_limit_is_a_whole_number_from_one_on(limit: Any) -> None:
    with pytest.raises(ValueError, match="whole number"):
        Board(Role("root", answers), limit=limit)


async def test_what_runs_alongside_works_while_conversations_do_and_is_cancelled_with_the_board(
    autojump_clock: MockClock,
) -> None:
    async def once() -> None:
        seen.append("once")

    async def tick() -> None:
        try:
            while True:
                await trio.sleep(1)
                seen.append(f"tick {trio.current_time():g}")
        finally:
            seen.append(f"ended {trio.current_time():g}")

    seen: list[str] = []
    async with Board(Role("root", takes(2.5)), alongside=[once, tick]) as board:
        assert (await (await board.start_conversation()).send("a")).message == "a"
    assert seen == ["once", "tick 1", "tick 2", "ended 2.5"]


async def test_what_fails_alongside_leaves_the_boards_block_and_closes_its_conversations(
    autojump_clock: MockClock,
) -> None:
    async def fail() -> None:
        await trio.sleep(1)
        raise OSError("the folder has gone")

    with pytest.raises(OSError, match="the folder has gone"):
        async with Board(Role("root", cleans_up(5)), alongside=[fail]) as board:
            conversation = await board.start_conversation()
            conversation.communicate("a")
            await trio.sleep_forever()
    assert (trio.current_time(), len(board)) == (6, 0)
    assert conversation.transcript().rounds[0].state == "stopped"
