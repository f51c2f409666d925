"""Roles: a model call streams into the draft, is counted, and is kept whatever becomes of it."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import Context

import pytest
import trio
from trio.testing import MockClock

from callboard.actors import Echo, Role
from callboard.prompts.reply_format import ReplyError
from callboard.runtime.chat_model import ChatRequest, Delta, RetryingDelta
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import ModelError, RoleFailed
from callboard.runtime.event import DraftGrew, ModelCalled, ModelRetried
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.scripted_model import Reply, ScriptedModel


def said(**members: str) -> str:
    """A model's reply with these members."""
    return json.dumps({"response": members})


def posts(conversation: Conversation) -> list[Post]:
    """All that is recorded, in order."""
    return [post for round_ in conversation.transcript().rounds for post in round_.post_list]


def lines(conversation: Conversation) -> list[str]:
    """What is recorded, a line a post: way, kind, state if it is not whole, attachments, message."""
    return [line(post) for post in posts(conversation)]


def line(post: Post) -> str:
    """One post as a line."""
    state = "" if post.marks.state == "whole" else f" {post.marks.state}"
    held = "".join(f" [{one}]" for one in post.attachment_list)
    return f"{post.send_from}>{post.send_to} {post.marks.kind}{state}{held}: {post.message}"


class Writer(Role):
    """Writes in plain words.

    At length.
    """

    name = "Writer"
    template = "You are {{name}}, and write for {{asker}}."

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply(await self.think(context, await self.messages(post, context)))


class Former(Role):
    """Writes in the reply format."""

    name = "Former"
    template = "Help: {{subordinates}}"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        reply = await self.reply(post, context)
        return post.reply(reply.message, reply.attachments)


class LastMoment(ScriptedModel):
    """Lets the user speak in the very step in which the first reply is there."""

    speak: Callable[[], object]

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Delta]]:
        async with super().stream(request) as deltas:
            yield deltas
        if len(self.requests) == 1:
            Context().run(self.speak)  # as from outside the turn


async def test_a_model_is_sent_the_template_and_the_rounds() -> None:
    with ScriptedModel({"Writer": ["Hello."]}) as model:
        async with open_conversation(Writer(model)) as conversation:
            assert (await conversation.send("Greet.")).message == "Hello."
    (request,) = model.requests
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[0].content == "You are Writer, and write for User."
    assert "Greet." in request.messages[1].content


async def test_the_next_round_is_sent_what_was_said_in_the_last() -> None:
    with ScriptedModel({"Writer": ["Hello.", "Bye."]}) as model:
        async with open_conversation(Writer(model)) as conversation:
            await conversation.send("Greet.")
            await conversation.send("Leave.")
    assert [message.role for message in model.requests[1].messages] == ["system", "user", "assistant", "user"]
    assert "Hello." in model.requests[1].messages[2].content


async def test_a_reply_grows_in_the_draft_and_its_tokens_are_counted() -> None:
    model = ScriptedModel({"Writer": [Reply("Hello.", pieces=2, reasoning="hm", usage=(7, 3))]})
    async with open_conversation(Writer(model)) as conversation:
        events = conversation.events()
        await conversation.send("Greet.")
    seen = [event async for event in events if isinstance(event, DraftGrew | ModelCalled)]
    assert [event.text for event in seen if isinstance(event, DraftGrew)] == ["Hel", "lo."]
    called = seen[-1]
    assert isinstance(called, ModelCalled)
    assert (called.role, called.model, called.input_tokens, called.output_tokens) == ("Writer", "scripted", 7, 3)


async def test_a_retry_is_seen_in_events(monkeypatch: pytest.MonkeyPatch) -> None:
    deltas = [RetryingDelta("overloaded", 2.0)]
    monkeypatch.setattr("callboard.runtime.scripted_model._deltas", lambda reply: deltas)
    async with open_conversation(Writer(ScriptedModel({"Writer": ["x"]}))) as conversation:
        events = conversation.events()
        await conversation.send("Greet.")
    assert [event async for event in events if isinstance(event, ModelRetried)] == [
        ModelRetried("Writer", "scripted", "overloaded", 2.0)
    ]


