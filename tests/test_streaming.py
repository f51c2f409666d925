"""Streaming: a reply read while it grows, what the reader is told of interruptions, and what leaving the block ends."""

import gc

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from callboard.runtime.board import Board
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import ConversationClosed, InsideTurn, Missed, RequestRecalled, RoleFailed, RoundStopped
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.streaming import Piece, Restarted, Skipped, StreamedReply, Taken
from callboard.runtime.testing import Watch, every_interrupt_point
from callboard.runtime.user_message import UserMessage

from .roles import Does, Work
from .test_conversation import Role, answers, cleans_up, takes, tells


def types(*pieces: str, seconds: float = 1) -> Work:
    """Writes a piece each second, and answers with all of them."""

    async def work(post: Post, context: TurnContext) -> Post:
        for piece in pieces:
            await trio.sleep(seconds)
            context.draft.write(piece)
        await trio.sleep(seconds)
        return post.reply(context.draft.take())

    return work


async def read(reply: StreamedReply) -> list[Piece]:
    """All pieces, to the end."""
    return [piece async for piece in reply]


def states(conversation: Conversation) -> list[str]:
    """What each round asked, and its state."""
    return [f"{one.user_query} {one.state}" for one in conversation.transcript().rounds]


async def test_the_pieces_are_read_as_they_are_written_and_the_post_is_there_afterwards(
    autojump_clock: MockClock,
) -> None:
    async with (
        open_conversation(Does("root", types("a", "b", "c"))) as conversation,
        conversation.stream("q") as reply,
    ):
        with pytest.raises(RuntimeError, match="not finished"):
            _ = reply.post
        read = [(piece, trio.current_time()) async for piece in reply]
        assert [piece for piece, _ in read] == ["a", "b", "c"]
        assert [round(at, 1) for _, at in read] == [1, 2, 3]
        assert (reply.text, reply.post.message, reply.post.send_from) == ("abc", "abc", "root")
        assert repr(reply) == "<StreamedReply finished, 0 characters unread>"
    assert states(conversation) == ["q finished"]


