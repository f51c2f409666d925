"""Roles: a model call streams into the draft, is counted, and is kept whatever becomes of it."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import Context

import pytest
import trio
from trio.testing import MockClock

from callboard.actors import Echo, Role
from callboard.prompts.reply_format import MessageReply, ReplyError, reply_schema
from callboard.runtime.chat_model import ChatRequest, Delta, RetryingDelta, TextDelta
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import ModelError, RoleFailed
from callboard.runtime.event import DraftGrew
from callboard.runtime.limits import Limits
from callboard.runtime.model_event import ModelCalled, ModelRetried
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.scripted_model import Reply, ScriptedModel
from callboard.runtime.streaming import Taken
from callboard.runtime.testing import Watch, every_interrupt_point, interrupt
from tests.roles import template


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


class Breaking(ScriptedModel):
    """Says half of a reply, and then its connection is gone."""

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Delta]]:
        async def deltas() -> AsyncIterator[Delta]:
            yield TextDelta('{"response": {"message": "half of')
            raise ModelError("gone", fault="network", may_retry=True)

        yield deltas()


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
        ("Hello.", "there is no JSON object with the key 'response', at line 1, column 1"),
        (said(thought="hm"), "missing in 'response': message"),
        ('{"response": {"message": "half a sen', "the reply breaks off, at line 1, column 37"),
        ('{"response": {"message": "a\\q"}}', r"there is no escape \q, at line 1, column 28"),
    ],
)
async def test_a_malformed_reply_is_put_back_to_the_model_with_what_is_wrong(text: str, fault: str) -> None:
    with ScriptedModel({"Former": [text, said(message="Hello.")]}) as model:
        async with open_conversation(Former(model)) as conversation:
            assert (await conversation.send("Greet.")).message == "Hello."
    _, note, _ = posts(conversation)
    assert [one.type for one in note.attachment_list] == ["invalid_response", "revise_message"]
    assert (note.message, note.attachment_list[0].content) == ("", text)
    assert fault in str(note.attachment_list[1].content)
    assert fault in model.requests[1].messages[-1].content


async def test_after_three_corrections_the_role_fails_and_says_all_that_is_known() -> None:
    steps = [f"{number} {'x' * 400}" for number in range(4)]
    with ScriptedModel({"Former": steps}) as model:
        async with open_conversation(Former(model)) as conversation:
            with pytest.raises(RoleFailed) as failed:
                await conversation.send("Greet.")
    error = failed.value.__cause__
    assert isinstance(error, ReplyError)
    assert (error.said, error.asked) == (steps[3], 4)
    assert "the key 'response', at line 1, column 1, after it was asked 4 times; the model said: 3 xxx" in str(error)
    assert str(error).endswith("x… (102 characters more)")
    assert [post.attachment_list[0].content for post in posts(conversation)[1:5]] == steps


async def test_the_next_turn_has_corrections_of_its_own() -> None:
    steps = [*(f"{number}" for number in range(3)), said(message="a"), *(f"{number}" for number in range(3))]
    with ScriptedModel({"Former": [*steps, said(message="b")]}) as model:
        async with open_conversation(Former(model)) as conversation:
            assert (await conversation.send("q")).message == "a"
            assert (await conversation.send("q")).message == "b"


async def test_a_new_attempt_of_the_turn_has_not(autojump_clock: MockClock) -> None:
    model = ScriptedModel({"Former": ["1", "2", Reply(said(message="slow"), delay=1), "3", "4"]})
    async with open_conversation(Former(model)) as conversation:
        started = conversation.communicate("q")
        await trio.sleep(1.5)
        conversation.intervene("Hurry.")
        with pytest.raises(RoleFailed, match="asked 4 times; the model said: 4"):
            await started.reply()


async def test_each_correction_is_a_call_that_counts_against_the_limits() -> None:
    model = ScriptedModel({"Former": ["1", "2", "3"]})
    options = ConversationOptions(limits=Limits(model_calls=2))
    async with open_conversation(Former(model), options=options) as conversation:
        with pytest.raises(RoleFailed, match="limit of 2 model calls"):
            await conversation.send("q")
    assert len(model.requests) == 2


async def test_a_role_may_allow_no_correction() -> None:
    class Once(Former):
        most_corrections = 0

    async with open_conversation(Once(ScriptedModel({"Former": ["x"]}))) as conversation:
        with pytest.raises(RoleFailed, match="the model said: x"):
            await conversation.send("q")


async def test_the_same_malformed_reply_again_is_told_to_be_that() -> None:
    with ScriptedModel({"Former": ["x", "x", said(message="y")]}) as model:
        async with open_conversation(Former(model)) as conversation:
            await conversation.send("q")
    repeat = template("fw.msg_repeat")
    told = [str(post.get_attachment("revise_message")[0].content) for post in posts(conversation)[1:3]]
    assert [repeat in one for one in told] == [False, True]
    assert "there is no JSON object" in told[1]


async def test_a_reply_that_is_too_long_for_the_model_is_asked_for_again_shorter() -> None:
    long = said(message="half of a long story")
    with ScriptedModel({"Former": [Reply(long[:-9], reason="length"), said(message="short")]}) as model:
        async with open_conversation(Former(model)) as conversation:
            assert (await conversation.send("q")).message == "short"
    assert lines(conversation)[1].startswith(f"Former>Former note [INVALID_RESPONSE: {long[:-9]}] [REVISE_MESSAGE: ")
    assert "too long, and was cut off; be shorter" in model.requests[1].messages[-1].content


async def test_a_reply_that_was_cut_off_behind_its_end_is_whole() -> None:
    model = ScriptedModel({"Former": [Reply(said(message="whole") + " And so on an", reason="length")]})
    async with open_conversation(Former(model)) as conversation:
        assert (await conversation.send("q")).message == "whole"


async def test_what_is_said_and_thought_around_a_reply_is_passed_over() -> None:
    text = f"<think>{said(message='no')}</think>Sure {{x}}:\n```json\n{said(message='yes')}\n```\nDone."
    with ScriptedModel({"Former": [Reply(text, pieces=30)]}) as model:
        async with open_conversation(Former(model)) as conversation:
            assert (await conversation.send("q")).message == "yes"


async def test_a_reply_grows_in_the_draft_as_its_message_and_attachments() -> None:
    text = said(thought="easy", send_to="User", message="Hel\nlo.")
    async with open_conversation(Former(ScriptedModel({"Former": [Reply(text, pieces=len(text))]}))) as conversation:
        events = conversation.events()
        await conversation.send("q")
    grown: dict[str, str] = {}
    async for event in events:
        if isinstance(event, DraftGrew):
            grown[event.type] = grown.get(event.type, "") + event.text
    assert grown == {"thought": "easy", "message": "Hel\nlo."}


async def test_the_partial_of_an_interrupted_reply_holds_what_it_said_so_far(autojump_clock: MockClock) -> None:
    text = said(thought="to be greeted", message="Hello, everybody.")
    half = text.index("every") * 2
    slow = Reply(text, pieces=len(text), delay=2)
    async with open_conversation(Former(ScriptedModel({"Former": [slow, said(message="Hi.")]}))) as conversation:
        started = conversation.communicate("q")
        await trio.sleep(half - 1)
        conversation.intervene("Short.")
        assert (await started.reply()).message == "Hi."
    assert lines(conversation)[1] == "Former>Former note partial [THOUGHT: to be greeted]: Hello, "


async def test_a_long_thought_in_tags_is_no_silence(autojump_clock: MockClock) -> None:
    text = f"<think>{'hm ' * 20}</think>" + said(message="x")
    model = ScriptedModel({"Former": [Reply(text, pieces=30, delay=10)]})
    async with open_conversation(Former(model)) as conversation:
        assert (await conversation.send("q")).message == "x"


async def test_a_stream_reads_the_message_and_nothing_of_the_format(autojump_clock: MockClock) -> None:
    texts = [said(message="not a member")[:-1], said(thought="easy", message="Hello.")]
    model = ScriptedModel({"Former": [Reply(text, pieces=9, delay=1) for text in texts]})
    async with open_conversation(Former(model)) as conversation, conversation.stream("q") as reply:
        pieces = [piece async for piece in reply]
        taken = pieces.index(Taken())
        assert "".join(map(str, pieces[:taken])) == "not a member"
        assert "".join(map(str, pieces[taken + 1 :])) == reply.text == reply.post.message == "Hello."


async def test_a_role_may_end_the_call_when_it_has_all_that_it_wants() -> None:
    class Brief(Former):
        def early_stop(self, kind: str, value: str) -> bool:
            seen.append((kind, value))
            return kind == "message"

    seen: list[tuple[str, str]] = []
    text = said(thought="easy", message="Hello.", plan="much more")
    async with open_conversation(Brief(ScriptedModel({"Former": [Reply(text, pieces=40)]}))) as conversation:
        post = await conversation.send("q")
    assert seen == [("thought", "easy"), ("message", "Hello.")]
    assert (post.message, len(post.attachment_list)) == ("Hello.", 1)


async def test_the_model_is_given_the_schema_of_the_replies() -> None:
    model = ScriptedModel({"Former": [said(message="x")]})
    async with open_conversation(Former(model)) as conversation:
        await conversation.send("q")
    assert model.requests[0].schema == reply_schema(MessageReply)


async def test_a_stream_that_breaks_off_fails_the_role_and_keeps_what_it_said() -> None:
    async with open_conversation(Former(Breaking({}))) as conversation:
        with pytest.raises(RoleFailed, match="ModelError: gone"):
            await conversation.send("q")
    assert lines(conversation)[1] == "Former>Former note partial: half of"


def test_corrections_survive_every_interruption() -> None:
    def step(request: ChatRequest) -> str:
        bad = sum("invalid" in message.content for message in request.messages if message.role == "assistant")
        return "invalid" if bad < 2 else said(thought="now", message="Hello.")

    async def greet(watch: Watch) -> None:
        async with open_conversation(Former(ScriptedModel({"Former": [step] * 9}))) as conversation:
            post = await watch(conversation).send("q")
        assert (post.message, [str(one) for one in post.attachment_list]) == ("Hello.", ["THOUGHT: now"])
        notes = [post for post in posts(conversation) if post.get_attachment("invalid_response")]
        assert len(notes) == 2

    assert every_interrupt_point(greet, interrupt(1), seeds=range(1)).outcomes["seen"] > 9


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
