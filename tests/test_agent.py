"""Agent: calls what its model asks for, several at once, asks and starts others, and goes on after interruptions."""

import json
import os
import threading
from collections.abc import AsyncIterator, Iterator
from itertools import groupby, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from callboard.actors import Agent, Echo
from callboard.actors.kept_results import kept_results
from callboard.prompts.library import packaged
from callboard.prompts.reply_format import ReplyError
from callboard.runtime.chat_model import ChatRequest
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import CallboardError, RoleFailed
from callboard.runtime.event import Event, PostRecorded
from callboard.runtime.limits import Limits
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.scripted_model import Reply, ScriptedModel, Step
from callboard.runtime.testing import Inject, Watch, every_interrupt_point, interrupt
from callboard.runtime.tool import Report, Tool
from tests.roles import template

from .composing import extends
from .test_role import lines, posts, said


def calls(*wanted: tuple[str, dict[str, Any]], thought: str = "so") -> str:
    """A reply that calls tools."""
    listed = [{"tool": tool, "arguments": arguments} for tool, arguments in wanted]
    members = {"thought": thought, "reply_type": "call", "reply_content": listed, "message": ""}
    return json.dumps({"response": members})


def answer(message: str) -> str:
    """A reply that ends the work."""
    return json.dumps({"response": {"thought": "so", "reply_type": "respond", "reply_content": [], "message": message}})


async def search(subject: str, report: Report) -> str:
    """Finds something about a subject."""
    report(f"looking for {subject}")
    await trio.sleep(1)
    return f"{subject} is old"


async def fail(how: str) -> str:
    """Fails."""
    raise OSError(how)


def seen(model: ScriptedModel, call: int = -1) -> str:
    """All that the model was sent in one of its calls, behind the system message."""
    return "\n".join(message.content for message in model.requests[call].messages[1:])


def agent(*script: Step, tools: Any = (search, fail), **options: Any) -> tuple[Agent, ScriptedModel]:
    """An agent with a script, and its model."""
    model = ScriptedModel({"Agent": list(script)})
    return Agent(model, tools, **options), model


async def run(role: Agent, **options: Any) -> list[str]:
    """What is recorded of one round."""
    async with open_conversation(role, options=ConversationOptions(**options)) as conversation:
        await conversation.send("go")
        return lines(conversation)


async def test_it_thinks_calls_reads_and_responds(autojump_clock: MockClock) -> None:
    role, model = agent(calls(("search", {"subject": "tea"}), thought="I do not know"), answer("Tea is old."))
    recorded = await run(role)
    assert recorded[1].startswith("Agent>Agent note [THOUGHT: I do not know] [REPLY_TYPE: call]")
    assert recorded[-1] == "Agent>User reply [THOUGHT: so] [REPLY_TYPE: respond] [REPLY_CONTENT: []]: Tea is old."
    assert "[search returned:]\ntea is old" in seen(model)
    assert "search: Finds something about a subject." in model.requests[0].messages[0].content


async def test_calls_of_one_reply_run_at_the_same_time(autojump_clock: MockClock) -> None:
    many = [("search", {"subject": subject}) for subject in "abc"]
    role, model = agent(calls(*many), answer("all"))
    began = trio.current_time()
    await run(role)
    assert trio.current_time() - began == pytest.approx(1)
    assert all(f"\n{subject} is old" in seen(model) for subject in "abc")


async def test_what_goes_wrong_with_a_call_is_the_models_to_mend(autojump_clock: MockClock) -> None:
    wrong = calls(("fail", {"how": "the disk is full"}), ("search", {"topic": "tea"}), ("search", {"subject": "tea"}))
    role, model = agent(wrong, answer("I tried."))
    await run(role)
    assert "[fail failed: OSError: the disk is full]" in seen(model)
    assert "subject: Field required" in seen(model)
    assert "tea is old" in seen(model)


async def test_a_tool_that_is_not_there_is_put_back_with_those_that_are(autojump_clock: MockClock) -> None:
    role, model = agent(calls(("find", {})), answer("So be it."))
    await run(role)
    assert "there is no tool 'find'; there are: search, fail, read_result" in seen(model)
    assert "call-" not in seen(model)


async def test_the_same_call_that_brings_the_same_is_not_made_a_third_time(autojump_clock: MockClock) -> None:
    again = calls(("search", {"subject": "tea"}))
    role, model = agent(again, again, again, answer("Enough."))
    await run(role)
    assert template("fw.msg_repeat") in seen(model)
    assert seen(model).count("tea is old") == 2


