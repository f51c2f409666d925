"""The reply format: what is read is what was written, and all else is refused with a reason."""

import json
import re
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from callboard.actors.code_interpreter import CodeReply
from callboard.actors.planner import PlannerReply
from callboard.prompts.reply_format import (
    NEVER,
    NotBlank,
    Reply,
    ReplyError,
    members_of,
    parse_reply,
    post_to_text,
    reply_schema,
)
from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.json_value import thaw
from callboard.runtime.post import Post
from callboard.runtime.shared_memory import SharedMemoryEntry
from tests.roles import template

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
TYPES = st.sampled_from([type for type in AttachmentType if type not in NEVER])

PLAN = AttachmentType.plan

REFUSED = {
    "": "the reply is empty, at line 1, column 1",
    " \n": "the reply is empty",
    "Sure! {}": "there is no JSON object with the key 'response'",
    '{"response": {"plan"': "the reply breaks off, at line 1, column 21",
    '\n{"response":\n  {"plan": "a': "the reply breaks off, at line 3, column 14",
    '```json\n{"response": {"plan" 1}}\n```': "a colon is missing, at line 2, column 22",
    '{"response": {"message": "x"': "the reply breaks off",
    '{"plan": "x"}': "the key 'response' is missing in the object, at line 1, column 1",
    '{"response": ["a"]}': "'response' must be an object, and is a list",
    '{"response": {"message": "a", "message": "b"}}': "the key 'message' stands twice, at line 1, column 31",
    '{"response": {"message": NaN}}': "NaN is no JSON, at line 1, column 26",
    '{"response": {"plan": "x", "message": " "}}': "message: must not be blank",
    '{"response": {"plan": "x"}}': "missing in 'response': message",
    '{"response": {"messages": "x"}}': "missing in 'response': message; there is no member 'messages'",
}


class AnyReply(BaseModel):
    """Asks for nothing."""

    model_config = ConfigDict(extra="allow")


class Strict(BaseModel):
    """What a role might ask for."""

    stop: Literal["InProcess", "Completed"]
    send_to: NotBlank
    message: NotBlank
    plan: str = Field("", description="The steps.")


def post(*attachments: Attachment, message: str = "hi", to: str = "Planner") -> Post:
    """A post with the given parts."""
    return Post.create(message, "Worker", to, attachments)


def contents(reply: Reply) -> list[tuple[str, str | tuple[str, ...]]]:
    """The types and contents of a reply's attachments."""
    return [(one.type.value, one.content) for one in reply.attachments]


def test_a_reply_is_message_recipient_and_attachments_in_order() -> None:
    reply = parse_reply('{"response": {"stop": "Completed", "plan": "1. do it", "send_to": "User", "message": "done"}}')
    assert (reply.message, reply.send_to) == ("done", "User")
    assert contents(reply) == [("stop", "Completed"), ("plan", "1. do it")]


def test_members_that_are_not_there_are_empty() -> None:
    assert parse_reply('{"response": {"message": "x"}}') == Reply("x", "", ())


def test_what_stands_around_the_reply_is_kept_apart() -> None:
    reply = parse_reply('Sure:\n```json\n{"response": {"message": "a ``` b", "mood": "good"}}\n```\nDone.')
    assert (reply.message, reply.report.before, reply.report.after) == ("a ``` b", "Sure:", "Done.")
    assert reply.report.unknown == ("mood",)


@pytest.mark.parametrize(("text", "reason"), REFUSED.items(), ids=REFUSED.values())
def test_what_is_not_the_format_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ReplyError, match=re.escape(reason)):
        parse_reply(text)


@pytest.mark.parametrize("type", sorted(NEVER))
def test_some_types_are_never_made_from_a_reply(type: str) -> None:
    reply = parse_reply(json.dumps({"response": {type: "x", "message": "m"}}))
    assert (reply.attachments, reply.report.unknown) == ((), (type,))


def test_a_models_errors_are_said_all_at_once() -> None:
    with pytest.raises(ReplyError) as refused:
        parse_reply('{"response": {"stop": "Done", "send_to": "Nobody", "extra": 1}}', Strict, ("Echo", "User"))
    assert str(refused.value) == (
        "missing in 'response': message; stop: Input should be 'InProcess' or 'Completed'; "
        "send_to is 'Nobody', and must be one of Echo, User; there is no member 'extra'; "
        'the model said: {"response": {"stop": "Done", "send_to": "Nobody", "extra": 1}}'
    )


