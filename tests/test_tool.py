"""Tools: their schema, their arguments, and what is recorded of every call."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import RoleFailed, ToolFailed
from callboard.runtime.event import DraftGrew, ToolBegan, ToolEnded
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.tool import Report, Tool

from . import work_to_stop as work
from .test_thread_call import Gate, gate

__all__ = ["gate"]


async def search(query: str, limit: int = 3) -> list[str]:
    """Finds pages."""
    return [f"{query} {number}" for number in range(limit)]


async def slow(pages: int, report: Report) -> int:
    for number in range(pages):
        report(f"page {number};")
        await trio.sleep(1)
    return pages


def add(a: int, b: int, report: Report) -> int:
    report("adding")
    return a + b


async def broken() -> None:
    raise OSError("the disk is full")


class Caller(Actor):
    """Calls one tool, and answers with the result."""

    name = "caller"

    def __init__(self, tool: Tool, arguments: dict[str, Any]) -> None:
        self.tool = tool
        self.arguments = arguments

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply(json.dumps(await context.call(self.tool, self.arguments)))


def calls(conversation: Conversation) -> list[dict[str, Any]]:
    """What is recorded of calls, without their ids."""
    posts = [post for round_ in conversation.transcript().rounds for post in round_.post_list]
    notes = [json.loads(str(note.content)) for post in posts for note in post.get_attachment("function")]
    return [{key: value for key, value in note.items() if key not in ("call", "tool")} for note in notes]


async def called(tool: Callable[..., Any], **arguments: Any) -> list[dict[str, Any]]:
    """The notes of one call that succeeds."""
    async with open_conversation(Caller(Tool(tool), arguments)) as conversation:
        await conversation.send("q")
    return calls(conversation)


def test_a_tool_is_named_described_and_typed_by_its_function() -> None:
    tool = Tool(search)
    assert (tool.name, tool.description, repr(tool)) == ("search", "Finds pages.", "<Tool search>")
    assert tool.schema["properties"]["query"] == {"title": "Query", "type": "string"}
    assert (tool.schema["required"], tool.schema["additionalProperties"]) == (["query"], False)


def test_the_report_is_no_argument_of_a_call() -> None:
    assert list(Tool(slow).schema["properties"]) == ["pages"]


def test_arguments_take_the_types_of_the_signature() -> None:
    assert Tool(search).check({"query": "x", "limit": "5"}) == {"query": "x", "limit": 5}


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [({}, "query: Field required"), ({"query": 1}, "query: .*string"), ({"query": "x", "other": 1}, "other: Extra")],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Tool(search).check(arguments)


def test_a_function_whose_arguments_have_no_names_is_no_tool() -> None:
    with pytest.raises(TypeError, match="cannot be passed by name"):
        Tool(lambda *pages: None, name="open")


async def test_start_and_outcome_are_recorded() -> None:
    assert await called(search, query="x", limit=1) == [
        {"arguments": {"query": "x", "limit": 1}},
        {"outcome": "done", "result": ["x 0"]},
    ]


async def test_a_sync_function_runs_in_a_thread_and_may_report() -> None:
    assert (await called(add, a=1, b=2))[1] == {"outcome": "done", "result": 3}


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [(broken, {}, "OSError: the disk is full"), (search, {}, "ValueError: query: Field required")],
)
async def test_a_call_that_fails_is_recorded_and_raises_at_the_role(
    tool: Callable[..., Any], arguments: dict[str, Any], error: str
) -> None:
    async with open_conversation(Caller(Tool(tool), arguments)) as conversation:
        with pytest.raises(RoleFailed) as failed:
            await conversation.send("q")
    assert isinstance(failed.value.__cause__, ToolFailed)
    assert calls(conversation)[1] == {"outcome": "failed", "error": error}


async def test_a_call_that_takes_too_long_fails_with_its_progress(autojump_clock: MockClock) -> None:
    async with open_conversation(Caller(Tool(slow, timeout=1.5), {"pages": 9})) as conversation:
        with pytest.raises(RoleFailed):
            await conversation.send("q")
    assert calls(conversation)[1] == {"outcome": "failed", "error": "TooSlowError", "progress": "page 0;\npage 1;"}


async def run_tool(tool: Tool, **arguments: Any) -> tuple[Any, list[object]]:
    """What a call returns or raises, and all that it says beside, in order."""
    said: list[object] = []
    try:
        result = await tool.run(arguments, said.append, ladder=2, on_abandoned=said.append, on_late=said.append)
    except Exception as error:
        return type(error), said
    return result, said


@pytest.mark.parametrize("in_process", [False, True])
async def test_a_sync_function_reports_and_returns_from_a_thread_and_from_a_process(in_process: bool) -> None:
    tool = Tool(work.tell, in_process=in_process)
    assert list(tool.schema["properties"]) == ["words"]
    assert await run_tool(tool, words=["one", "two"]) == (2, ["one", "two"])


async def test_a_call_in_a_process_is_recorded_like_any_other() -> None:
    async with open_conversation(Caller(Tool(work.double, in_process=True), {"number": "21"})) as conversation:
        await conversation.send("q")
    assert calls(conversation) == [{"arguments": {"number": "21"}}, {"outcome": "done", "result": 42}]


async def test_an_async_function_that_outlives_its_time_limit_is_told_and_waited_for(autojump_clock: MockClock) -> None:
    async def stubborn() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(9)
        await trio.lowlevel.checkpoint()

    started = trio.current_time()
    result, said = await run_tool(Tool(stubborn, timeout=1))
    assert (result, trio.current_time() - started) == (trio.TooSlowError, 9)
    swallows = "swallows its cancellation, or cleans up for more than 2 s: it is waited for"
    assert said == [f"stubborn: an async function that {swallows}"]


async def test_a_thread_that_outlives_its_time_limit_is_told_and_left_behind(
    autojump_clock: MockClock, gate: Gate
) -> None:
    def stubborn() -> str:
        return gate.pass_through()

    started = trio.current_time()
    result, said = await run_tool(Tool(stubborn, timeout=1))
    assert (result, trio.current_time() - started) == (trio.TooSlowError, 3)
    assert said == ["stubborn: a thread that did not end within 2 s: it is left behind"]


async def test_a_process_that_outlives_its_time_limit_is_killed() -> None:
    result, said = await run_tool(Tool(work.swallow_for_ever, in_process=True, timeout=0.5))
    assert result is trio.TooSlowError
    assert all("ready" in str(one) for one in said)


def test_how_a_call_ends_is_kept_with_the_tool() -> None:
    plain, special = Tool(search), Tool(work.double, interruptible=False, grace=3, in_process=True)
    assert (plain.interruptible, plain.grace, plain.in_process) == (True, None, False)
    assert (special.interruptible, special.grace, special.in_process) == (False, 3, True)


@pytest.mark.parametrize(
    ("function", "fault"), [(search, "tool search: an async function cannot run"), (lambda: None, "cannot be pickled")]
)
def test_a_function_that_cannot_run_in_a_process_is_refused(function: Callable[..., Any], fault: str) -> None:
    with pytest.raises(TypeError, match=fault):
        Tool(function, in_process=True)


async def test_an_interrupted_call_keeps_its_progress_before_the_words(autojump_clock: MockClock) -> None:
    async with open_conversation(Caller(Tool(slow), {"pages": 3})) as conversation:
        started = conversation.communicate("q")
        await trio.sleep(1.5)
        conversation.intervene("x")
        await started.reply()
    assert calls(conversation) == [
        {"arguments": {"pages": 3}},
        {"outcome": "interrupted", "progress": "page 0;\npage 1;"},
        {"arguments": {"pages": 3}},
        {"outcome": "done", "result": 3},
    ]
    kinds = [post.marks.kind for post in conversation.transcript().rounds[0].post_list]
    assert kinds == ["message", "note", "note", "intervention", "note", "note", "reply"]


async def test_a_call_that_was_cancelled_before_it_began_was_not_started() -> None:
    class Late(Caller):
        async def receive(self, post: Post, context: TurnContext) -> Post:
            with trio.CancelScope() as scope:
                scope.cancel()
                await context.call(self.tool, self.arguments)
            return post.reply("none")

    async with open_conversation(Late(Tool(search), {"query": "x"})) as conversation:
        await conversation.send("q")
    assert calls(conversation)[1] == {"outcome": "not_started"}


async def test_what_cannot_be_json_or_utf_8_is_kept_as_it_can_be() -> None:
    async def odd() -> object:
        return {"half": "\ud800", "thing": Tool}

    class Careless(Caller):
        async def receive(self, post: Post, context: TurnContext) -> Post:
            await context.call(self.tool, self.arguments)
            return post.reply("done")

    async with open_conversation(Careless(Tool(odd), {})) as conversation:
        await conversation.send("q")
    assert calls(conversation)[1]["result"]["half"] == "\ud800"


async def test_a_call_is_seen_in_events(autojump_clock: MockClock) -> None:
    async with open_conversation(Caller(Tool(slow), {"pages": 1})) as conversation:
        events = conversation.events()
        await conversation.send("q")
    seen = [event async for event in events if isinstance(event, ToolBegan | ToolEnded | DraftGrew)]
    assert [type(event).__name__ for event in seen] == ["ToolBegan", "DraftGrew", "ToolEnded"]
    assert isinstance(seen[1], DraftGrew) and (seen[1].type, seen[1].text) == ("slow", "page 0;\n")
    assert isinstance(seen[2], ToolEnded) and seen[2].outcome == "done"