async def test_a_call_that_brings_something_else_may_be_made_again(autojump_clock: MockClock) -> None:
    states = iter(["begun", "running", "running", "done"])

    async def state() -> str:
        return next(states)

    script = [calls(("state", {}))] * 3
    role, model = agent(*script, answer("Running."), tools=[state])
    await run(role)
    assert "same reply" not in seen(model)
    assert seen(model).count("running") == 2


async def test_a_model_that_never_responds_is_given_up(autojump_clock: MockClock) -> None:
    script = [calls(("search", {"subject": str(number)})) for number in range(3)]
    role, _ = agent(*script, most_steps=3)
    with pytest.raises(RoleFailed) as failed:
        await run(role)
    assert isinstance(failed.value.__cause__, CallboardError)
    assert "no answer after 3 steps" in str(failed.value.__cause__)


NONSENSE = [
    "",
    "search tea",
    "[" * 5000,
    said(reply_type="call", reply_content="[" * 200_000),
    said(reply_type="call", reply_content="[]"),
    said(reply_type="call", reply_content='["search"]'),
    said(reply_type="call", reply_content='[{"tool": "search", "arguments": ["tea"]}]'),
    said(reply_type="call", reply_content='[{"tool": "search", "arguments": {"subject": "\\ud800"}}]'),
    said(reply_type="call", reply_content="9" * 10_000),
    said(reply_type="call", reply_content='{"tool": "../search", "arguments": {}}'),
    said(reply_type="call", reply_content=json.dumps([{"tool": "fail"}] * 17)),
    said(reply_type="respond", message=" "),
    said(reply_type="run", message="x"),
    calls(("search", {"subject": {"a": ["b"]}, "report": "mine"})),
    calls(("search", {"subject": float("nan")})),
    calls(("read_result", {"name": "../../etc/passwd"})),
    calls(("read_result", {"name": "x", "start": -1})),
    calls(("call_subordinate", {"profile": "Agent", "message": "you"})),
    calls(("call_subordinate", {"profile": "helper", "message": "help", "name": "no name; at all"})),
    calls(("call_subordinate", {"profile": "helper", "message": " "})),
    calls(("call_subordinate", {"profile": "broken", "message": "help"})),
    calls(("call_subordinate", {"profile": "none", "message": "help"})),
    calls(("call_subordinate", {})),
]


async def test_nothing_that_a_model_writes_ends_the_run(autojump_clock: MockClock) -> None:
    profiles = {"helper": lambda: Echo("x"), "broken": lambda: Agent(ScriptedModel({}), name="x")}
    options = ConversationOptions(profiles=profiles, limits=Limits())
    for number, nonsense in enumerate(NONSENSE):
        offered = {"helper": "helps", "broken": "fails", "none": "is not there"}
        role, model = agent(nonsense, answer("Here I am."), profiles=offered)
        async with open_conversation(role, options=options) as conversation:
            assert (await conversation.send("go")).message == "Here I am.", number
        assert "[" in seen(model) or "could not be used" in seen(model), number


async def test_a_model_that_only_writes_nonsense_is_given_up(autojump_clock: MockClock) -> None:
    role, _ = agent(*["no"] * 4, answer("Now I can."))
    async with open_conversation(role) as conversation:
        with pytest.raises(RoleFailed) as failed:
            await conversation.send("go")
        assert isinstance(failed.value.__cause__, ReplyError)
        assert (await conversation.send("again")).message == "Now I can."


def test_tools_need_names_of_their_own() -> None:
    wrong: list[tuple[list[Any], dict[str, Any]]] = [
        ([search, Tool(fail, name="search")], {}),
        ([Tool(search, name="read_result")], {}),
        ([Tool(search, name="call_subordinate")], {}),
        ([search], {"needs_approval": ["find"]}),
        ([search], {"most_result": 0}),
    ]
    for tools, options in wrong:
        with pytest.raises(ValueError, match=r"name|most_result"):
            agent(tools=tools, **options)


async def test_an_interruption_keeps_the_thought_and_what_a_tool_had_said(autojump_clock: MockClock) -> None:
    role, model = agent(calls(("search", {"subject": "tea"})), answer("Coffee, then."))
    async with open_conversation(role) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(0.5)
        conversation.intervene("coffee")
        assert (await started.reply()).message == "Coffee, then."
    assert "[search was interrupted; it had said:]\nlooking for tea" in seen(model)
    assert seen(model).endswith('{"user_intervention": "coffee"}')


