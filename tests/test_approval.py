"""Approval: a person is asked before a call is made, and sees when the question is withdrawn."""

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from callboard.actors import Agent, Questions
from callboard.actors.agent_reply import ToolCall
from callboard.actors.approval import approval_asked
from callboard.runtime.attachment import Attachment
from callboard.runtime.errors import RoundStopped
from callboard.runtime.limits import Limits
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.scripted_model import ScriptedModel
from callboard.runtime.testing import Inject, Watch, every_interrupt_point, interrupt

from .test_agent import answer, calls, seen
from .test_role import posts

deleted: list[str] = []


async def delete(path: str) -> str:
    """Deletes a file."""
    deleted.append(path)
    return f"{path} is gone"


async def look(path: str) -> str:
    """Looks at a file."""
    return f"{path} is there"


def careful(*script: Any) -> tuple[Agent, ScriptedModel]:
    """An agent that asks before it deletes, and its model."""
    deleted.clear()
    model = ScriptedModel({"Agent": list(script)})
    return Agent(model, [delete, look], needs_approval=["delete"]), model


def saying(*answers: str) -> Callable[[Post], Awaitable[str]]:
    """A person who says this, one after the other."""
    left = list(answers)

    async def say(question: Post) -> str:
        await trio.sleep(1)
        return left.pop(0)

    return say


WANTED = calls(("delete", {"path": "a  b"}))


@pytest.mark.parametrize(
    ("answers", "done"),
    [
        (["yes"], ["a  b"]),
        ([" OK. "], ["a  b"]),
        (["no"], []),
        (["yes, but only on Monday"], []),
        (["What is it?"], []),
        ([""], []),
        (['edit {"path": "c  d"}'], ["c  d"]),
        (["edit c", 'Edit:\n{"path": "c"}'], ["c"]),
        (['edit {"file": "c"}', "no"], []),
        (["edit [1]", "edit", "edit " + "[" * 100_000], []),
    ],
)
async def test_a_call_is_made_as_the_person_says(
    answers: list[str], done: list[str], autojump_clock: MockClock
) -> None:
    role, model = careful(WANTED, answer("ok"))
    options = ConversationOptions(on_question=saying(*answers))
    async with open_conversation(role, options=options) as conversation:
        await conversation.send("go")
    assert deleted == done
    assert ("[delete was not called: it was not approved" in seen(model)) == (not done)
    assert not done or f"[delete returned:]\n{done[0]} is gone" in seen(model)


async def test_the_words_of_a_no_are_for_the_model(autojump_clock: MockClock) -> None:
    role, model = careful(WANTED, answer("ok"))
    async with open_conversation(
        role, options=ConversationOptions(on_question=saying("No, I need it."))
    ) as conversation:
        await conversation.send("go")
    assert "No, I need it." in seen(model)


async def test_where_nobody_can_be_asked_nothing_is_done(autojump_clock: MockClock) -> None:
    role, model = careful(WANTED, answer("ok"))
    async with open_conversation(role) as conversation:
        await conversation.send("go")
    assert not deleted
    assert "it needs an approval, and Agent has nobody to ask" in seen(model)


async def test_a_call_that_would_fail_anyway_is_not_asked_about(autojump_clock: MockClock) -> None:
    role, model = careful(calls(("delete", {"file": "a"})), answer("ok"))
    async with open_conversation(role, options=ConversationOptions(on_question=saying())) as conversation:
        await conversation.send("go")
    assert "[delete failed: ValueError: path: Field required" in seen(model)


async def test_the_person_is_shown_what_is_called_and_no_hidden_signs(autojump_clock: MockClock) -> None:
    asked: list[Post] = []

    async def note(question: Post) -> str:
        asked.append(question)
        return "no"

    role, _ = careful(calls(("delete", {"path": "gut\u202efdp.ü"})), answer("ok"))
    async with open_conversation(role, options=ConversationOptions(on_question=note)) as conversation:
        await conversation.send("go")
    assert 'Agent wants to call delete with {"path": "gut\\u202efdp.ü"}' in asked[0].message
    assert approval_asked(asked[0]) == ToolCall("delete", {"path": "gut\u202efdp.ü"})
    assert approval_asked(Post.create("Which year?", "Agent", "User")) is None


