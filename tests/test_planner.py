"""Planner: asks its subordinates what its model says, answers its asker, and goes on after interruptions."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from pydantic import BaseModel
from trio.testing import MockClock

from callboard.actors import Echo, Planner
from callboard.actors.planner import PlannerReply
from callboard.prompts.reply_format import reply_schema
from callboard.runtime.actor import Actor
from callboard.runtime.chat_model import ChatRequest
from callboard.runtime.context import LiveContext, TurnContext
from callboard.runtime.errors import CallboardError, RoleFailed
from callboard.runtime.memory import get_shared_memory_entries
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.scripted_model import Reply, ScriptedModel, Step
from callboard.runtime.shared_memory import SharedMemoryEntry
from callboard.runtime.testing import Inject, every_interrupt_point, interrupt
from tests.roles import template

from .scenarios import scenario
from .test_role import LastMoment, lines, posts, said


def to(name: str, message: str, plan: str = "") -> str:
    """A planner's reply."""
    return said(**({"plan": plan} if plan else {}), send_to=name, message=message)


class Broken(Actor):
    """Fails."""

    name = "Broken"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        raise OSError("the disk is full")


class Silent(Actor):
    """Gives no answer."""

    name = "Silent"

    async def receive(self, post: Post, context: TurnContext) -> None:
        return None


class Dead(Actor):
    """Cannot be opened."""

    name = "Dead"

    @asynccontextmanager
    async def live(self, context: LiveContext) -> AsyncIterator[None]:
        raise OSError("no kernel")
        yield

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply()


class Teller(Actor):
    """Tells Caller, and gives it the time to ask."""

    name = "Teller"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        await context.tell("Caller")
        await trio.testing.wait_all_tasks_blocked()
        return post.reply()


class Caller(Actor):
    """Asks Planner."""

    name = "Caller"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply((await context.ask("Planner")).message)


class Temp(Actor):
    """Has itself ended in the middle of its work."""

    name = "Temp"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        await context.tell("Desk")
        await trio.sleep_forever()
        return post.reply()


class Desk(Actor):
    """Hands its work on to Temp, and ends Temp when told to."""

    name = "Desk"

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        if post.send_from == "Temp":
            await context.end_subordinate("Temp")
            return None
        return post.forward(to=await context.start_subordinate(Temp()))


def shown(request: ChatRequest) -> str:
    """All that a model is sent but the system message."""
    return "\n".join(message.content for message in request.messages[1:])


def answering(*steps: Step) -> ScriptedModel:
    """A model for a Planner."""
    return ScriptedModel({"Planner": steps})


async def test_it_asks_and_answers_and_each_reply_is_one_post() -> None:
    with answering(to("Echo", "say it", plan="1. ask"), to("User", "It says it.", plan="done")) as model:
        async with open_conversation(Planner(model, subordinates=[Echo()])) as conversation:
            assert (await conversation.send("What does it say?")).message == "It says it."
    assert lines(conversation) == [
        "User>Planner message: What does it say?",
        "Planner>Planner note [SHARED_MEMORY_ENTRY: ]: ",
        "Planner>Echo message [PLAN: 1. ask]: say it",
        "Echo>Planner reply: say it",
        "Planner>User reply [PLAN: done]: It says it.",
    ]


class Reader(Actor):
    """Answers with the plans that are shared."""

    name = "Reader"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        entries = await get_shared_memory_entries(context, "plan")
        return post.reply(" | ".join(entry.content for entry in entries))


async def test_its_subordinates_read_the_plan_that_is_followed_now() -> None:
    steps = [to("Reader", "now", "1. ask"), to("Reader", "still", "1. ask"), to("Reader", "then", "2. ask again")]
    with answering(*steps, to("User", "x", "done")) as model:
        async with open_conversation(Planner(model, subordinates=[Reader()])) as conversation:
            await conversation.send("q")
    answers = [post.message for post in posts(conversation) if post.send_from == "Reader"]
    assert answers == ["1. ask", "1. ask", "2. ask again"]
    notes = [post for post in posts(conversation) if post.get_attachment("shared_memory_entry")]
    assert len(notes) == 2
    entries = [one.extra for post in notes for one in post.attachment_list]
    assert [entry.scope for entry in entries if isinstance(entry, SharedMemoryEntry)] == ["round", "round"]


async def test_after_an_intervention_the_model_is_told_that_the_plan_is_cancelled_and_a_new_one_is_shared(
    autojump_clock: MockClock,
) -> None:
    first = Reply(to("Reader", "now", "1. ask"), delay=1)
    with answering(
        first, Reply(to("Reader", "x" * 8), delay=1), to("Reader", "then", "1. leave"), to("User", "x")
    ) as model:
        async with open_conversation(Planner(model, subordinates=[Reader()])) as conversation:
            started = conversation.communicate("q")
            await trio.sleep(3.5)
            conversation.intervene("Leave it.")
            await started.reply()
    assert template("fw.plan_cancelled") in model.requests[2].messages[-1].content
    assert [post.message for post in posts(conversation) if post.send_from == "Reader"] == ["1. ask", "1. leave"]


