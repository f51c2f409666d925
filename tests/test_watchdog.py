"""The watchdog: whose turn blocks the loop, where, and once; and that it leaves nothing behind."""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio

from callboard.runtime.actor import Actor
from callboard.runtime.attempt import Attempts
from callboard.runtime.context import TurnContext
from callboard.runtime.nursery import open_nursery
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.turn import current_turn
from callboard.runtime.watchdog import Blockage, open_watchdog

AFTER = 0.05


class Reports:
    """An `on_blocked` that keeps what it is told, and ends the blockage."""

    def __init__(self) -> None:
        self.all: list[Blockage] = []
        self._told = threading.Event()

    def __call__(self, blockage: Blockage) -> None:
        self.all.append(blockage)
        self._told.set()

    def block(self) -> None:
        """Blocks the loop until that has been noticed, ten seconds at most."""
        self._told.clear()
        until = time.monotonic() + 10
        while not self._told.is_set() and time.monotonic() < until:
            pass


class Blocker(Actor):
    """Blocks the loop in its turn, or in a task of its own."""

    name = "Blocker"

    def __init__(self, block: Callable[[], object], *, in_child: bool = False) -> None:
        self.block = block
        self.in_child = in_child

    async def receive(self, post: Post, context: TurnContext) -> Post:
        async with open_nursery() as nursery:
            if self.in_child:
                nursery.start_soon(self.work)
            else:
                await self.work()
        return post.reply("done")

    async def work(self) -> None:
        self.block()  # here


HERE = f"{Path(__file__)}:{Path(__file__).read_text(encoding='utf-8').split('# here')[0].count(chr(10)) + 1}"


def watchdogs() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "callboard watchdog"]


@pytest.mark.parametrize("in_child", [False, True])
async def test_it_names_the_role_the_post_and_the_line(in_child: bool) -> None:
    reports = Reports()
    blocker = Blocker(reports.block, in_child=in_child)
    async with open_watchdog(AFTER, reports), open_conversation(blocker) as conversation:
        await conversation.send("q")
    (blockage,) = reports.all
    assert (blockage.role, blockage.post) == ("Blocker", conversation.transcript().rounds[0].post_list[0].id)
    assert AFTER <= blockage.seconds < 5
    assert blockage.where.startswith(str(Path(__file__)))


async def test_it_finds_the_role_in_the_frames_when_the_variables_do_not_say() -> None:
    reports = Reports()

    def hide_and_block() -> None:
        current_turn.set(None)
        reports.block()

    async with open_watchdog(AFTER, reports), open_conversation(Blocker(hide_and_block)) as conversation:
        await conversation.send("q")
    assert reports.all[0].role == "Blocker"


async def test_the_line_is_the_users_and_not_a_librarys() -> None:
    told = threading.Event()
    found: list[str] = []

    def on_blocked(blockage: Blockage) -> None:
        found.append(blockage.where)
        told.set()

    async with open_watchdog(AFTER, on_blocked), open_conversation(Blocker(partial(told.wait, 10))) as conversation:
        await conversation.send("q")
    assert found == [HERE]


async def test_a_blockage_is_told_once_while_it_lasts_and_the_next_again() -> None:
    reports = Reports()
    async with open_watchdog(AFTER, reports):
        for _ in range(2):
            before = len(reports.all)
            reports.block()
            time.sleep(AFTER * 3)  # noqa: ASYNC251 (still the same blockage)
            assert len(reports.all) == before + 1
            await trio.sleep(0.001)


async def test_what_is_no_roles_turn_has_no_role() -> None:
    reports = Reports()
    async with open_watchdog(AFTER, reports):
        reports.block()
    assert (reports.all[0].role, reports.all[0].post) == (None, None)
    assert str(reports.all[0]).startswith("something that is no role's turn blocks the loop for 0.")


async def test_by_default_it_warns_in_one_sentence(caplog: pytest.LogCaptureFixture) -> None:
    def block() -> None:
        until = time.monotonic() + 10
        while not caplog.records and time.monotonic() < until:
            pass

    async with open_watchdog(AFTER), open_conversation(Blocker(block)) as conversation:
        await conversation.send("q")
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("callboard", logging.WARNING)
    assert record.getMessage().startswith("Blocker, at work on post-")


async def test_no_thread_is_left_however_the_block_is_left() -> None:
    with trio.CancelScope() as scope:
        async with open_watchdog():
            assert len(watchdogs()) == 1
            scope.cancel()
            await trio.sleep_forever()
    with pytest.raises(KeyError):
        async with open_watchdog():
            raise KeyError
    assert not watchdogs()


async def test_an_error_of_on_blocked_is_raised_when_the_block_is_left() -> None:
    told = threading.Event()

    def refuse(blockage: Blockage) -> None:
        told.set()
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        async with open_watchdog(AFTER, refuse):
            told.wait(10)
    assert not watchdogs()


@pytest.mark.parametrize("after", [0, -1, float("nan")])
async def test_it_takes_seconds_above_0(after: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        async with open_watchdog(after):
            pass


async def test_the_turn_is_where_it_looks_for_it() -> None:
    assert "turn" in Attempts._attempt.__code__.co_varnames
