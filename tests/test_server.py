"""Servers: questions and answers, askers that go away, tasks that start on demand."""

from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from callboard.runtime.server import Server


class Counter:
    """Answers with the questions it has had; divides what is asked for a fraction."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def answer(self, question: Any) -> object:
        self.asked.append(question)
        return 12 / question


async def ask_into(server: Server, question: object, answers: list[object]) -> None:
    try:
        answers.append(await server.ask(question))
    except (trio.ClosedResourceError, ZeroDivisionError) as error:
        answers.append(type(error))


async def test_questions_are_answered_in_order(nursery: trio.Nursery) -> None:
    counter, answers = Counter(), list[object]()
    server = Server("counter", counter.answer)
    for question in (1, 2, 3):
        nursery.start_soon(ask_into, server, question, answers)
        await wait_all_tasks_blocked()
    nursery.start_soon(server.serve)
    await wait_all_tasks_blocked()
    server.close()
    assert (counter.asked, sorted(answers, key=str)) == ([1, 2, 3], [12, 4, 6])


async def test_an_error_goes_to_its_asker_alone(nursery: trio.Nursery) -> None:
    server, answers = Server("counter", Counter().answer), list[object]()
    nursery.start_soon(server.serve)
    for question in (0, 2):
        nursery.start_soon(ask_into, server, question, answers)
        await wait_all_tasks_blocked()
    server.close()
    assert answers == [ZeroDivisionError, 6]


async def test_a_cancelled_question_is_not_answered(nursery: trio.Nursery) -> None:
    counter, answers = Counter(), list[object]()
    server = Server("counter", counter.answer)
    async with trio.open_nursery() as askers:
        askers.start_soon(ask_into, server, 1, answers)
        await wait_all_tasks_blocked()
        askers.cancel_scope.cancel()
    nursery.start_soon(server.serve)
    assert await server.ask(2) == 6
    server.close()
    assert (counter.asked, answers) == ([2], [])


async def test_a_question_of_a_cancelled_task_is_not_asked() -> None:
    counter = Counter()
    server, starts = Server("counter", counter.answer), list[str]()
    server.start = lambda: starts.append("start")
    with trio.CancelScope() as scope:
        scope.cancel()
        await server.ask(1)
    assert scope.cancelled_caught
    assert starts == []


async def test_an_answer_at_the_tick_of_a_cancel_is_thrown_away_or_given(nursery: trio.Nursery) -> None:
    counter, answers = Counter(), list[object]()
    server = Server("counter", counter.answer)
    nursery.start_soon(server.serve)
    async with trio.open_nursery() as askers:
        askers.start_soon(ask_into, server, 1, answers)
        await trio.lowlevel.checkpoint()
        askers.cancel_scope.cancel()
    assert await server.ask(2) == 6
    server.close()
    assert len(answers) in (0, 1)


async def test_closing_answers_those_who_wait_and_refuses_the_rest(nursery: trio.Nursery) -> None:
    server, answers = Server("counter", Counter().answer), list[object]()
    nursery.start_soon(ask_into, server, 1, answers)
    await wait_all_tasks_blocked()
    server.close()
    nursery.start_soon(ask_into, server, 2, answers)
    await wait_all_tasks_blocked()
    assert answers == [trio.ClosedResourceError] * 2


async def test_closing_ends_a_parked_task() -> None:
    server = Server("counter", Counter().answer)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve)
        await wait_all_tasks_blocked()
        server.close()


async def test_the_serving_task_is_shielded_from_all_but_its_own_scope(nursery: trio.Nursery) -> None:
    server = Server("counter", Counter().answer)
    nursery.start_soon(server.serve)
    await wait_all_tasks_blocked()
    nursery.cancel_scope.cancel()
    with trio.CancelScope(shield=True):
        assert await server.ask(3) == 4
    assert server.scope is not None
    server.scope.cancel()


async def test_a_task_is_started_exactly_when_none_serves(nursery: trio.Nursery) -> None:
    server, starts = Server("counter", Counter().answer), list[str]()

    def start() -> None:
        starts.append("start")
        server.start = None
        nursery.start_soon(server.serve)

    server.start = start
    assert [await server.ask(1), await server.ask(2), starts] == [12, 6, ["start"]]
    assert server.scope is not None
    server.scope.cancel()
    server.start = start
    assert [await server.ask(1), starts] == [12, ["start"] * 2]
    server.close()


async def test_a_server_is_idle_while_its_task_is_parked(nursery: trio.Nursery) -> None:
    server = Server("counter", Counter().answer)
    assert not server.idle
    nursery.start_soon(server.serve)
    await wait_all_tasks_blocked()
    assert server.idle
    nursery.start_soon(ask_into, server, 1, [])
    await trio.lowlevel.checkpoint()
    await wait_all_tasks_blocked()
    assert server.idle
    server.close()