async def test_what_the_model_is_sent_alternates() -> None:
    with answering(to("Echo", "say it", plan="1. ask"), to("User", "It says it.")) as model:
        async with open_conversation(Planner(model, subordinates=[Echo()])) as conversation:
            await conversation.send("What does it say?")
    assert [message.role for message in model.requests[1].messages] == ["system", "user", "assistant", "user"]
    assert json.loads(model.requests[1].messages[2].content) == json.loads(to("Echo", "say it", plan="1. ask"))


async def test_its_model_is_told_whom_it_may_address() -> None:
    with answering(to("User", "x")) as model:
        async with open_conversation(Planner(model, subordinates=[Echo()])) as conversation:
            await conversation.send("q")
    system = model.requests[0].messages[0].content
    assert "You are Planner." in system and "another role gives you a task" in system and "- Echo: Answers" in system


async def test_it_answers_the_planner_that_asked_it() -> None:
    scripts = {"Planner": [to("inner", "do"), to("User", "done")], "inner": [to("Planner", "did")]}
    with ScriptedModel(scripts) as model:
        inner = Planner(model, name="inner")
        async with open_conversation(Planner(model, subordinates=[inner])) as conversation:
            assert (await conversation.send("q")).message == "done"
    assert "inner>Planner reply: did" in lines(conversation)


@pytest.mark.parametrize("name", ["Nobody", "Planner", "echo", ""])
async def test_somebody_who_may_not_be_addressed_is_put_back_to_the_model_with_those_who_may(name: str) -> None:
    with answering(to(name, "do", plan="1. ask"), to("User", "x")) as model:
        async with open_conversation(Planner(model, subordinates=[Echo()])) as conversation:
            await conversation.send("q")
    assert lines(conversation)[1].startswith("Planner>Planner note [INVALID_RESPONSE: ")
    told = f"send_to is '{name}', and must be one of Echo, User" if name else "send_to: must not be blank"
    assert told in model.requests[1].messages[-1].content
    assert lines(conversation)[2] == "Planner>User reply: x"


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("Hello.", "there is no JSON object"),
        (said(message="x"), "missing in 'response': send_to"),
        (said(send_to="User", message="x", stop="Done"), "stop: Input should be 'InProcess', 'Completed'"),
    ],
)
async def test_a_malformed_reply_is_put_back_to_the_model(reply: str, fault: str) -> None:
    with answering(reply, to("User", "x")) as model:
        async with open_conversation(Planner(model)) as conversation:
            await conversation.send("q")
    assert fault in model.requests[1].messages[-1].content


async def test_its_model_is_given_a_schema_with_all_members_and_the_names_in_order() -> None:
    with answering(to("User", "x")) as model:
        async with open_conversation(Planner(model, subordinates=[Echo("b"), Echo("a")])) as conversation:
            await conversation.send("q")
    assert model.requests[0].schema == reply_schema(PlannerReply, ("b", "a", "User"))


async def test_a_request_that_gets_the_same_answer_again_is_not_made_a_third_time() -> None:
    steps = [to("Echo", "again")] * 3
    with answering(*steps, to("User", "It says again.")) as model:
        async with open_conversation(Planner(model, subordinates=[Echo()])) as conversation:
            await conversation.send("q")
    assert [line for line in lines(conversation) if line.startswith("Echo")] == ["Echo>Planner reply: again"] * 2
    assert template("fw.msg_repeat") in model.requests[3].messages[-1].content


async def test_what_the_user_says_makes_the_same_reply_a_new_one(autojump_clock: MockClock) -> None:
    again = Reply(to("Echo", "again"), delay=1)
    with answering(again, again, again, again, to("User", "x")) as model:
        async with open_conversation(Planner(model, subordinates=[Echo()])) as conversation:
            started = conversation.communicate("q")
            await trio.sleep(7)
            conversation.intervene("Once more.")
            await started.reply()
    assert lines(conversation).count("Echo>Planner reply: again") == 3


class Report(BaseModel):
    """What is asked for."""

    pages: int


async def test_a_typed_answer_is_the_message_of_its_reply() -> None:
    with answering(to("User", "three"), to("User", '{"pages": 3}')) as model:
        async with open_conversation(Planner(model)) as conversation:
            assert await conversation.send("How many?", returns=Report) == Report(pages=3)
    assert "This was no valid answer" in model.requests[1].messages[-1].content


async def test_a_subordinate_that_fails_is_the_models_to_deal_with() -> None:
    with answering(to("Broken", "save"), to("User", "It cannot be saved.")) as model:
        async with open_conversation(Planner(model, subordinates=[Broken()])) as conversation:
            assert (await conversation.send("Save.")).message == "It cannot be saved."
    assert lines(conversation)[1:3] == [
        "Planner>Broken message: save",
        "Broken>Planner error: Broken failed: OSError: the disk is full",
    ]
    assert shown(model.requests[1]).count("the disk is full") == 1


async def test_a_subordinate_that_gives_no_answer_is_too() -> None:
    with answering(to("Silent", "speak"), to("User", "It is silent.")) as model:
        async with open_conversation(Planner(model, subordinates=[Silent()])) as conversation:
            assert (await conversation.send("q")).message == "It is silent."
    assert "returned None" in shown(model.requests[1])