async def test_other_calls_of_the_reply_do_not_wait_for_the_person(autojump_clock: MockClock) -> None:
    questions = Questions()
    role, _ = careful(calls(("delete", {"path": "a"}), ("look", {"path": "b"})), answer("ok"))
    async with open_conversation(role, options=ConversationOptions(on_question=questions)) as conversation:
        started = conversation.communicate("go")
        question = await anext(questions)
        await trio.testing.wait_all_tasks_blocked()
        assert any("b is there" in str(one) for post in posts(conversation) for one in post.attachment_list)
        assert question.answer("yes")
        await started.reply()
    assert deleted == ["a"]


@pytest.mark.parametrize("how", ["interrupted", "stopped"])
async def test_an_approval_that_still_waits_is_withdrawn_and_the_person_sees_that(
    how: str, autojump_clock: MockClock
) -> None:
    questions = Questions()
    role, model = careful(WANTED, answer("I leave it."))
    async with open_conversation(role, options=ConversationOptions(on_question=questions)) as conversation:
        started = conversation.communicate("go")
        question = await anext(questions)
        assert questions.open == (question,)
        if how == "interrupted":
            conversation.intervene("Leave it.")
            assert (await started.reply()).message == "I leave it."
            assert "Leave it." in seen(model)
        else:
            conversation.stop("enough")
            with suppress(RoundStopped):
                await started.reply()
        assert await question.wait_settled() == "withdrawn"
        assert not question.answer("yes")
        assert not questions.open
        (asked,) = [post for post in posts(conversation) if post.marks.kind == "question"]
        (left,) = [post for post in posts(conversation) if post.marks.in_reply_to == asked.id]
        assert (left.send_from, left.marks.state) == ("User", "not_started")
    assert not deleted


async def test_a_sub_agent_asks_through_those_above_it(autojump_clock: MockClock) -> None:
    deleted.clear()
    helped = {"Agent-helper": [WANTED, answer("deleted")]}
    ask = calls(("call_subordinate", {"profile": "helper", "message": "delete it"}))
    model = ScriptedModel({"Agent": [ask, answer("ok")], **helped})
    profiles = {"helper": lambda: Agent(model, [delete], needs_approval=["delete"])}
    options = ConversationOptions(on_question=saying("yes"), profiles=profiles)
    async with open_conversation(Agent(model, profiles={"helper": ""}), options=options) as conversation:
        assert (await conversation.send("go")).message == "ok"
    assert deleted == ["a  b"]


async def asking(watch: Watch) -> None:
    """One round in which a person approves; each approval leads to one call at most."""
    deleted.clear()
    asked: list[str] = []

    async def say(question: Post) -> str:
        asked.append(question.message)
        await trio.sleep(0.1)
        return "yes"

    def step(request: Any) -> str:
        done = any("a is gone" in message.content for message in request.messages)
        return answer("gone") if done else calls(("delete", {"path": "a"}))

    model = ScriptedModel({"Agent": [step] * 20})
    options = ConversationOptions(on_question=say, limits=Limits())
    async with open_conversation(Agent(model, [delete], needs_approval=["delete"]), options=options) as conversation:
        assert (await watch(conversation).send("go")).message == "gone"
    assert len(deleted) == 1 <= len(asked)


def test_no_moment_of_an_interruption_makes_a_call_without_approval_or_twice() -> None:
    assert every_interrupt_point(asking, sample=10).outcomes["seen"]


@pytest.mark.slow
@pytest.mark.parametrize("inject", [interrupt(1), interrupt(1, times=2)], ids=["once", "twice"])
def test_that_holds_at_every_moment(inject: Inject) -> None:
    assert every_interrupt_point(asking, inject, seeds=range(3)).outcomes["seen"]


def test_a_call_to_approve_is_told_from_what_is_none() -> None:
    for content in ("", "[1]", '{"approve": 1, "arguments": {}}', json.dumps({"tool": "x", "arguments": {}})):
        post = Post.create("", "Agent", "User", [Attachment.create("function", content)])
        assert approval_asked(post) is None
