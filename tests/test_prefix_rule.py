"""The prefix rule, in conversations that work and are interrupted: what a model is sent extends what it was sent."""

import json
from collections.abc import Iterator
from itertools import groupby, pairwise
from random import Random

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from callboard.actors import Planner, Role
from callboard.runtime.actor import Actor
from callboard.runtime.chat_model import ChatRequest
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.limits import Limits
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.scripted_model import Reply, ScriptedModel
from callboard.runtime.testing import Watch, every_interrupt_point
from callboard.runtime.testing import interrupt as injected
from callboard.runtime.tool import Tool
from tests.roles import template

from .composing import continues, extends

OPTIONS = ConversationOptions(limits=Limits())


async def look_up(word: str) -> str:
    """Looks a word up."""
    await trio.sleep(0.3)
    return f"{word} is old"


LOOK_UP = Tool(look_up)


class Worker(Role):
    """Thinks twice, notes what it found in between, and calls a tool."""

    name = "Worker"
    template = "You are {{name}}."

    async def receive(self, post: Post, context: TurnContext) -> Post:
        context.record(await self.think(context, await self.messages(post, context)))
        await context.call(LOOK_UP, {"word": "tea"})
        return post.reply(await self.think(context, await self.messages(post, context)))


def scripted(seed: int) -> ScriptedModel:
    """A model that has the Planner ask either worker, or itself further down, or answer, as the seed will have it."""
    random = Random(seed)

    def plan(request: ChatRequest) -> Reply:
        step = random.random()
        inner = ["Inner"] if request.role == "Planner" else []
        names = ["Worker", "Helper"] if request.role == "Planner" else ["Clerk"]
        asker = "User" if request.role == "Planner" else "Planner"
        send_to = asker if step < 0.4 else random.choice([*names, *inner])
        members = {"plan": f"{len(request.messages)}. go on", "send_to": send_to, "message": f"say {step}"}
        stop = {"plan_reasoning": "so", "init_plan": "1", "current_plan_step": "1", "stop": "InProcess"}
        return Reply(json.dumps({"response": {**stop, **members}}), pieces=4, delay=0.1)

    def work(request: ChatRequest) -> Reply:
        return Reply(f"found {len(request.messages)}", pieces=3, delay=0.1)

    workers = {name: [work] * 400 for name in ("Worker", "Helper", "Clerk")}
    return ScriptedModel({"Planner": [plan] * 400, "Inner": [plan] * 400, **workers})


async def converse(model: ScriptedModel, said: list[tuple[float, int]], alternate: bool) -> list[list[ChatRequest]]:
    """The calls of each of two rounds in which the user speaks after so many seconds, at such a level; 0 nudges."""
    inner = Planner(model, name="Inner", subordinates=[Worker(model, name="Clerk")])
    root = Planner(model, subordinates=[Worker(model), Worker(model, name="Helper"), inner])
    for role in (root, inner, *root.subordinates, *inner.subordinates):
        role.alternate = alternate  # type: ignore[attr-defined]  # all of them are Roles
    ends = [0]
    async with open_conversation(root, options=OPTIONS) as conversation, trio.open_nursery() as nursery:
        nursery.start_soon(interrupt, conversation, said)
        for question in ("first", "second"):
            await conversation.send(question)
            ends.append(len(model.requests))
        nursery.cancel_scope.cancel()
    return [list(model.requests[start:end]) for start, end in pairwise(ends)]


async def interrupt(conversation: Conversation, said: list[tuple[float, int]]) -> None:
    """Speaks, or nudges."""
    for number, (seconds, level) in enumerate(said):
        await trio.sleep(seconds)
        if level:
            conversation.intervene(f"words {number}", broadcast_level=level)
        else:
            conversation.nudge()


def by_role(requests: list[ChatRequest]) -> Iterator[list[ChatRequest]]:
    """The calls of each role, in their order."""
    ordered = sorted(requests, key=lambda request: request.role)
    return (list(calls) for _, calls in groupby(ordered, key=lambda request: request.role))


SAID = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.7]), st.sampled_from([0, 1, 2, -1])), max_size=6)


def check(alternate: bool, seed: int, said: list[tuple[float, int]]) -> None:
    """Holds a conversation to the rule."""
    clock = MockClock(autojump_threshold=0)
    rounds = trio.run(converse, scripted(seed), said, alternate, clock=clock)
    extended = continues if alternate else extends
    for requests in rounds:
        if alternate:
            assert all(one.role != after.role for call in requests for one, after in pairwise(call.messages))
        for calls in by_role(requests):
            assert all(extended(later.messages, earlier.messages) for earlier, later in pairwise(calls))
    for calls in by_role([request for requests in rounds for request in requests]):
        assert len({request.messages[0] for request in calls}) == 1