async def test_a_tool_that_is_not_interruptible_is_finished_first(autojump_clock: MockClock) -> None:
    role, model = agent(
        calls(("search", {"subject": "tea"})), answer("I see."), tools=[Tool(search, interruptible=False)]
    )
    async with open_conversation(role) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(0.5)
        conversation.intervene("coffee")
        await started.reply()
    assert "tea is old" in seen(model)
    assert "was interrupted" not in seen(model)


async def test_subordinates_are_started_several_at_once_and_go_on_from_where_they_were(
    autojump_clock: MockClock,
) -> None:
    async def ask(*names: str, reset: bool = False) -> list[str]:
        wanted = [{"profile": "helper", "message": f"do {name}", "name": name, "reset": reset} for name in names]
        return [calls(*(("call_subordinate", one) for one in wanted), thought=str(reset))]

    script = [*await ask("a", "b"), *await ask("a"), *await ask("a", reset=True), answer("All helped.")]
    helped = {f"Agent-helper-{name}": [Reply(answer(f"{name}{n}"), delay=1) for n in range(3)] for name in "ab"}
    model = ScriptedModel({"Agent": list(script), **helped})
    options = ConversationOptions(profiles={"helper": lambda: Agent(model)}, limits=Limits())
    began = trio.current_time()
    async with open_conversation(Agent(model, profiles={"helper": "helps"}), options=options) as conversation:
        await conversation.send("go")
    assert trio.current_time() - began == pytest.approx(9)  # three pauses each, the first two roles at once
    by_a = [request.messages[1:] for request in model.requests if request.role == "Agent-helper-a"]
    assert [len(messages) for messages in by_a] == [2, 4, 2]  # the first tells what the user asked for
    assert {"From: Agent-helper-a\na0", "From: Agent-helper-b\nb0"} <= {
        one.content for one in model.requests[-1].messages
    }


async def test_a_role_that_is_there_is_asked_as_a_profile_is(autojump_clock: MockClock) -> None:
    role, model = agent(
        calls(("call_subordinate", {"profile": "Echo", "message": "hello"})), answer("ok"), subordinates=[Echo("Echo")]
    )
    await run(role)
    assert "From: Echo\nhello" in seen(model)
    schema = json.dumps(role.reply_model.model_json_schema())
    assert '"enum": ["Echo"]' in schema


async def test_a_subordinate_too_deep_is_the_models_to_do_without(autojump_clock: MockClock) -> None:
    role, model = agent(
        calls(("call_subordinate", {"profile": "helper", "message": "help"})), answer("Alone."), profiles={"helper": ""}
    )
    await run(role, profiles={"helper": lambda: Echo("x")}, max_depth=1)
    assert "[call_subordinate failed: the limit of 1 depth is reached" in seen(model)


def wise(request: ChatRequest) -> Reply:
    """Calls a tool and a sub-agent, which calls a tool, and responds once it has seen what both brought."""
    texts = "\n".join(message.content for message in request.messages[1:])
    if request.role != "Agent":
        found = "\ncoffee is old" in texts
        return Reply(answer("helped") if found else calls(("search", {"subject": "coffee"})), pieces=2, delay=0.1)
    if "From: Agent-helper\nhelped" in texts and "\ntea is old" in texts:
        return Reply(answer("Both are old."), pieces=2, delay=0.1)
    helper = ("call_subordinate", {"profile": "helper", "message": "help"})
    return Reply(calls(("search", {"subject": "tea"}), helper), pieces=2, delay=0.1)


async def team(watch: Watch) -> None:
    """One round of an agent, a tool, and a sub-agent with a tool."""
    model = ScriptedModel({name: [wise] * 40 for name in ("Agent", "Agent-helper")})
    helper = Agent(model, [search])
    options = ConversationOptions(profiles={"helper": lambda: helper}, limits=Limits())
    async with open_conversation(Agent(model, [search], profiles={"helper": "helps"}), options=options) as conversation:
        assert (await watch(conversation).send("go")).message == "Both are old."
    for calls_ in by_role(list(model.requests)):
        assert all(extends(later.messages, earlier.messages) for earlier, later in pairwise(calls_))


def by_role(requests: list[ChatRequest]) -> Iterator[list[ChatRequest]]:
    """The calls of each role, in their order."""
    ordered = sorted(requests, key=lambda request: request.role)
    return (list(some) for _, some in groupby(ordered, key=lambda request: request.role))