async def test_an_interruption_keeps_what_has_come_and_the_next_call_is_sent_it_and_the_words(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel({"Writer": [Reply("One two.", delay=1, usage=(1, 1)), "Three."]})
    async with open_conversation(Writer(model)) as conversation:
        started = conversation.communicate("Count.")
        await trio.sleep(1.5)
        conversation.intervene("From three.")
        assert (await started.reply()).message == "Three."
    assert lines(conversation) == [
        "User>Writer message: Count.",
        "Writer>Writer note partial: One ",
        "User>Writer intervention: From three.",
        "Writer>User reply: Three.",
    ]
    text = "\n".join(message.content for message in model.requests[1].messages)
    assert text.index("Count.") < text.index("One ") < text.index("From three.")


async def test_a_reply_that_is_whole_when_the_cut_comes_is_kept() -> None:
    model = LastMoment({"Writer": ["All of it.", "More."]})
    async with open_conversation(Writer(model)) as conversation:
        model.speak = lambda: conversation.intervene("Wait.")
        await conversation.send("q")
    assert lines(conversation)[1:] == [
        "Writer>Writer note partial: All of it.",
        "User>Writer intervention: Wait.",
        "Writer>User reply: More.",
    ]


async def test_a_reply_is_parsed() -> None:
    model = ScriptedModel({"Former": [said(thought="easy", message="Hello.")]})
    async with open_conversation(Former(model)) as conversation:
        post = await conversation.send("Greet.")
    assert (post.message, [str(one) for one in post.attachment_list]) == ("Hello.", ["THOUGHT: easy"])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Hello.", "must be a JSON object.*the model said: Hello."),
        (said(thought="hm"), "missing in 'response': message"),
    ],
)
async def test_a_malformed_reply_fails_the_role_and_is_kept(text: str, fault: str) -> None:
    async with open_conversation(Former(ScriptedModel({"Former": [text]}))) as conversation:
        with pytest.raises(RoleFailed, match=fault) as failed:
            await conversation.send("Greet.")
    assert isinstance(failed.value.__cause__, ReplyError)
    assert lines(conversation)[1] == f"Former>Former note [INVALID_RESPONSE: {text}]: "


async def test_what_the_error_shows_of_a_long_reply_is_short() -> None:
    async with open_conversation(Former(ScriptedModel({"Former": ["x" * 5000]}))) as conversation:
        with pytest.raises(RoleFailed, match=r"x… \(4700 characters more\)$"):
            await conversation.send("Greet.")


async def test_a_reply_that_was_cut_off_is_no_answer_and_is_kept() -> None:
    model = ScriptedModel({"Writer": [Reply("half a sen", reason="length")]})
    async with open_conversation(Writer(model)) as conversation:
        with pytest.raises(RoleFailed, match="cut its reply off: length"):
            await conversation.send("q")
    assert lines(conversation)[1] == "Writer>Writer note partial: half a sen"


async def test_a_call_that_fails_fails_the_role() -> None:
    broken = ModelError("overloaded", fault="server", may_retry=True)
    async with open_conversation(Former(ScriptedModel({"Former": [broken]}))) as conversation:
        with pytest.raises(RoleFailed, match="ModelError: overloaded"):
            await conversation.send("Greet.")


async def test_subordinates_are_introduced_by_what_they_say_of_themselves() -> None:
    model = ScriptedModel({"Former": [said(message="x")]})
    async with open_conversation(Former(model, subordinates=[Echo(), Writer(model)])) as conversation:
        await conversation.send("q")
    assert model.requests[0].messages[0].content == (
        "Help: - Echo: Answers with the very message that it is sent.\n- Writer: Writes in plain words."
    )


async def test_a_role_without_subordinates_is_told_so() -> None:
    model = ScriptedModel({"Former": [said(message="x")]})
    async with open_conversation(Former(model)) as conversation:
        await conversation.send("q")
    assert model.requests[0].messages[0].content == "Help: none"


async def test_a_slot_without_a_value_is_an_error() -> None:
    class Odd(Writer):
        template = "{{weather}}"

    async with open_conversation(Odd(ScriptedModel({}))) as conversation:
        with pytest.raises(RoleFailed, match="weather"):
            await conversation.send("q")


def test_an_instance_may_have_a_name_and_subordinates_of_its_own() -> None:
    echo = Echo()
    role = Writer(ScriptedModel({}), name="Second", subordinates=[echo])
    assert (role.name, role.subordinates) == ("Second", (echo,))
    assert (Writer(role.model).name, Writer(role.model).subordinates) == ("Writer", ())