def test_a_model_that_forbids_more_members_refuses_them() -> None:
    class Exact(Strict):
        model_config = ConfigDict(extra="forbid")

    text = '{"response": {"stop": "Completed", "send_to": "User", "message": "x", "extra": 1}}'
    assert parse_reply(text, Strict).report.unknown == ("extra",)
    with pytest.raises(ReplyError, match="there is no member 'extra'"):
        parse_reply(text, Exact)


def test_a_model_with_a_field_that_no_reply_has_is_a_mistake() -> None:
    class Odd(BaseModel):
        colour: str

    with pytest.raises(TypeError, match="Odd has fields that no reply has: colour"):
        members_of(Odd)


def test_a_schema_asks_for_each_member_and_no_other_and_names_the_recipients_in_order() -> None:
    schema = reply_schema(Strict, ("Echo", "User"))
    assert thaw(schema.schema) == {
        "type": "object",
        "properties": {
            "response": {
                "type": "object",
                "properties": {
                    "stop": {"enum": ["InProcess", "Completed"], "type": "string"},
                    "send_to": {"type": "string", "enum": ["Echo", "User"]},
                    "message": {"type": "string"},
                    "plan": {"type": "string", "description": "The steps."},
                },
                "required": ["stop", "send_to", "message", "plan"],
                "additionalProperties": False,
            }
        },
        "required": ["response"],
        "additionalProperties": False,
    }
    assert reply_schema(Strict, ("Echo", "User")) is schema
    assert "enum" not in str(thaw(reply_schema(Strict).schema)["properties"]["response"]["properties"]["send_to"])


@pytest.mark.parametrize("role", ["planner", "code_interpreter"])
def test_the_example_of_each_format_is_in_the_format(role: str) -> None:
    (example,) = re.findall(r"```json\n.*?\n```", template(f"reply_format.{role}"), re.DOTALL)
    model = PlannerReply if role == "planner" else CodeReply
    properties = thaw(reply_schema(model).schema)["properties"]["response"]["properties"]
    assert list(json.loads(example[8:-4])["response"]) == list(properties)
    assert parse_reply(example, model).attachments


def test_a_post_is_written_with_its_attachments_first() -> None:
    text = post_to_text(post(Attachment.create("plan", "é"), Attachment.create("stop", "x")))
    assert text == '{"response": {"plan": "é", "stop": "x", "send_to": "Planner", "message": "hi"}}'


def test_attachments_of_one_type_are_joined_by_newlines() -> None:
    attachments = [Attachment.create(type, text) for type, text in [("plan", "a"), ("stop", "x"), ("plan", "b")]]
    assert post_to_text(post(*attachments)).startswith('{"response": {"plan": "a\\nb", "stop": "x", ')


def test_paths_are_joined_by_newlines() -> None:
    assert '"artifact_paths": "a\\nb"' in post_to_text(post(Attachment.create("artifact_paths", ["a", "b"])))


def test_what_no_model_can_make_is_left_out() -> None:
    entry = SharedMemoryEntry.create("plan", "p", "round")
    hidden = Attachment.create("shared_memory_entry", "p", extra=entry)
    text = post_to_text(post(hidden, Attachment.create("function", "f")))
    assert text == '{"response": {"send_to": "Planner", "message": "hi"}}'


def test_a_recipient_that_utf_8_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="half a surrogate pair"):
        post_to_text(post(to="\ud83d"))


@given(message=TEXTS, to=TEXTS, attachments=st.dictionaries(TYPES, TEXTS))
def test_what_was_written_reads_as_the_same(message: str, to: str, attachments: dict[AttachmentType, str]) -> None:
    written = post(*(Attachment.create(type, text) for type, text in attachments.items()), message=message, to=to)
    read = parse_reply(post_to_text(written), AnyReply)
    assert (read.message, read.send_to) == (message, to)
    assert contents(read) == [(one.type.value, one.content) for one in written.attachment_list]


@given(st.text() | st.text('{}[]":,\\ \nd8`json'))
def test_any_text_is_read_or_refused(text: str) -> None:
    for tried in (text, f'{{"response": {{"message": {text}}}}}', f"```json\n{text}\n```"):
        try:
            assert isinstance(parse_reply(tried), Reply)
        except ReplyError as error:
            assert str(error)