@pytest.mark.parametrize("inject", [interrupt(1), interrupt(2)], ids=["level 1", "level 2"])
def test_it_answers_wherever_it_is_interrupted(inject: Inject) -> None:
    assert every_interrupt_point(team, inject, sample=6).outcomes["seen"]


@pytest.mark.slow
@pytest.mark.parametrize("inject", [interrupt(1), interrupt(2), interrupt(1, times=2)], ids=["1", "2", "1 twice"])
def test_it_answers_at_every_moment_of_an_interruption(inject: Inject) -> None:
    assert every_interrupt_point(team, inject, seeds=range(2)).outcomes["seen"]


def scripted(seed: int) -> ScriptedModel:
    """A model that has agents call, ask, err and respond, as the seed will have it."""
    random = Random(seed)

    def step(request: ChatRequest) -> Reply:
        what = random.random()
        if what < 0.3:
            return Reply(answer("done"), delay=0.1)
        if what < 0.4:
            return Reply(f"nonsense {what}", delay=0.1)
        some = [("search", {"subject": f"{what}"}), ("fail", {"how": "so"}), ("search", {})]
        if request.role == "Agent":
            names = random.sample(["a", "b"], 2)
            some += [("call_subordinate", {"profile": "helper", "message": f"{what}", "name": name}) for name in names]
        return Reply(calls(*random.sample(some, 2), thought=str(what)), pieces=3, delay=0.1)

    return ScriptedModel({name: [step] * 300 for name in ("Agent", "Agent-helper-a", "Agent-helper-b")})


async def converse(seed: int) -> None:
    """Two rounds with interruptions; within each, what the model is sent extends what it was sent."""
    model, random = scripted(seed), Random(seed)
    options = ConversationOptions(
        profiles={"helper": lambda: Agent(model, [search, fail], most_result=20)}, limits=Limits()
    )
    role = Agent(model, [search, fail], profiles={"helper": "helps"}, most_result=20)
    role.most_corrections = 100

    async def speak(conversation: Conversation) -> None:
        for number in range(6):
            await trio.sleep(random.choice([0.1, 0.3, 1.1]))
            conversation.intervene(f"words {number}", broadcast_level=random.choice([1, 2, -1]))

    async with open_conversation(role, options=options) as conversation, trio.open_nursery() as nursery:
        nursery.start_soon(speak, conversation)
        for question in ("first", "second"):
            began = len(model.requests)
            await conversation.send(question)
            for asked in by_role(list(model.requests[began:])):
                assert all(extends(later.messages, earlier.messages) for earlier, later in pairwise(asked))
        nursery.cancel_scope.cancel()
    systems = {(request.role, request.messages[0]) for request in model.requests}
    assert len(systems) == len({name for name, _ in systems})


@pytest.mark.parametrize("seed", range(2))
def test_within_a_round_each_call_extends_the_one_before(seed: int) -> None:
    trio.run(converse, seed, clock=MockClock(autojump_threshold=0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 60))
def test_the_prefix_rule_holds_in_many_conversations(seed: int) -> None:
    trio.run(converse, seed, clock=MockClock(autojump_threshold=0))


async def test_a_long_result_is_cut_kept_and_read_on(tmp_path: Path, autojump_clock: MockClock) -> None:
    async def read() -> str:
        return "".join(map(str, range(100)))

    def read_on(request: ChatRequest) -> str:
        name = next(one for one in request.messages if one.content.startswith("artifact_paths: ")).content[16:]
        return calls(("read_result", {"name": name, "start": 30}))

    role, model = agent(calls(("read", {})), read_on, answer("Read."), tools=[read], most_result=20, folder=tmp_path)
    recorded = await run(role)
    (kept,) = [file for folder in os.listdir(tmp_path) for file in sorted((tmp_path / folder).iterdir())]
    assert kept.read_text() == "".join(map(str, range(100)))
    assert "0123456789\n[170 characters left out]\n9596979899\n[the whole is kept as read-" in seen(model)
    assert f"[read_result returned:]\n{kept.read_text()[30:50]}" in seen(model)
    assert any(f"[ARTIFACT_PATHS: {kept.name}]" in line for line in recorded)