async def test_a_request_that_is_refused_is_kept_with_the_reason() -> None:
    steps = [to("Dead", "wake up", plan=f"{number}. ask") for number in range(5)]
    with answering(*steps, to("User", "It is dead.")) as model:
        async with open_conversation(Planner(model, subordinates=[Dead()])) as conversation:
            await conversation.send("q")
    assert lines(conversation)[-2] == (
        "Planner>Planner note [PLAN: 4. ask] [REVISE_MESSAGE: Dead failed: OSError: no kernel]: wake up"
    )
    assert "no kernel" in model.requests[-1].messages[-1].content


async def test_a_circle_is_the_models_to_deal_with() -> None:
    steps = [to("Teller", "go"), to("Caller", "do"), to("User", "It waits for me.")]
    with answering(*steps, to("Caller", "later")) as model:
        async with open_conversation(Planner(model, subordinates=[Teller(), Caller()])) as conversation:
            assert (await conversation.send("q")).message == "It waits for me."
            await conversation.wait_idle()
    assert "no answer could ever come" in model.requests[2].messages[-1].content


async def test_a_request_that_is_called_off_is_the_models_to_deal_with() -> None:
    with answering(to("Desk", "do"), to("User", "It is gone.")) as model:
        async with open_conversation(Planner(model, subordinates=[Desk()])) as conversation:
            assert (await conversation.send("q")).message == "It is gone."
    assert "the request to Temp" in model.requests[1].messages[-1].content


async def test_it_gives_up_after_so_many_steps() -> None:
    model = answering(*[to("Echo", f"again {number}") for number in range(3)])
    async with open_conversation(Planner(model, subordinates=[Echo()], most_steps=3)) as conversation:
        with pytest.raises(RoleFailed, match="no answer after 3 steps of Planner; allow more") as failed:
            await conversation.send("q")
    assert isinstance(failed.value.__cause__, CallboardError)


async def test_after_an_interruption_nothing_is_asked_again_that_was_answered(autojump_clock: MockClock) -> None:
    cut = Reply(to("Echo", "two", plan="2. ask again"), delay=1)
    steps: list[Step] = [to("Echo", "one"), cut, to("User", "one, then your words")]
    with answering(*steps) as model:
        async with open_conversation(Planner(model, subordinates=[Echo()])) as conversation:
            started = conversation.communicate("q")
            await trio.sleep(2.5)
            conversation.intervene("That will do.")
            await started.reply()
    assert [post.message for post in posts(conversation) if post.send_to == "Echo"] == ["one"]
    assert [line for line in lines(conversation) if " note " in line] == [
        "Planner>Planner note partial [PLAN: 2. ask again]: "
    ]
    assert shown(model.requests[2]).index("From: Echo") < shown(model.requests[2]).index("That will do.")


async def test_a_request_that_is_cut_before_it_is_made_is_kept() -> None:
    model = LastMoment({"Planner": [to("Echo", "one", plan="1. ask"), to("User", "stopped")]})
    async with open_conversation(Planner(model, subordinates=[Echo()])) as conversation:
        model.speak = lambda: conversation.intervene("Stop.")
        await conversation.send("q")
    assert lines(conversation)[1] == "Planner>Planner note partial [PLAN: 1. ask]: one"


async def test_one_planner_serves_two_conversations(autojump_clock: MockClock) -> None:
    def step(request: ChatRequest) -> Reply:
        asked = "left" if "left" in shown(request) else "right"
        return Reply(to("User", asked) if "From: Echo" in shown(request) else to("Echo", asked), delay=1)

    answers: dict[str, str] = {}
    planner = Planner(answering(*[step] * 4), subordinates=[Echo()])

    async def talk(question: str) -> None:
        async with open_conversation(planner) as conversation:
            answers[question] = (await conversation.send(question)).message
            assert len(posts(conversation)) == 4

    async with trio.open_nursery() as nursery:
        nursery.start_soon(talk, "left")
        nursery.start_soon(talk, "right")
    assert answers == {"left": "left", "right": "right"}


@pytest.mark.parametrize(
    "inject",
    [
        pytest.param(interrupt(1), id="1", marks=pytest.mark.slow),
        pytest.param(interrupt(2), id="2", marks=pytest.mark.slow),
        pytest.param(interrupt(1, times=2), id="two"),
    ],
)
def test_a_planner_of_planners_survives_every_interruption(inject: Inject) -> None:
    def step(request: ChatRequest) -> str:
        last = request.messages[-1].content
        below, asker = ("inner", "User") if request.role == "Planner" else ("Echo", "Planner")
        is_answered = f"From: {below}" in last and "interrupted" not in last and "user_intervention" not in last
        return to(asker, "done") if is_answered else to(below, "do")

    def planner() -> Planner:
        model = ScriptedModel({"Planner": [step] * 20, "inner": [step] * 20})
        return Planner(model, subordinates=[Planner(model, name="inner", subordinates=[Echo()])])

    assert every_interrupt_point(scenario(planner), inject).outcomes["seen"] > 20
