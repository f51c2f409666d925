"""A round that is abandoned, in whichever way, is `failed` or `stopped` from then on; it never stays `created`."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.board import Board
from callboard.runtime.context import LiveContext, TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import CallboardError
from callboard.runtime.limits import Limits
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.receipt import Receipt
from callboard.runtime.testing import Inject, Watch, every_interrupt_point, fail
from callboard.runtime.turn import Turn

from .injections import stop
from .test_conversation import Role, Work, answers, asks, cleans_up, takes

Abandons = Callable[[], Awaitable[Conversation]]


class GoneMad(BaseException):
    """What no `except Exception` catches, as KeyboardInterrupt and SystemExit are."""


class Dying(Role):
    """Has a lifetime that ends while the role is at work."""

    @asynccontextmanager
    async def live(self, context: LiveContext) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._die)
            yield None

    async def _die(self) -> None:
        await trio.sleep(1)
        raise OSError("the kernel died")


def raises(error: BaseException) -> Work:
    """Works for a second, then raises."""

    async def work(post: Post, context: TurnContext) -> Post:
        context.draft.write("so far")
        await trio.sleep(1)
        raise error

    return work


async def answers_none(post: Post, context: TurnContext) -> None:
    """Owes the user an answer and gives none."""


async def tells_and_ends(post: Post, context: TurnContext) -> Post:
    """Tells a worker, and waits for longer than that will last."""
    await context.tell("worker", "go")
    await trio.sleep(9)
    return post.reply("too late")


def refuses(post: Post) -> None:
    """A hook that lets nothing pass."""
    raise ValueError("not in here")


def sent_to(root: Role, options: ConversationOptions | None = None) -> Abandons:
    """A round that ends by what its roles do; so may the conversation."""

    async def abandon() -> Conversation:
        kept = None
        with suppress(CallboardError, OSError, GoneMad, BaseExceptionGroup):
            async with open_conversation(root, options=options) as kept:
                await kept.send("a")
        assert kept is not None
        return kept

    return abandon


def at_work() -> Role:
    """A root whose worker is busy and takes a while to clean up."""
    return Role("root", asks("worker"), Role("worker", cleans_up(5)))


async def a_host_that_times_out() -> Conversation:
    async with open_conversation(at_work()) as conversation:
        with trio.move_on_after(1):
            await conversation.send("a")
    return conversation


async def a_stream_that_is_left() -> Conversation:
    async with open_conversation(at_work()) as conversation, conversation.stream("a"):
        await trio.sleep(1)
    return conversation


async def a_stop() -> Conversation:
    async with open_conversation(at_work()) as conversation:
        conversation.communicate("a")
        await trio.sleep(1)
        conversation.stop("enough")
        await conversation.wait_idle()
    return conversation


async def a_stop_in_a_pause() -> Conversation:
    async with open_conversation(at_work()) as conversation:
        conversation.pause()
        conversation.communicate("a")
        conversation.pause()
        await trio.sleep(1)
        conversation.stop("enough")
        await conversation.wait_idle()
    return conversation


async def a_block_that_is_left() -> Conversation:
    async with open_conversation(at_work()) as conversation:
        conversation.communicate("a")
        await trio.sleep(1)
    return conversation


async def a_block_left_in_the_step_that_began_the_round() -> Conversation:
    async with open_conversation(at_work()) as conversation:
        conversation.communicate("a")
    return conversation


async def a_block_that_is_cancelled() -> Conversation:
    with trio.move_on_after(1):
        async with open_conversation(at_work()) as conversation:
            await conversation.send("a")
    return conversation


async def a_block_that_crashes() -> Conversation:
    with suppress(GoneMad):
        async with open_conversation(at_work()) as conversation:
            conversation.communicate("a")
            await trio.sleep(1)
            raise GoneMad
    return conversation


async def a_task_beside_it_that_crashes() -> Conversation:
    async def crash() -> None:
        await trio.sleep(1)
        raise GoneMad

    with suppress(BaseExceptionGroup):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crash)
            async with open_conversation(at_work()) as conversation:
                await conversation.send("a")
    return conversation


async def a_board_that_is_left() -> Conversation:
    async with Board(at_work()) as board:
        conversation = await board.start_conversation()
        conversation.communicate("a")
        await trio.sleep(1)
    return conversation


async def a_board_that_is_left_by_others() -> Conversation:
    async def hold(board: Board, *, task_status: trio.TaskStatus[Conversation] = trio.TASK_STATUS_IGNORED) -> None:
        async with board.open_conversation() as conversation:
            task_status.started(conversation)
            with suppress(CallboardError):
                await conversation.send("a")

    async with trio.open_nursery() as hosts, Board(at_work()) as board:
        conversation: Conversation = await hosts.start(hold, board)
        await trio.sleep(1)
    return conversation


async def a_conversation_that_its_board_closes() -> Conversation:
    async with Board(at_work()) as board:
        conversation = await board.start_conversation("one")
        conversation.communicate("a")
        await trio.sleep(1)
        await board.close("one")
    return conversation


async def a_deploy_that_does_not_wait() -> Conversation:
    async with Board(at_work()) as board:
        conversation = await board.start_conversation()
        conversation.communicate("a")
        await board.drain(trio.current_time() + 1)
    return conversation


WAYS: dict[str, tuple[Abandons, str]] = {
    "its root raises": (sent_to(Role("root", raises(ValueError("no")))), "failed"),
    "a worker raises": (sent_to(Role("root", asks("worker"), Role("worker", raises(ValueError("no"))))), "failed"),
    "its root gives no answer": (sent_to(Role("root", answers_none)), "failed"),
    "told work raises": (sent_to(Role("root", tells_and_ends, Role("worker", raises(ValueError("no"))))), "failed"),
    "a lifetime ends": (sent_to(Dying("root", cleans_up(1))), "failed"),
    "its time is over": (sent_to(at_work(), ConversationOptions(limits=Limits(seconds=1))), "failed"),
    "a hook refuses its post": (sent_to(at_work(), ConversationOptions(on_post=refuses)), "failed"),
    "its root crashes": (sent_to(Role("root", raises(GoneMad()))), "failed"),
    "a worker crashes": (sent_to(Role("root", asks("worker"), Role("worker", raises(GoneMad())))), "failed"),
    "its host times out": (a_host_that_times_out, "stopped"),
    "its stream is left": (a_stream_that_is_left, "stopped"),
    "it is stopped": (a_stop, "stopped"),
    "it is stopped in a pause": (a_stop_in_a_pause, "stopped"),
    "its block is left": (a_block_that_is_left, "stopped"),
    "its block is left at once": (a_block_left_in_the_step_that_began_the_round, "stopped"),
    "its block is cancelled": (a_block_that_is_cancelled, "stopped"),
    "its block crashes": (a_block_that_crashes, "stopped"),
    "a task beside it crashes": (a_task_beside_it_that_crashes, "stopped"),
    "its board is left": (a_board_that_is_left, "stopped"),
    "its board is left by others": (a_board_that_is_left_by_others, "stopped"),
    "its board closes it": (a_conversation_that_its_board_closes, "stopped"),
    "a deploy does not wait": (a_deploy_that_does_not_wait, "stopped"),
}


@pytest.mark.parametrize(("abandon", "state"), WAYS.values(), ids=WAYS)
async def test_an_abandoned_round_has_a_state_that_says_so(
    abandon: Abandons, state: str, autojump_clock: MockClock
) -> None:
    (round_,) = (await abandon()).transcript().rounds
    assert round_.state == state


async def test_a_round_that_a_crash_of_the_runtime_leaves_behind_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> Turn:
        raise GoneMad

    monkeypatch.setattr("callboard.runtime.line.first_turn", crash)
    with pytest.raises(GoneMad):
        async with open_conversation(at_work()) as conversation:
            try:
                await conversation.send("a")
            finally:
                (round_,) = conversation.transcript().rounds
                assert round_.state == "created"
    (round_,) = conversation.transcript().rounds
    assert round_.state == "stopped"


async def test_a_conversation_that_closes_leaves_its_ended_rounds_alone() -> None:
    async with open_conversation(Role("root", answers)) as conversation:
        await conversation.send("a")
    (round_,) = conversation.transcript().rounds
    assert round_.state == "finished"


def close(conversation: Conversation) -> list[Receipt]:
    """What leaving the block does first."""
    conversation.begin_closing()
    return []


@pytest.mark.slow
@pytest.mark.parametrize(
    "end", [stop, close, fail(), fail("root")], ids=["stop", "close", "worker fails", "root fails"]
)
def test_no_round_stays_created_at_whichever_moment_it_is_ended(end: Inject) -> None:
    seen: list[Conversation] = []

    async def scenario(watch: Watch) -> None:
        root = Role("root", asks("worker"), Role("worker", takes(1)))
        async with open_conversation(root) as conversation:
            seen.append(watch(conversation))
            with suppress(CallboardError):
                await conversation.send("a")

    report = every_interrupt_point(scenario, end)
    states = Counter(round_.state for conversation in seen for round_ in conversation.transcript().rounds)
    assert report.runs > 20
    assert len(states) == 2 and states["finished"] > 0 and states["created"] == 0
