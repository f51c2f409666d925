"""JSON of a transcript: the same data as YAML, and the line of what is wrong."""

import json
from typing import Any

import pytest

from callboard.runtime.errors import InvalidFile
from callboard.runtime.transcript_json import dump_json, json_line_of, parse_json

TEXT = """{
 "a": [1,
  {"x": "[{,:\\"}", "y": []}, {},
  [[2], "b"]
 ],
 "": {
  "c\\u00e9": null}
}"""


def test_what_is_written_is_read_as_it_was_and_ends_with_a_line() -> None:
    data = {"é": ["\u2028\x00", 1e16, -0.0, 1.5e-7, True, None, {}, []], "": "\U0001f600"}
    assert repr(parse_json(dump_json(data).decode())) == repr(data)
    assert dump_json(data).endswith(b"\n")


@pytest.mark.parametrize("data", [float("nan"), object(), {"a": {1}}])
def test_what_is_no_plain_data_is_not_written(data: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        dump_json(data)


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ((), 1),
        (("a",), 2),
        (("a", 0), 2),
        (("a", 1), 3),
        (("a", 1, "y"), 3),
        (("a", 3), 4),
        (("a", 3, 0, 0), 4),
        (("a", 3, 1), 4),
        (("",), 6),
        (("", "cé"), 7),
        (("", "none"), 6),
        (("a", 9), 2),
        ((7,), 1),
    ],
)
def test_the_line_of_a_place_is_that_of_the_nearest_value_that_is_there(place: Any, line: int) -> None:
    json.loads(TEXT)
    assert json_line_of(TEXT, place) == line


def test_an_empty_text_has_no_lines() -> None:
    assert json_line_of("", ("a",)) is None


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "Expecting value"),
        ('{"a": 1,\n "b": }', 2, "Expecting value"),
        ('{"a": 1,\n "b": {"a": 2},\n "a": 3}', 3, "the key 'a' stands twice"),
        ('[{"a": 1, "b": [{"a": 1}]},\n {"b": 1,\n "b": 2}]', 3, "the key 'b' stands twice"),
        ("1" * 5000, None, "cannot be read"),
        ("[" * 100_000, None, "nested too deep"),
    ],
)
def test_what_is_no_json_is_refused_with_its_line(text: str, line: int | None, reason: str) -> None:
    with pytest.raises(InvalidFile, match=reason) as caught:
        parse_json(text)
    assert caught.value.line == line
    assert caught.value.remedy