async def test_only_the_roots_text_of_this_round_is_read(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        context.draft.attach("thought", "hm")
        context.draft.progress("tool", "half")
        context.draft.write(f"{post.message}: ")
        return context.draft.take() + (await context.ask("worker", "do")).message

    async with open_conversation(Does("root", work, Does("worker", types("x", "y")))) as conversation:
        first = conversation.communicate("one")
        async with conversation.stream("two") as reply:
            assert await read(reply) == ["two: "]
            assert reply.post.message == "two: xy"
        assert (await first.reply()).message == "one: xy"


async def test_an_interruption_is_a_marker_and_what_was_read_before_is_void(autojump_clock: MockClock) -> None:
    async with open_conversation(Does("root", types("a", "b"))) as conversation, conversation.stream("q") as reply:
        assert await anext(reply) == "a"
        conversation.intervene("again")
        assert await anext(reply) == Restarted("root", 2)
        assert reply.text == ""
        assert await read(reply) == ["a", "b"]
        assert (reply.text, reply.post.message) == ("ab", "ab")


async def test_what_a_new_attempt_made_void_before_it_was_read_is_not_read(autojump_clock: MockClock) -> None:
    async with open_conversation(Does("root", types("a", "b"))) as conversation, conversation.stream("q") as reply:
        for _ in range(3):
            await trio.sleep(1.5)
            conversation.intervene("again")
        await conversation.wait_idle()
        assert await read(reply) == [Restarted("root", 4), "ab"]


async def test_a_step_whose_text_was_taken_is_told_from_the_answer(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        for piece in ("plan", " it"):
            context.draft.write(piece)
        context.record(context.draft.take())
        context.draft.write("done")
        return context.draft.take()

    async with open_conversation(Does("root", work)) as conversation, conversation.stream("q") as reply:
        assert await read(reply) == ["plan it", Taken(), "done"]
        assert (reply.text, reply.post.message) == ("done", "done")


async def test_the_text_of_a_role_to_which_the_request_was_handed_on_is_read(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        context.draft.write("let me see")
        return post.forward(to="expert")

    async with (
        open_conversation(Does("root", work), Does("expert", types("a", "b"))) as conversation,
        conversation.stream("q") as reply,
    ):
        pieces = await read(reply)
        assert [piece for piece in pieces if piece != "let me see"] == [Restarted("expert", 1), "a", "b"]
        assert (reply.text, reply.post.send_from) == ("ab", "expert")


async def test_leaving_the_block_early_stops_its_round_alone_and_waits_for_its_end(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", cleans_up(5))) as conversation:
        async with conversation.stream("q") as reply:
            assert await anext(reply) == "so far"
            behind = conversation.enqueue("behind")
        assert trio.current_time() == 5
        assert states(conversation)[0] == "q stopped"
        assert [post.message for post in conversation.transcript().rounds[0].post_list] == ["q", "so far"]
        assert behind.state == "begun"
        with pytest.raises(RequestRecalled):
            _ = reply.post


async def test_leaving_early_touches_neither_told_work_nor_the_conversation(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", tells("w", takes(9)), Role("w", takes(3)))) as conversation:
        async with conversation.stream("q") as reply:
            await anext(reply)
        assert conversation.statistics().turns == 1
        await conversation.wait_idle()
        assert trio.current_time() == 3
        assert (await conversation.send("r")).message == "r"


async def test_leaving_a_block_whose_round_stands_in_line_takes_it_out(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", takes(5))) as conversation:
        first = conversation.communicate("a")
        async with conversation.stream("b"):
            await trio.sleep(1)
        assert trio.current_time() == 1
        assert (await first.reply()).message == "a"
        assert states(conversation) == ["a finished"]


async def test_an_error_in_the_block_stops_the_round_and_leaves_as_itself(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", cleans_up(5))) as conversation:
        with pytest.raises(ZeroDivisionError):
            async with conversation.stream("q"):
                await trio.sleep(1)
                raise ZeroDivisionError
        assert (states(conversation), trio.current_time()) == (["q stopped"], 6)


async def test_a_cancelled_reader_stops_the_round_and_waits_for_its_end(autojump_clock: MockClock) -> None:
    async with open_conversation(Role("root", cleans_up(5))) as conversation:
        with trio.move_on_after(1) as scope:
            async with conversation.stream("q") as reply:
                await read(reply)
        assert scope.cancelled_caught
        assert (states(conversation), trio.current_time()) == (["q stopped"], 6)


async def test_the_error_of_the_round_is_raised_after_the_last_piece(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        context.draft.write("half")
        raise OSError("no disk")

    pieces = []
    async with open_conversation(Does("root", work)) as conversation:
        with pytest.raises(RoleFailed, match="no disk"):
            async with conversation.stream("q") as reply:
                async for piece in reply:
                    pieces.append(piece)
        assert (pieces, states(conversation)) == (["half"], ["q failed"])
        with pytest.raises(RoleFailed):
            _ = reply.post


async def test_a_stop_is_raised_at_the_reader(autojump_clock: MockClock) -> None:
    async with open_conversation(Does("root", types("a", "b"))) as conversation:
        with pytest.raises(RoundStopped, match="enough"):
            async with conversation.stream("q") as reply:
                await anext(reply)
                conversation.stop("enough")
                await read(reply)


async def test_a_slow_reader_gets_all_text_in_one_piece(autojump_clock: MockClock) -> None:
    pieces = [f"{number}," for number in range(3000)]
    async with (
        open_conversation(Does("root", types(*pieces, seconds=0))) as conversation,
        conversation.stream("q") as reply,
    ):
        await conversation.wait_idle()
        assert await read(reply) == ["".join(pieces)]
        assert reply.post.message == "".join(pieces)


@pytest.mark.parametrize("size", [1, 3, 7])
async def test_a_reader_beyond_the_buffer_is_told_how_much_is_missing(size: int, autojump_clock: MockClock) -> None:
    pieces = ["x" * size] * 10
    async with (
        open_conversation(Does("root", types(*pieces, seconds=0))) as conversation,
        conversation.stream("q", buffer=5) as reply,
    ):
        await conversation.wait_idle()
        assert repr(reply) == "<StreamedReply finished, 5 characters unread>"
        assert await read(reply) == [Skipped(10 * size - 5), "x" * 5]
        assert reply.post.message == "x" * 10 * size


async def test_a_marker_is_never_skipped(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        context.draft.write("a")
        await trio.sleep(1)
        for _ in range(3):
            context.draft.write("bcdefgh")
            context.record(context.draft.take())
        return "done"

    async with open_conversation(Does("root", work)) as conversation, conversation.stream("q", buffer=5) as reply:
        assert await anext(reply) == "a"
        conversation.intervene("again")
        await conversation.wait_idle()
        assert await read(reply) == [Restarted("root", 2), Skipped(17), "defgh"]
        assert reply.text == "defgh"


async def test_a_buffer_holds_at_least_one_character_and_a_bad_one_begins_nothing() -> None:
    async with open_conversation(Role("root", answers)) as conversation:
        with pytest.raises(ValueError, match="at least one"):
            async with conversation.stream("q", buffer=0):
                raise AssertionError("the block is not entered")
        assert states(conversation) == []


async def test_a_role_never_waits_for_a_reader(autojump_clock: MockClock) -> None:
    async with (
        open_conversation(Does("root", types("a", "b"))) as conversation,
        conversation.stream("q", buffer=1) as reply,
    ):
        await trio.sleep(100)
        assert reply.post.message == "ab"


async def test_a_message_that_was_said_before_is_read_from_now_on_and_leaving_ends_nothing(
    autojump_clock: MockClock,
) -> None:
    message = UserMessage("q", id="one")
    async with open_conversation(Does("root", types("a", "b", "c"))) as conversation:
        started = conversation.communicate(message)
        await trio.sleep(1.5)
        async with conversation.stream(message) as reply:
            assert await anext(reply) == "b"
        async with conversation.stream(message) as reply:
            assert await read(reply) == ["c"]
        async with conversation.stream(message) as reply:
            assert await read(reply) == []
            assert reply.post.message == "abc"
        assert (await started.reply()).message == "abc"
        conversation.intervene(missed := UserMessage("q", id="two"))
        with pytest.raises(Missed, match="two"):
            async with conversation.stream(missed):
                raise AssertionError("the block is not entered")


async def test_a_stream_ends_a_pause_and_a_pause_holds_it(autojump_clock: MockClock) -> None:
    async with open_conversation(Does("root", types("a", "b"))) as conversation:
        conversation.pause()
        async with conversation.stream("q") as reply:
            assert not conversation.paused
            assert await read(reply) == ["a", "b"]


async def test_closing_the_conversation_ends_the_stream() -> None:
    async with Board(Role("root", takes(9))) as board:
        conversation = await board.start_conversation("one")
        async with conversation.stream("q") as reply:
            await anext(reply)
            await board.close("one")
            with pytest.raises(ConversationClosed):
                await anext(reply)
        with pytest.raises(ConversationClosed):
            async with conversation.stream("q"):
                raise AssertionError("the block is not entered")


async def test_a_role_cannot_stream_from_its_own_turn() -> None:
    async def work(post: Post, context: TurnContext) -> str:
        with pytest.raises(InsideTurn):
            async with conversation.stream("q"):
                raise AssertionError("the block is not entered")
        return "no"

    async with open_conversation(Does("root", work)) as conversation:
        assert (await conversation.send("q")).message == "no"


async def test_a_stream_that_was_left_listens_to_nothing_any_more() -> None:
    async with open_conversation(Role("root", answers)) as conversation:
        gc.disable()
        try:
            async with conversation.stream("q") as reply:
                assert conversation._router.events.wanted
                await read(reply)
            assert not conversation._router.events.wanted
        finally:
            gc.enable()


async def test_two_readers_share_the_pieces_and_both_come_to_the_end(autojump_clock: MockClock) -> None:
    async def gather() -> None:
        pieces.extend(await read(reply))

    pieces: list[Piece] = []
    async with open_conversation(Does("root", types("a", "b", "c"))) as conversation, conversation.stream("q") as reply:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(gather)
            nursery.start_soon(gather)
            await wait_all_tasks_blocked()
        assert sorted(map(str, pieces)) == ["a", "b", "c"]


def test_the_pieces_since_the_last_marker_are_the_answer_at_every_moment_of_an_interruption() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        text = (await context.ask("worker", "do")).message
        for piece in (text, "and more"):
            await trio.sleep(1)
            context.draft.write(piece)
        return post.reply(context.draft.take())

    async def scenario(watch: Watch) -> None:
        root = Does("root", work, Does("worker", types("x")))
        async with open_conversation(root) as conversation, watch(conversation).stream("q") as reply:
            await read(reply)
            assert reply.text == reply.post.message == "xand more"

    report = every_interrupt_point(scenario)
    assert (report.runs > 40, report.outcomes["told"] > 0) == (True, True)
