"""Templates of JSON: built as objects and written last, with or without a fence."""

import json
from typing import Any

import pytest

from callboard.prompts.template import Template
from callboard.runtime.errors import InvalidFile
from callboard.runtime.json_value import JsonValue

OBJECT = '{"a": {{a}}, "b": [1, {"c": "<{{b}}>"}]}'
FENCES = [
    "{}",
    "\n  {}\n\n",
    "```json\n{}\n```\n",
    "~~~json\n{}\n~~~",
    "```\n{}\n```",
    "````json\n\n{}\n````  \n",
    "~~~\n{}\n~~~",
]


def build(text: str, /, **values: JsonValue) -> dict[str, Any]:
    return Template.parse(text).build(**values)


@pytest.mark.parametrize("fence", FENCES)
def test_it_is_known_with_or_without_a_fence(fence: str) -> None:
    template = Template.parse(fence.replace("{}", OBJECT))
    assert template.is_json
    assert template.build(a=[1], b="x") == {"a": [1], "b": [1, {"c": "<x>"}]}
    assert template.render(a=[1], b="x") == '{"a": [1], "b": [1, {"c": "<x>"}]}'


@pytest.mark.parametrize(
    "text",
    [
        "Say:\n```json\n{}\n```",
        "```json\n{}\n```\nand\n```json\n{}\n```",
        "```python\n{}\n```",
        "{{a}} {{a}}",
        "{a} is {{a}}",
        '{{"{"}}"a": 1}',
    ],
)
def test_text_that_holds_json_is_text(text: str) -> None:
    template = Template.parse(text)
    assert not template.is_json
    assert template.render(a="x") == text.replace("{{a}}", "x").replace('{{"{"}}', "{")
    with pytest.raises(TypeError, match="'text' is text"):
        template.build(a="x")


@pytest.mark.parametrize("value", ["", [], (), {}, None])
def test_a_key_whose_value_is_empty_is_left_out(value: JsonValue) -> None:
    text = '{"a": {{a}}, "s": "{{s}}", "b": [], "in": {"a": {{a}}}, "é": "é"}'
    assert Template.parse(text).render(a=value, s="") == f'{{"in": {{"a": {json.dumps(value)}}}, "é": "é"}}'


def test_zero_and_false_are_not_empty() -> None:
    assert build('{"a": {{a}}, "b": {{b}}, "c": {{c}}}', a=0, b=False, c={"d": [1.5]}) == {
        "a": 0,
        "b": False,
        "c": {"d": [1.5]},
    }


def test_a_list_stays_a_list_as_a_value_and_is_lines_in_a_string() -> None:
    assert build('{"a": {{a}}, "b": "{{a}}"}', a=("x", "y")) == {"a": ["x", "y"], "b": "x\ny"}


@pytest.mark.parametrize(
    "value", ['"', '", "b": "', "\\", "\n\t\x00", "{{a}}", "```", "\ue000\ue001", "\U0001f600\u2028"]
)
def test_no_value_changes_the_object(value: str) -> None:
    text = '```json\n{"a": {{a}}, "b": "x{{a}}{{a}}y", "c": [{{a}}, "\\u00e9"]}\n```'
    expected = {"a": value, "b": f"x{value}{value}y", "c": [value, "é"]}
    assert build(text, a=value) == json.loads(Template.parse(text).render(a=value)) == expected


def test_private_characters_of_a_template_are_text() -> None:
    assert build('{"a": "\ue000\\uE001{{a}}", "b": "\ue002"}', a="x") == {"a": "\ue000\ue001x", "b": "\ue002"}


def test_a_block_stands_in_a_string() -> None:
    text = '{"hint": "{{if plan == "x\'y"}}The plan is {{plan}}, {{"{{"}}{{endif}}", "end": {{"{{"}}}'
    assert [build(text, plan=plan) for plan in ("x'y", "")] == [
        {"hint": "The plan is x'y, {{", "end": "{{"},
        {"end": "{{"},
    ]


FAULTS = {
    '{"a": 1,}': "no valid JSON",
    '{\n"a": {{a}}\n"b": 1}': "line 3: .*no valid JSON: Expecting ',' delimiter; do: correct the JSON; if it is text",
    '{"a": {{a}}{{b}}}': "no valid JSON",
    '{"a": x{{a}}}': "no valid JSON",
    '{"a": "\\{{a}}"}': "no valid JSON",
    '{"a": NaN}': "NaN is no JSON",
    '{"a": 1e999}': "1e999 is no JSON",
    '{"a": "\\ud800"}': "half a surrogate pair",
    '{"a": 1,\n"a": 2}': "line 2: the key 'a' stands twice",
    '{"x": 1,\n"{{a}}": 1}': "line 2: .*a key cannot have a tag; do: put tags into values",
    "{{{a}}: 1}": "a key cannot have a tag",
    '{"a": 1{{if b}}, "b": 2{{endif}}}': "no valid JSON",
    '{"a": {{if b}}}': "only a slot can stand for a value of JSON; do: put the tag into a string",
    '{"a": {{include "b"}}}': "only a slot",
    '{"a":\n"{{if b}}"}': "line 2: .*does not end with",
    '{"a": "{{if b}}", "c": "{{endif}}"}': "does not end with",
    "```json\n[1]\n```": "must be one object",
    "```json\nx\n```": "line 2: .*no valid JSON",
    '{"a":' * 101 + "1" + "}" * 101: "nested deeper than 100",
    '{"a":' * 20_000 + "1" + "}" * 20_000: "nested (too deep|deeper)",
}


@pytest.mark.parametrize("text", FAULTS, ids=range(len(FAULTS)))
def test_what_is_no_object_with_slots_is_refused(text: str) -> None:
    with pytest.raises(InvalidFile, match=FAULTS[text].replace("line 2: the", "line 2: .*the")):
        Template.parse(text)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": object()}, {1: "a"}])
def test_a_value_that_json_does_not_know_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="a"):
        build('{"a": {{a}}}', a=value)
