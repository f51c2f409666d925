"""Templates of text: slots, blocks, literals, how values are written, and what reading refuses."""

import pytest

from callboard.prompts.template import Template
from callboard.runtime.errors import InvalidFile
from callboard.runtime.json_value import JsonValue


def render(text: str, /, **values: JsonValue) -> str:
    return Template.parse(text).render(**values)


def test_slots_are_filled() -> None:
    assert render("{{a}} and {{ b_2 }} and {{a}}, { {a} } }}", a="x", b_2="y") == "x and y and x, { {a} } }}"


def test_a_slot_may_be_called_as_the_parameters_are() -> None:
    assert render("{{self}} {{name}} {{text}}", self="x", name="y", text="z") == "x y z"


def test_a_slot_stands_in_braces() -> None:
    assert render("x{{{a}}}", a="1") == "x{1}"


@pytest.mark.parametrize(
    "value", ["{{b}}", "{{if a}}", '{{include "x"}}', "{{endif}}", '{{"', "\\1\\g<0>", "```", "\n"]
)
def test_a_value_is_not_scanned_again(value: str) -> None:
    assert render("<{{a}}{{b}}>", a=value, b="{{a}}") == f"<{value}{{{{a}}}}>"


def test_quotes_in_a_tag_write_what_is_in_them() -> None:
    assert render("""{{"{{"}}name{{'}}'}}{{ '{{"{{"}}' }}{{""}}""") == '{{name}}{{"{{"}}'


def test_line_ends_at_the_end_of_a_text_do_not_count_and_those_of_values_do() -> None:
    assert render("\n a\n{{b}}\n\n", b="x\n\n") == "\n a\nx\n\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (1.5, "1.5"),
        ("\"'", "\"'"),
        ([], ""),
        (["a", 'b "c"', 1, None, ["d"]], 'a\nb "c"\n1\nnull\n["d"]'),
        (("é", {"k": "'"}), 'é\n{"k": "\'"}'),
        ({"k": ["é"], "n": None}, '{"k": ["é"], "n": null}'),
    ],
)
def test_values_that_are_no_text_are_written_so(value: JsonValue, text: str) -> None:
    assert render("{{a}}", a=value) == text


def test_a_key_of_a_mapping_has_a_slot_of_its_own() -> None:
    assert render("{{a.b.c}}, {{a.other}}, {{a.b.c.d}}", a={"b": {"c": "x"}}) == "x, , "


def test_a_block_stands_there_if_its_condition_holds() -> None:
    text = "a{{if b}} b={{b}}{{if c > 1}} c{{endif}}{{endif}}!"
    assert [render(text, b=b, c=c) for b, c in [("x", 2), ("x", 1), ("", 2)]] == ["a b=x c!", "a b=x!", "a!"]


def test_the_line_of_an_if_or_endif_alone_is_no_line_of_the_text() -> None:
    text = "a\n  {{if b}}\nb\n{{endif}}  \nc {{if b}}d\n{{endif}}\n{{if not b}}\ne\n{{endif}}\n"
    assert (render(text, b=1), render(text, b=0)) == ("a\nb\nc d", "a\nc e")


def test_a_block_that_is_the_last_of_a_text_leaves_no_empty_line() -> None:
    assert [render("a\n{{if b}}\nb\n{{endif}}", b=b) for b in (True, False)] == ["a\nb", "a"]


def test_the_slots_of_conditions_are_slots() -> None:
    assert Template.parse("{{a}}{{if b.c and not d}}{{e}}{{endif}}").slots == {"a", "b", "d", "e"}


def test_a_slot_without_a_value_is_refused_even_where_it_is_not_needed() -> None:
    with pytest.raises(ValueError, match="the template 'text' needs a value for b, c"):
        render("{{a}}{{if a}}{{c}}{{endif}}{{b}}", a="")


def test_a_value_without_a_slot_is_passed_over() -> None:
    assert render("{{a}}", a="x", b=object()) == "x"  # type: ignore[arg-type]  # not even looked at


@pytest.mark.parametrize("value", [float("nan"), "\ud800", object()])
def test_what_json_or_utf8_cannot_hold_is_refused(value: JsonValue) -> None:
    with pytest.raises(ValueError, match="a "):
        render("{{a}}", a=value)


def test_a_condition_without_an_answer_is_an_error() -> None:
    with pytest.raises(ValueError, match="the condition 'a < 1': only two numbers"):
        render("{{if a < 1}}{{endif}}", a="x")


FAULTS = {
    "x\n{{a b}}": "line 2.*'a b' is no name of a slot; do: write {{\"{{\"}}",
    "{{}}": "'' is no name of a slot",
    "{{a": "'{{a' is no tag that ends on its line; do: write",
    "{{\na}}": "is no tag",
    "{{{{a}}}}": "is no tag",
    "{{don't}}": "is no tag",
    "{{1a}}": "no name of a slot",
    "{{a.}}": "no name of a slot",
    "{{a-b}}": "no name of a slot",
    "{{or}}": "no name of a slot",
    "{{true}}": "no name of a slot",
    "{{if}}": "no name of a slot|half a condition",
    "{{if a ==}}{{endif}}": "half a condition",
    "{{if a}}{{else}}{{endif}}": "there is no else; do: write a block of its own",
    "a\n\n{{if a}}x": "line 3: .*does not end with {{endif}}",
    "{{endif}}": "{{endif}} closes nothing",
    "{{if a}}{{endif}}{{endif}}": "closes nothing",
    "{{endif a}}": "no name of a slot",
    "{{if a}}" * 21: "deeper than 20",
    "{{include}}": "cannot be included; do: write {{include",
    "{{include name}}": "'name' cannot be included",
    '{{include "../secret"}}': "is a path; do: include a template by its name alone",
    '{{include "/etc/passwd"}}': "is a path",
    "{{include 'a\\b'}}": "is a path",
    '{{include "other"}}': "there is nothing to include",
    "\ud800": "half a surrogate pair",
}


@pytest.mark.parametrize("text", FAULTS)
def test_what_is_no_template_is_refused_with_its_line(text: str) -> None:
    with pytest.raises((InvalidFile, ValueError), match=FAULTS[text]) as caught:
        Template.parse(text)
    assert "'text'" in str(caught.value)


def test_a_slot_that_is_not_known_is_refused_with_its_line_and_what_it_may_be() -> None:
    template = Template.parse("{{name}}\n\n{{if mesage}}{{mesage}}{{endif}}")
    template.check_slots({"name", "mesage", "more"})
    with pytest.raises(
        InvalidFile, match="there is no slot 'mesage'; do: use message, or another of: message, name"
    ) as it:
        template.check_slots({"name", "message"})
    assert it.value.line == 3


def test_it_says_what_it_is() -> None:
    assert repr(Template.parse("{{a}}")) == "<Template text>"