async def test_errors_and_reports_are_cut_too_and_a_temporary_folder_goes(autojump_clock: MockClock) -> None:
    folders: list[Path] = []

    async def shout(report: Report) -> None:
        for _ in range(100):
            report("x" * 10)
        raise OSError("y" * 1000)

    class Watched(Agent):
        async def receive(self, post: Any, context: Any) -> Any:
            reply = await super().receive(post, context)
            folders.append(context.state.folder)
            return reply

    model = ScriptedModel({"Agent": [calls(("shout", {}), ("long", {})), answer("Loud.")]})
    await run(Watched(model, [shout, Tool(lambda: "z" * 99, name="long")], most_result=50))
    assert "x" * 10 in seen(model) and seen(model).count("x" * 10) <= 6
    assert "y" * 60 not in seen(model)
    assert folders and not folders[0].exists()


async def test_a_result_that_cannot_be_kept_is_cut_all_the_same(tmp_path: Path, autojump_clock: MockClock) -> None:
    async def read() -> str:
        return "z" * 100

    role, model = agent(calls(("read", {})), answer("ok"), tools=[read], most_result=20, folder=tmp_path / "none")
    await run(role)
    assert "and could not be kept: FileNotFoundError" in seen(model)


async def test_one_agent_serves_conversations_at_once(autojump_clock: MockClock) -> None:
    role, _ = agent(*[calls(("search", {"subject": "tea"}))] * 2, *[answer("ok")] * 2)
    async with open_conversation(role) as one, open_conversation(role) as other, trio.open_nursery() as nursery:
        nursery.start_soon(one.send, "go")
        nursery.start_soon(other.send, "go")
        await one.wait_idle()
        await other.wait_idle()
    assert len(posts(one)) == len(posts(other)) == 5


def test_nothing_is_kept_once_the_conversation_has_ended() -> None:
    with kept_results(10, packaged, None) as kept:
        assert kept.cut("read", "z" * 10) == ("z" * 10, "")
    assert "it came too late" in str(kept.cut("read", "z" * 11)[0])
    assert kept.folder is None


async def test_a_profile_that_was_not_offered_cannot_be_started(autojump_clock: MockClock) -> None:
    wanted = [("call_subordinate", {"profile": name, "message": "help"}) for name in ("secret", "helper")]
    role, model = agent(calls(*wanted), answer("ok"), profiles={"helper": ""})
    recorded = await run(role, profiles={"helper": lambda: Echo("x"), "secret": lambda: Echo("x")})
    assert "[call_subordinate failed: there is no profile 'secret'; there are: helper]" in seen(model)
    assert not any("Agent-secret" in line for line in recorded)
    assert "From: Agent-helper\nhelp" in seen(model)


async def test_a_failure_of_another_role_is_told_once(autojump_clock: MockClock) -> None:
    role, model = agent(
        calls(
            ("call_subordinate", {"profile": "broken", "message": "help"}),
            ("call_subordinate", {"profile": "broken", "message": ""}),
        ),
        answer("ok"),
        profiles={"broken": ""},
    )
    await run(role, profiles={"broken": lambda: Agent(ScriptedModel({}))})
    assert seen(model).count("Agent-broken failed") == 1
    assert "[call_subordinate failed: message must not be blank]" in seen(model)


async def test_a_model_reads_no_file_but_those_that_were_kept(autojump_clock: MockClock) -> None:
    role, model = agent(calls(("read_result", {"name": "/etc/hostname"})), answer("ok"))
    await run(role)
    assert "[read_result failed: ValueError: no result is kept under that name; there are: none]" in seen(model)


async def test_what_a_thread_brings_late_is_cut_too() -> None:
    began, arrived = threading.Event(), threading.Event()

    def fetch() -> str:
        began.set()
        arrived.wait(5)
        return "z" * 99

    role, _ = agent(calls(("fetch", {})), answer("Not yet."), tools=[fetch], most_result=50)
    async with open_conversation(role, options=ConversationOptions(ladder=0)) as conversation:
        events = conversation.events()
        started = conversation.communicate("go")
        await trio.to_thread.run_sync(began.wait, 5)
        conversation.intervene("now")
        await started.reply()
        arrived.set()
        with trio.fail_after(5):
            late = await _late(events)
    assert "z" * 51 not in late and "[49 characters left out]" in late


async def _late(events: AsyncIterator[Event]) -> str:
    async for event in events:
        if isinstance(event, PostRecorded) and event.post.marks.state == "late":
            return str(event.post.attachment_list[0])
    raise AssertionError("nothing came late")