quick = settings(max_examples=12, deadline=None, derandomize=True, database=None)
CASES = given(st.booleans(), st.integers(0, 999), SAID)


@quick
@CASES
def test_within_a_round_each_call_extends_the_one_before_whatever_interrupts(
    alternate: bool, seed: int, said: list[tuple[float, int]]
) -> None:
    check(alternate, seed, said)


@pytest.mark.slow
@settings(max_examples=400)
@CASES
def test_the_prefix_rule_holds_in_many_conversations(alternate: bool, seed: int, said: list[tuple[float, int]]) -> None:
    check(alternate, seed, said)


async def interrupted(watch: Watch) -> None:
    """One round, which the watch interrupts."""
    model = scripted(1)
    root = Planner(model, subordinates=[Worker(model), Worker(model, name="Helper")])
    async with open_conversation(root, options=OPTIONS) as conversation:
        await watch(conversation).send("q")
    for calls in by_role(list(model.requests)):
        assert all(extends(later.messages, earlier.messages) for earlier, later in pairwise(calls))


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 2])
def test_the_prefix_rule_holds_at_every_moment_of_an_interruption(level: int) -> None:
    outcomes = every_interrupt_point(interrupted, injected(level, times=2), seeds=range(3)).outcomes
    assert outcomes["seen"]


async def test_the_words_stand_behind_the_outcome_of_every_call_before_them(autojump_clock: MockClock) -> None:
    model = ScriptedModel({"Both": ["a", "b"]})
    async with open_conversation(Both(model)) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1.5)
        conversation.intervene("Only tea.", broadcast_level=2)
        await started.reply()
    texts = [message.content for message in model.requests[-1].messages]
    assert texts[-1] == '{"user_intervention": "Only tea."}'
    before = "\n".join(texts[:-1])
    assert before.count("[One was interrupted here]") == before.count("[Two was interrupted here]") == 1
    assert before.count("[stay was interrupted]") == 1


class Slow(Actor):
    """Writes a word a second."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def receive(self, post: Post, context: TurnContext) -> Post:
        for number in range(10):
            context.draft.write(f"{number} ")
            await trio.sleep(1)
        return post.reply(context.draft.take())


class Both(Role):
    """Asks two roles and a tool at once, then thinks."""

    name = "Both"
    subordinates = (Slow("One"), Slow("Two"))

    async def receive(self, post: Post, context: TurnContext) -> Post:
        if not context.user_words:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(context.ask, "One", "go")
                nursery.start_soon(context.ask, "Two", "go")
                nursery.start_soon(context.call, Tool(stay), {})
        return post.reply(await self.think(context, await self.messages(post, context)))


async def stay() -> None:
    """Stays."""
    await trio.sleep(10)


class Hirer(Role):
    """Starts a subordinate before its second call."""

    name = "Hirer"
    template = "Yours: {{subordinates}}"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        if post.message == "hire":
            await context.start_subordinate(Slow("One"))
        return post.reply(await self.think(context, await self.messages(post, context)))


async def test_the_system_message_stays_when_a_subordinate_is_started_on_the_way(autojump_clock: MockClock) -> None:
    model = ScriptedModel({"Hirer": ["a", "b"]})
    async with open_conversation(Hirer(model)) as conversation:
        await conversation.send("wait")
        await conversation.send("hire")
    first, second = ([message.content for message in request.messages] for request in model.requests)
    assert first[0] == second[0] == "Yours: none"
    assert second[-2:] == [
        template("fw.further_subordinates").replace("{{subordinates}}", "- One"),
        '{"user_message": "hire"}',
    ]


class Enlarged(Planner):
    """Has a subordinate more from its first step on."""

    async def receive(self, post: Post, context: TurnContext) -> Post:
        await context.start_subordinate(Slow("One"))
        return await super().receive(post, context)


async def test_a_planner_is_told_of_a_subordinate_that_was_started_on_the_way(autojump_clock: MockClock) -> None:
    members = {"plan_reasoning": "so", "init_plan": "1", "plan": "1", "current_plan_step": "1", "stop": "Completed"}
    answer = json.dumps({"response": {**members, "send_to": "User", "message": "Done."}})
    model = ScriptedModel({"Planner": [answer]})
    async with open_conversation(Enlarged(model)) as conversation:
        await conversation.send("q")
    system, *rest = (message.content for message in model.requests[0].messages)
    assert "- One" not in system
    assert "- One" in rest[0]
