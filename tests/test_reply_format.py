"""The reply format: what is read is what was written, and all else is refused with a reason."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.prompts.library import template
from callboard.prompts.reply_format import NEVER, Reply, ReplyError, parse_reply, post_to_text
from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.post import Post
from callboard.runtime.shared_memory import SharedMemoryEntry

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
TYPES = st.sampled_from([type for type in AttachmentType if type not in NEVER])

PLAN = AttachmentType.plan

REFUSED = {
    "": "the reply is empty",
    " \n": "the reply is empty",
    "Sure! {}": "a JSON object and nothing else, but at line 1, column 1 is no {",
    "[]": "at line 1, column 1 is no {",
    '{"response": {}} Done.': "something stands after the JSON object, at line 1, column 18",
    '{"response": {}}\n{"response": {}}': "something stands after the JSON object, at line 2, column 1",
    '{"response": {"plan"': "no valid JSON at line 1, column 21: Expecting ':' delimiter",
    '\n{"response":\n  {"plan": "a': "no valid JSON at line 3, column 12: Unterminated string",
    '{"response": {"plan": "a\n"}}': "no valid JSON at line 1, column 25: Invalid control character",
    '{"response": {},}': "no valid JSON at line 1, column 1",  # 16 or 17, by the version of Python
    '```json\n{"response": {"plan" 1}}\n```': "no valid JSON at line 2, column 22: ",
    '```json\n{"response": {}}': "the fence at line 1, column 1 is not one of json that closes",
    '```\n{"response": {}}\n```': "the fence at line 1, column 1 is not one of json",
    '```json\n{"response": {}}\n```\nDone.': "the fence at line 1, column 1 is not one of json that closes",
    '```json {"response": {}} ```': "the fence at line 1, column 1",
    "```json": "the fence at line 1, column 1",
    "```json\n```": "the reply is empty",
    "{}": "the key 'response' is missing",
    '{"response": {}, "note": "x"}': "beside 'response' stands 'note'",
    '{"response": ["a"]}': "'response' must be an object, and is a list",
    '{"response": null}': "'response' must be an object, and is null",
    '{"response": {"plans": "x", "Message": ""}}': "unknown in 'response': 'plans', 'Message'; there are init_plan",
    '{"response": {"send_to": ["a"]}}': "'send_to' must be the name of a role, and is a list",
    '{"response": {"plan": "a", "plan": "b"}}': "the key 'plan' stands twice",
    '{"response": {"plan": {"a": 1, "a": 2}}}': "the key 'a' stands twice",
    '{"response": {"plan": NaN}}': "NaN is no JSON",
    '{"response": {"plan": 1e999}}': "1e999 is too large a number",
    '{"response": {"plan": %s}}' % ("9" * 5000): "a number has 5000 digits, too many",
    '{"response": {"plan": %s}}' % ("[" * 100_000): "the JSON is nested too deeply",
    '{"response": {"message": "a\\ud83d"}}': "'message' has half a surrogate pair at character 1",
    '{"response": {"send_to": "\ud83d"}}': "'send_to' has half a surrogate pair at character 0",
    '{"response": {"plan": ["\\udc00"]}}': "'plan' has half a surrogate pair",
}


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
    assert parse_reply('{"response": {}}') == Reply("", "", ())


@pytest.mark.parametrize(
    "around", [" \n{}\t\n", "```json\n{}\n```", "\n```json \n\n {} \n\n```\n ", "```json\r\n{}\r\n```"]
)
def test_white_space_and_one_fence_are_passed_over(around: str) -> None:
    assert parse_reply(around.format('{"response": {"message": "a ``` b"}}')).message == "a ``` b"


@pytest.mark.parametrize(
    ("value", "text"),
    [("null", ""), ("true", "true"), ("-1.5", "-1.5"), ('["é", null]', '["é", null]'), ('{"a": {}}', '{"a": {}}')],
)
def test_a_value_that_is_no_string_becomes_its_json_text(value: str, text: str) -> None:
    reply = parse_reply(f'{{"response": {{"plan": {value}, "message": {value}}}}}')
    assert (reply.message, contents(reply)) == (text, [("plan", text)])


def test_a_surrogate_pair_is_one_character() -> None:
    assert parse_reply('{"response": {"message": "\\ud83d\\ude00"}}').message == "😀"


@pytest.mark.parametrize(("text", "reason"), REFUSED.items(), ids=REFUSED.values())
def test_what_is_not_the_format_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ReplyError, match=re.escape(reason)):
        parse_reply(text)


@pytest.mark.parametrize("type", sorted(NEVER))
@pytest.mark.parametrize("allowed", [None, frozenset(AttachmentType)])
def test_some_types_are_never_made_from_a_reply(type: str, allowed: frozenset[AttachmentType] | None) -> None:
    with pytest.raises(ReplyError, match=f"unknown in 'response': '{type}'"):
        parse_reply(json.dumps({"response": {type: "x"}}), allowed=allowed)


def test_a_type_that_is_not_allowed_is_refused_with_those_that_are() -> None:
    with pytest.raises(ReplyError, match="unknown in 'response': 'stop'; there are plan, send_to, message"):
        parse_reply('{"response": {"plan": "", "stop": "x"}}', allowed=frozenset({PLAN}))


def test_required_members_must_be_there_and_not_blank() -> None:
    with pytest.raises(ReplyError, match="missing in 'response': send_to, message"):
        parse_reply('{"response": {"plan": "x", "message": " "}}', required=("plan", "send_to", "message"))


@pytest.mark.parametrize("role", ["planner", "code_interpreter"])
def test_the_example_of_each_format_is_in_the_format(role: str) -> None:
    (example,) = re.findall(r"```json\n.*?\n```", template(f"reply_format.{role}"), re.DOTALL)
    assert parse_reply(example).attachments


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
    read = parse_reply(post_to_text(written))
    assert (read.message, read.send_to) == (message, to)
    assert contents(read) == [(one.type.value, one.content) for one in written.attachment_list]


@given(st.text() | st.text('{}[]":,\\ \nd8`json'))
def test_any_text_is_read_or_refused(text: str) -> None:
    for tried in (text, f'{{"response": {{"message": {text}}}}}', f"```json\n{text}\n```"):
        try:
            assert isinstance(parse_reply(tried), Reply)
        except ReplyError as error:
            assert str(error)
