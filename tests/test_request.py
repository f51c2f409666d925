"""Requests: they end once, for all who wait."""

from contextvars import ContextVar

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from callboard.runtime.errors import RoleFailed
from callboard.runtime.post import Post
from callboard.runtime.request import Request
from callboard.runtime.user_message import UserMessage

REPLY = Post("post-1", "Boss", "User", "done")
tenant: ContextVar[str] = ContextVar("tenant", default="none")


def request() -> Request:
    return Request(UserMessage("do it", id="words-1"))


async def test_a_request_ends_with_its_reply_for_all_who_wait(nursery: trio.Nursery) -> None:
    one, replies = request(), list[Post]()

    async def wait() -> None:
        await one.wait_ended()
        replies.append(one.unwrap())

    nursery.start_soon(wait)
    nursery.start_soon(wait)
    await wait_all_tasks_blocked()
    assert (one.ended, replies) == (False, [])
    one.end(REPLY)
    await wait_all_tasks_blocked()
    assert (one.ended, replies) == (True, [REPLY, REPLY])


def test_each_who_waits_gets_an_error_of_its_own_with_the_same_cause() -> None:
    one, cause = request(), KeyError("no such file")
    one.end(RoleFailed("Boss", "post-1", cause))
    with pytest.raises(RoleFailed, match="Boss failed: KeyError: 'no such file'") as first:
        one.unwrap()
    with pytest.raises(RoleFailed) as second:
        one.unwrap()
    assert first.value is not second.value
    assert first.value.__cause__ is second.value.__cause__ is cause


def test_an_error_of_another_kind_keeps_its_cause_too() -> None:
    one, error = request(), ValueError("odd")
    error.__cause__ = KeyError("k")
    one.end(error)
    with pytest.raises(ValueError, match="odd") as caught:
        one.unwrap()
    assert caught.value.__cause__ is error.__cause__


def test_an_error_without_a_cause_gets_none() -> None:
    one = request()
    one.end(ValueError("odd"))
    with pytest.raises(ValueError, match="odd") as caught:
        one.unwrap()
    assert caught.value.__cause__ is None


async def test_a_wait_that_is_cancelled_does_nothing_to_the_round(autojump_clock: MockClock) -> None:
    one = request()
    with trio.move_on_after(1) as scope:
        await one.wait_ended()
    assert scope.cancelled_caught
    assert not one.ended
    one.end(REPLY)
    assert one.unwrap() == REPLY


def test_the_round_runs_in_a_copy_of_the_context_variables_of_who_asked() -> None:
    token = tenant.set("acme")
    one = request()
    tenant.reset(token)
    assert one.variables[tenant] == "acme"
    one.variables.run(tenant.set, "other")
    assert tenant.get() == "none"
