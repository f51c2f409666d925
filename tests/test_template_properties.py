"""Whatever the values, a template keeps its structure, and a JSON template gives the JSON that it shows."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.prompts.library import packaged
from callboard.prompts.slots import SLOTS as SLOTS_OF_MESSAGES
from callboard.prompts.template import Template

SLOTS = ("a", "b", "c_1")
TAGS = ["{{a}}", "{{if a}}", "{{endif}}", '{{include "a"}}', "{{", "}}"]
PARTS = [*TAGS, '"', "'", "\\", "```", "~~~json\n", "\n", "\ue000", "\ue001"]
FENCES = ["{}", "```json\n{}\n```", "~~~\n{}\n~~~"]
EMPTY: list[object] = ["", [], {}, None]

words = st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=5)), max_size=6).map("".join)
values = st.recursive(
    st.one_of(words, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=5,
)
of_slots = st.fixed_dictionaries(dict.fromkeys(SLOTS, words))
statics = words.map(lambda text: text.replace("{", "").replace("\r", ""))
slots = st.sampled_from(SLOTS).map("{{{{{}}}}}".format)
texts = st.lists(st.one_of(statics, slots), max_size=6)
"""Texts cut before and behind each slot."""

shapes: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.sampled_from(SLOTS).map(lambda slot: (slot,)), texts, st.integers(), st.booleans(), st.none()),
    lambda inner: st.one_of(inner.map(lambda item: {"in": [item, item]}), st.dictionaries(statics, inner, max_size=3)),
    max_leaves=6,
)
"""JSON with slots: a tuple for one that is a value, a list of pieces for a string."""


def written(shape: Any) -> str:
    """As a template writes it."""
    match shape:
        case (str() as slot,) if isinstance(shape, tuple):
            return f"{{{{{slot}}}}}"
        case {"in": items}:
            return f'{{"in": [{", ".join(map(written, items))}]}}'
        case dict():
            return "{" + ",\n".join(f"{json.dumps(key)}: {written(item)}" for key, item in shape.items()) + " }"
        case list():
            return f'"{"".join(piece if piece[:2] == "{{" else json.dumps(piece)[1:-1] for piece in shape)}"'
    return json.dumps(shape)


def filled(shape: Any, strings: dict[str, str]) -> Any:
    """What it stands for."""
    match shape:
        case (str() as slot,) if isinstance(shape, tuple):
            return strings[slot]
        case dict():
            return {key: filled(item, strings) for key, item in shape.items()}
        case list() if all(isinstance(piece, str) for piece in shape):
            return "".join(strings[piece[2:-2]] if piece[:2] == "{{" else piece for piece in shape)
        case list():
            return [filled(item, strings) for item in shape]
    return shape


@settings(max_examples=40)
@given(texts, of_slots)
def test_a_text_is_its_static_parts_with_the_values_between(text: list[str], strings: dict[str, str]) -> None:
    expected = filled(["x", *text, "x"], strings)
    assert Template.parse("".join(["x", *text, "x"])).render(**strings) == expected


@settings(max_examples=40)
@given(st.dictionaries(statics, shapes, max_size=4), of_slots, st.sampled_from(FENCES))
def test_a_json_template_gives_the_json_that_it_shows(shape: Any, strings: dict[str, str], fence: str) -> None:
    template = Template.parse(fence.replace("{}", written(shape)))
    expected = {key: value for key, value in filled(shape, strings).items() if value not in ("", [], {}, None)}
    assert template.build(**strings) == json.loads(template.render(**strings)) == expected


@settings(max_examples=40)
@given(values)
def test_any_value_stands_in_json_as_it_is(value: Any) -> None:
    template = Template.parse('{"a": [{{a}}], "b": {"c": {{a}}, "d": "x"}}')
    assert json.loads(template.render(a=value)) == {"a": [value], "b": {"c": value, "d": "x"}}


@settings(max_examples=40)
@given(words, st.lists(words, max_size=3), st.sampled_from(["fw.user_message", "fw.intervention"]))
def test_what_users_say_stands_in_their_message_alone(said: str, listed: list[str], name: str) -> None:
    values = dict.fromkeys(SLOTS_OF_MESSAGES[name], "") | {"message": said}
    text = packaged.render(name, **values | {"attachments": listed})
    (key,) = (key for key in packaged.find(name).build(**values | {"message": "x"}) if key.startswith("user_"))
    assert json.loads(text) == ({key: said} if said else {}) | ({"attachments": listed} if listed else {})


@settings(max_examples=40)
@given(words, of_slots)
def test_what_is_read_at_all_is_filled_in_at_all(text: str, strings: dict[str, str]) -> None:
    try:
        template = Template.parse(text)
    except Exception as error:
        assert "text" in str(error)
        return
    assert isinstance(template.render(**dict.fromkeys(template.slots, "")), str)
    if template.slots <= strings.keys():
        assert isinstance(template.render(**strings), str)
