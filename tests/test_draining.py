"""Draining a board: what is refused, what may finish, what is stopped, and what the report says of it."""

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.board import Board
from callboard.runtime.context import TurnContext
from callboard.runtime.draining import DrainReport
from callboard.runtime.errors import BoardClosed, ConversationClosed, InsideTurn, RoundStopped
from callboard.runtime.post import Post

from .roles import Does
from .test_background import starting
from .test_conversation import Role, answers, asks, cleans_up, fails, takes, tells

REFUSED = "the board is drained"


def told(report: DrainReport) -> tuple[list[str], list[str], list[str]]:
    """What finished, what was stopped and what stood in line, by what the user had said."""
    ended = ([f"{one.user_query} {one.state}" for one in rounds] for rounds in (report.finished, report.stopped))
    finished, stopped = ended
    return finished, stopped, [f"{one.conversation} {one.message.message}" for one in report.in_line]


async def test_a_round_that_ends_in_time_finishes_and_one_that_does_not_is_stopped(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        context.draft.write("so far")
        await trio.sleep(float(post.message))
        return post.reply("done")

    async with Board(Role("root", work)) as board:
        short, long = [(await board.start_conversation(id)).communicate(id) for id in ("3", "30")]
        await trio.sleep(1)
        report = await board.drain(trio.current_time() + 10)
        assert (told(report), trio.current_time()) == ((["3 finished"], ["30 stopped"], []), 11)
        assert (await short.reply()).message == "done"
        with pytest.raises(RoundStopped, match=REFUSED):
            await long.reply()
        stopped = board.find("30")
        assert stopped is not None
        assert [post.message for post in stopped.transcript().rounds[0].post_list][1:] == ["so far"]


async def test_without_a_deadline_all_that_runs_may_finish(autojump_clock: MockClock) -> None:
    async with Board(Role("root", takes(500))) as board:
        (await board.start_conversation()).communicate("a")
        assert told(await board.drain()) == (["a finished"], [], [])


async def test_a_drained_board_takes_no_conversation_for_good() -> None:
    async with Board(Role("root", answers)) as board:
        held_back = board.open_conversation()
        assert await board.drain() == DrainReport((), (), ())
        with pytest.raises(BoardClosed, match="drained"):
            board.open_conversation()
        with pytest.raises(BoardClosed, match="drained"):
            await board.start_conversation()
        with pytest.raises(BoardClosed, match="drained"):
            async with held_back:
                raise AssertionError("the block is not entered")
        assert repr(board) == "<Board of root, drained, 0 conversations>"


async def test_a_drained_conversation_refuses_rounds_and_can_be_read() -> None:
    async with Board(Role("root", answers)) as board, board.open_conversation() as conversation:
        await conversation.send("a")
        assert told(await board.drain()) == ([], [], [])
        with pytest.raises(ConversationClosed, match=REFUSED):
            await conversation.send("b")
        for verb in (conversation.communicate, conversation.enqueue):
            with pytest.raises(ConversationClosed, match=REFUSED):
                verb("b")
        assert conversation.intervene("b").action == "missed"
        assert [one.user_query for one in conversation.transcript().rounds] == ["a"]


async def test_a_round_that_runs_can_be_spoken_to_and_gets_no_follower(autojump_clock: MockClock) -> None:
    async with Board(Role("root", takes(3))) as board, board.open_conversation() as conversation:
        started = conversation.communicate("a")
        await trio.sleep(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(board.drain)
            await trio.sleep(1)
            assert conversation.communicate("b").action == "intervened"
            late = conversation.communicate("c", delivery="after_turn")
            for verb in (conversation.send, conversation.enqueue):
                with pytest.raises(ConversationClosed, match=REFUSED):
                    await conversation.send("d") if verb == conversation.send else conversation.enqueue("d")
        assert (await started.reply()).message == "a b"
        with pytest.raises(ConversationClosed, match=REFUSED):
            await late.reply()
        assert late.action == "missed"


async def test_what_stood_in_line_is_refused_at_once_and_reported(autojump_clock: MockClock) -> None:
    async def send() -> None:
        with pytest.raises(ConversationClosed, match=REFUSED):
            await conversation.send("b")
        ended.append(trio.current_time())

    ended: list[float] = []
    async with Board(Role("root", takes(5))) as board, trio.open_nursery() as nursery:
        conversation = await board.start_conversation("one")
        conversation.communicate("a")
        nursery.start_soon(send)
        await trio.sleep(1)
        later = conversation.enqueue("c")
        assert told(await board.drain()) == (["a finished"], [], ["one b", "one c"])
        assert (ended, later.state, conversation.queued()) == ([1], "over", ())


async def test_a_line_that_a_stop_holds_is_reported_too(autojump_clock: MockClock) -> None:
    async with Board(Role("root", cleans_up(5))) as board:
        conversation = await board.start_conversation("one")
        conversation.communicate("a")
        conversation.enqueue("b")
        await trio.sleep(1)
        conversation.stop("enough")
        assert told(await board.drain()) == ([], ["a stopped"], ["one b"])


async def test_draining_waits_for_clean_up_and_for_told_work(autojump_clock: MockClock) -> None:
    async with Board(Role("root", tells("other"), Role("other", cleans_up(4)))) as board:
        await (await board.start_conversation()).send("a")
        assert told(await board.drain(2)) == ([], [], [])
        assert trio.current_time() == 6


async def test_the_report_of_background_work_still_opens_its_round(autojump_clock: MockClock) -> None:
    async with Board(Does("boss", starting(), Does("worker", takes(3)))) as board:
        await (await board.start_conversation()).send("a")
        assert told(await board.drain()) == (["do finished"], [], [])


async def test_a_paused_round_is_stopped_at_the_deadline(autojump_clock: MockClock) -> None:
    async with Board(Role("root", takes(1))) as board:
        conversation = await board.start_conversation()
        conversation.pause()
        conversation.communicate("a")
        conversation.pause()
        assert told(await board.drain(10)) == ([], ["a stopped"], [])


async def test_a_round_that_fails_has_ended_by_itself() -> None:
    async with Board(Role("root", fails(ValueError("no")))) as board:
        (await board.start_conversation()).communicate("a")
        assert told(await board.drain()) == (["a failed"], [], [])


async def test_a_client_that_goes_in_the_middle_has_ended_its_round(autojump_clock: MockClock) -> None:
    async def serve() -> None:
        async with board.open_conversation() as conversation:
            with trio.move_on_after(2):
                await conversation.send("a")

    async with Board(Role("root", takes(9))) as board, trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        await trio.sleep(1)
        assert told(await board.drain()) == ([], ["a stopped"], [])
        assert trio.current_time() == 2


async def test_two_drains_give_one_report_and_the_earliest_deadline_counts(autojump_clock: MockClock) -> None:
    async def drain(deadline: float) -> None:
        reports.append(await board.drain(deadline))

    reports: list[DrainReport] = []
    async with Board(Role("root", takes(100))) as board:
        conversation = await board.start_conversation()
        conversation.communicate("a")
        conversation.enqueue("b")
        await trio.sleep(1)
        async with trio.open_nursery() as nursery:
            for deadline in (50, 10, 20):
                nursery.start_soon(drain, deadline)
        assert trio.current_time() == 10
        reports.append(await board.drain())
    assert reports == [reports[0]] * 4


async def test_a_drain_that_is_cancelled_stops_nothing_and_can_be_taken_up(autojump_clock: MockClock) -> None:
    async with Board(Role("root", takes(9))) as board:
        conversation = await board.start_conversation()
        started = conversation.communicate("a")
        conversation.enqueue("b")
        with trio.move_on_after(2) as scope:
            await board.drain(5)
        assert scope.cancelled_caught
        await trio.sleep(5)
        with pytest.raises(BoardClosed):
            await board.start_conversation()
        assert told(await board.drain(100)) == (["a finished"], [], [f"{conversation.id} b"])
        assert (await started.reply()).message == "a"


async def test_a_drain_that_is_cancelled_beforehand_refuses_nothing() -> None:
    async with Board(Role("root", answers)) as board:
        with trio.CancelScope() as scope:
            scope.cancel()
            await board.drain()
        assert (await (await board.start_conversation()).send("a")).message == "a"


async def test_a_board_that_is_left_in_the_middle_ends_the_drain(autojump_clock: MockClock) -> None:
    async def drain() -> None:
        reports.append(told(await board.drain()))

    reports: list[tuple[list[str], list[str], list[str]]] = []
    async with trio.open_nursery() as nursery, Board(Role("root", takes(9))) as board:
        (await board.start_conversation()).communicate("a")
        nursery.start_soon(drain)
        await trio.sleep(1)
    assert (reports, trio.current_time()) == ([([], ["a stopped"], [])], 1)
    with pytest.raises(BoardClosed):
        await board.drain()


async def test_a_role_cannot_drain_the_board_that_waits_for_it() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        with pytest.raises(InsideTurn):
            await board.drain()
        return post.reply("no")

    async with Board(Role("root", work)) as board:
        assert (await (await board.start_conversation()).send("a")).message == "no"
        assert (await (await board.start_conversation()).send("a")).message == "no"


@pytest.mark.slow
async def test_five_hundred_conversations_are_drained_in_one_go(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        await trio.sleep(int(post.message) / 10 + 0.1)
        return post.reply("done")

    async with Board(Role("root", asks("worker"), Role("worker", work))) as board:
        for number in range(500):
            (await board.start_conversation()).communicate(str(number))
        report = await board.drain(trio.current_time() + 25)
        assert len(report.finished) in (249, 250)  # the last one ends at the deadline itself
        assert len(report.finished) + len(report.stopped) == 500
        assert trio.current_time() == pytest.approx(25)
