"""Agent reply: which calls are read, what is wrong with the others, and the schema that a model is given."""

import json

import pytest
from pydantic import BaseModel

from callboard.actors.agent_reply import ToolCall, calls_in, plain_schema, reply_model_for
from callboard.prompts.reply_format import ReplyError, parse_reply, reply_schema
from callboard.runtime.json_value import thaw
from callboard.runtime.models.schema_form import allows_strict
from callboard.runtime.tool import Tool

from .test_role import said


class Branch(BaseModel):
    """Holds branches."""

    title: str
    below: "list[Branch]" = []


async def plant(branch: Branch, default: str) -> None:
    """Plants."""


async def water() -> None:
    """Waters."""


TOOLS = {tool.name: plain_schema(tool.schema) for tool in (Tool(plant), Tool(water))}


def test_calls_are_read_from_a_list_or_one_that_stands_alone() -> None:
    assert calls_in('[{"tool": "water"}, {"tool": "plant", "arguments": {"a": 1}}]') == (
        ToolCall("water", {}),
        ToolCall("plant", {"a": 1}),
    )
    assert calls_in('{"tool": "water", "arguments": {}}') == (ToolCall("water", {}),)
    assert calls_in(" ") == calls_in("[]") == ()


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "water", "arguments": {"to": "\\ud800"}}',
        "water",
        "3",
        '["water"]',
        '{"tool": 3}',
        '{"tool": "water", "arguments": []}',
        "[" * 100_000,
    ],
)
def test_what_is_no_call_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="reply_content"):
        calls_in(text)


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"reply_type": "respond", "message": "\n"}, "message must not be blank"),
        ({"reply_type": "call", "reply_content": ""}, "must name a tool"),
        ({"reply_type": "call", "reply_content": '{"tool": "dig"}'}, "there is no tool 'dig'; there are: plant, water"),
        ({"reply_type": "call", "reply_content": json.dumps([{"tool": "water"}] * 17)}, "17 calls, and may have 16"),
        ({"reply_type": "both", "message": "x"}, "'call' or 'respond'"),
        ({"message": "x"}, "missing in 'response': reply_type"),
    ],
)
def test_a_reply_says_one_thing(members: dict[str, str], problem: str) -> None:
    with pytest.raises(ReplyError, match=problem):
        parse_reply(said(**members), reply_model_for(TOOLS.items()))


def test_the_same_tools_are_held_to_the_same_model() -> None:
    assert reply_model_for(TOOLS.items()) is reply_model_for(dict(TOOLS).items())
    assert reply_model_for(TOOLS.items()) is not reply_model_for([])


def test_the_schema_has_each_tool_with_its_arguments_and_no_references() -> None:
    schema = thaw(reply_schema(reply_model_for(TOOLS.items())).schema)
    plant_call, water_call = schema["properties"]["response"]["properties"]["reply_content"]["items"]["anyOf"]
    assert "$ref" not in json.dumps(schema)
    assert water_call["properties"]["tool"]["enum"] == ["water"]
    assert plant_call["properties"]["arguments"]["required"] == ["branch", "default"]
    branch = plant_call["properties"]["arguments"]["properties"]["branch"]
    assert branch["properties"]["title"] == {"type": "string"}
    assert branch["properties"]["below"]["items"] == {}


def test_a_server_can_hold_to_it_strictly_if_no_argument_may_be_left_out() -> None:
    assert allows_strict(reply_schema(reply_model_for([("water", TOOLS["water"])])).schema)
    assert not allows_strict(reply_schema(reply_model_for(TOOLS.items())).schema)
