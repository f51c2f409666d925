"""The reply reader: what it finds in what a model says, the same for every way in which that is cut into pieces."""

import json
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.prompts.json_scanner import LEADING_ZERO, RAW_CONTROL, TRAILING_COMMA
from callboard.prompts.reply_reader import ReplyReader, ReplyReport

KNOWN = frozenset({"message", "send_to", "plan", "stop"})


class Heard:
    """A listener that keeps what it is told."""

    def __init__(self, stop_at: str = "") -> None:
        self.texts: dict[str, str] = {}
        self.values: dict[str, str] = {}
        self.stop_at = stop_at

    def began(self, name: str) -> None:
        assert name not in self.texts
        self.texts[name] = ""

    def grew(self, name: str, text: str) -> None:
        assert text and name not in self.values
        self.texts[name] += text

    def ended(self, name: str, value: str) -> bool:
        assert value == self.texts[name]
        self.values[name] = value
        return name == self.stop_at


Result = tuple[dict[str, str], dict[str, str], ReplyReport, str]


def read(pieces: Iterable[str], stop_at: str = "") -> Result:
    """What was heard of the pieces: texts as far as they came, whole values, the report, all that was said."""
    heard = Heard(stop_at)
    reader = ReplyReader(KNOWN, heard)
    for piece in pieces:
        reader.feed(piece)
    report = reader.close()
    assert dict(reader.values) == heard.values
    assert report.complete == (report.truncated_at is None and report.invalid_at is None)
    assert report.truncated_at is None or report.invalid_at is None
    return heard.texts, heard.values, report, reader.text


def cut(text: str, at: Iterable[int]) -> Iterator[str]:
    """The text in pieces, cut at these places."""
    places = [0, *sorted(place % (len(text) + 1) for place in at), len(text)]
    return (text[start:stop] for start, stop in pairwise(places))


def response(members: str) -> str:
    """The reply with these members."""
    return f'{{"response": {{{members}}}}}'


WHOLE = {
    "members": (
        response('"plan": "a", "send_to": "User", "message": "b"'),
        {"plan": "a", "send_to": "User", "message": "b"},
    ),
    "escapes": (
        response(r'"message": "\"\\\/\b\f\n\r\t\u00e9\u4e2d\ud83d\ude00\u0041"'),
        {"message": '"\\/\b\f\n\r\té中😀A'},
    ),
    "values": (
        response(
            '"plan": [1, {"a" :-2.50e+3,"b":[ ]},true ,null,"\\n"], "stop": false, "message": 12, "send_to": null'
        ),
        {"plan": '[1, {"a": -2.50e+3, "b": []}, true, null, "\\n"]', "stop": "false", "message": "12", "send_to": ""},
    ),
    "spaces": (' \n{\t"response"\r\n:\n{ "message" : "a" } }\n ', {"message": "a"}),
    "signs": (response('"message": "é中😀"'), {"message": "é中😀"}),
    "fence": (
        f"```json\n{response(chr(34) + 'message' + chr(34) + ': ' + chr(34) + 'a' + chr(34))}\n```",
        {"message": "a"},
    ),
    "unknown": (response('"mood": {"message": "no"}, "message": "a", "moods": "x"'), {"message": "a"}),
    "beside": ('{"note": "message", "response": {"message": "a"}, "more": {"message": "b"}}', {"message": "a"}),
    "think": (f'<think>{{"response": {{"message": "no"}}}}</think>{response("")}', {}),
    "prose": (
        'Set {x} and {"a": 1}, then {"b" or {{"response": {"message": "a"}} {"response": {"message": "b"}}',
        {"message": "a"},
    ),
    "empty": (response('"message": ""'), {"message": ""}),
}

BROKEN = {
    "": (False, 0, "the reply is empty"),
    "Hello {you}.": (False, 0, "there is no JSON object with the key 'response'"),
    '{"plan": "a"} {"b" 1}': (False, 0, "the key 'response' is missing in the object"),
    '{"plan" "a"}': (False, 8, "a colon is missing"),
    '{"respon': (True, 8, "the reply breaks off"),
    '{"response"': (True, 11, "the reply breaks off"),
    '{"response": {"message": "a': (True, 27, "the reply breaks off"),
    '{"response": {"message": "a\\u00': (True, 31, "the reply breaks off"),
    '{"response": {"message": "a"}': (True, 29, "the reply breaks off"),
    '{"response": {"plan": 12': (True, 24, "the reply breaks off"),
    "<think>about {it}": (True, 17, "the reply breaks off while it is still thinking"),
    '{"response": "a"}': (False, 13, "'response' must be an object, and is a string"),
    '{"response": [1]}': (False, 13, "'response' must be an object, and is a list"),
    '{"response": null}': (False, 13, "'response' must be an object, and is null"),
    '{"response": {}, "response": {}}': (False, 17, "the key 'response' stands twice"),
    response('"plan": "a", "pl\\u0061n": "b"'): (False, 27, "the key 'plan' stands twice"),
    response('"plan": {"a": 1, "a": 2}'): (False, 31, "the key 'a' stands twice"),
    response('"message": "a\\q"'): (False, 27, "there is no escape \\q"),
    response('"message": "a\\q and more"'): (False, 27, "there is no escape \\q"),
    response('"message": "a\\u12G4"'): (False, 27, "there is no escape \\u12G4"),
    response('"message": "\\ud83d"'): (False, 26, "half a surrogate pair"),
    response('"message": "\\ude00\\ud83d"'): (False, 26, "half a surrogate pair"),
    response('"message": "\\ud83d\\u0041"'): (False, 26, "half a surrogate pair"),
    response('"plan": NaN'): (False, 22, "NaN is no JSON"),
    response('"plan": -Infinity'): (False, 22, "-Infinity is no JSON"),
    response('"plan": 1.'): (False, 22, "1. is no JSON"),
    response('"plan": [1, 2 "a"]'): (False, 28, "a comma or ] is missing"),
    response('"plan": [1,]'): (False, 25, "a value is missing"),
    response('"plan": [1}'): (False, 24, "a comma or ] is missing"),
    response('"plan": "a" "stop": "b"'): (False, 26, "a comma or } is missing"),
    response('plan: "a"'): (False, 14, "a key in double quotes is missing"),
    response("\"plan\": 'a'"): (False, 22, "a value is missing"),
    response('"plan": ,'): (False, 22, "a value is missing"),
    response('"plan": ' + "[" * 200): (False, 120, "it is nested too deeply"),
}

ALL = [*(text for text, _ in WHOLE.values()), *BROKEN]


@pytest.mark.parametrize(("text", "values"), WHOLE.values(), ids=WHOLE)
def test_the_members_are_read(text: str, values: dict[str, str]) -> None:
    texts, read_values, report, said = read([text])
    assert texts == read_values == values
    assert (report.complete, report.problem, said) == (True, "", text)


@pytest.mark.parametrize(("text", "fault"), BROKEN.items(), ids=map(repr, range(len(BROKEN))))
def test_what_is_wrong_is_reported_with_its_place(text: str, fault: tuple[bool, int, str]) -> None:
    truncated, at, problem = fault
    report = read([text])[2]
    assert (report.truncated_at, report.invalid_at) == ((at, None) if truncated else (None, at))
    assert report.problem == f"{problem}, at line 1, column {at + 1}"


@pytest.mark.parametrize("text", ALL, ids=map(repr, range(len(ALL))))
def test_every_text_gives_the_same_however_it_is_cut_once_or_into_equal_pieces(text: str) -> None:
    whole = read([text])
    for size in (1, 2, 3, 5, 7):
        assert read(text[at : at + size] for at in range(0, len(text), size)) == whole
    for place in range(len(text)):
        assert read([text[:place], text[place:]]) == whole


SIGNS = '{}[]":,\\ \n<>`n0-9é😀\ud83d\ude00\x01'
WORDS = [
    '"response"',
    '{"response": {',
    '"message": "',
    '"plan": ',
    "\\u00e9",
    "\\ud83d",
    "\\ude00",
    '"}}',
    "true",
    "NaN",
]
TAGS = ["<think>", "</think>", "```json\n"]
PARTS = st.sampled_from([*SIGNS, *WORDS, *TAGS])


@given(st.lists(PARTS, max_size=25).map("".join), st.lists(st.integers(0, 200), max_size=12))
def test_any_text_gives_the_same_for_all_cuts(text: str, at: list[int]) -> None:
    assert read(cut(text, at)) == read([text]) == read(text)


@given(st.lists(PARTS, max_size=12).map("".join), st.lists(st.integers(0, 200), max_size=12))
def test_any_reply_gives_the_same_for_all_cuts(inside: str, at: list[int]) -> None:
    text = f'Well: {{"response": {{"plan": "a", "message": {inside}}}}} so'
    assert read(cut(text, at)) == read([text]) == read(text)
    assert read(cut(text, at), "plan") == read([text], "plan")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40)
@given(
    st.dictionaries(st.sampled_from(sorted(KNOWN)), VALUES), st.booleans(), st.lists(st.integers(0, 500), max_size=9)
)
def test_what_json_writes_is_read(members: dict[str, object], ascii: bool, at: list[int]) -> None:
    try:
        text = json.dumps({"response": members}, ensure_ascii=ascii)
        text.encode()
    except UnicodeEncodeError:
        return
    _, values, report, _ = read(cut(text, at))
    if report.complete:
        assert {name: _back(value, members[name]) for name, value in values.items()} == members
    else:
        assert "half a surrogate pair" in report.problem


def _back(value: str, was: object) -> object:
    return value if isinstance(was, str) else None if was is None else json.loads(value)


def test_what_json_does_not_allow_and_is_accepted_is_noted() -> None:
    report = read(['{"response": {"message": "a\n\tb", "plan": 007, "stop": -00.5,},}'])
    assert report[1] == {"message": "a\n\tb", "plan": "7", "stop": "-0.5"}
    assert report[2].lenient == (RAW_CONTROL, LEADING_ZERO, TRAILING_COMMA)
    assert read([response('"message": "a"')])[2].lenient == ()


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("Sure.\n```json\n{}\n```\nDone.", ("Sure.", "Done.", "")),
        ("```\n{}\n```", ("", "", "")),
        ("```JSON\r\n{}\r\n```\r\n", ("", "", "")),
        ("Use `x`: {} {}", ("Use `x`:", "{}", "")),
        ("<think>a {b}</think> c {}", ("c", "", "a {b}")),
        ("<Thinking>a</Thinking><reasoning>b</reasoning>{}", ("", "", "a\nb")),
        ("a {b}</think>c {}", ("c", "", "a {b}")),
        ("a < b <think {}", ("a < b <think", "", "")),
        ("{} <think>a</think>", ("", "<think>a</think>", "")),
    ],
)
def test_what_stands_around_the_reply_is_kept_apart(text: str, apart: tuple[str, str, str]) -> None:
    said = text.replace("{}", response('"message": "x"'), 1)
    for pieces in ([said], said):
        _, values, report, _ = read(pieces)
        assert values == {"message": "x"}
        assert (report.before, report.after, report.thinking) == apart


def test_members_that_nobody_knows_are_named_and_bleed_into_none() -> None:
    _, values, report, _ = read(['{"a": 1, "response": {"bogus": "XXX", "message": "hi", "b": [1]}, "c": 2}'])
    assert (values, report.unknown) == ({"message": "hi"}, ("a", "bogus", "b", "c"))


def test_a_surrogate_pair_whose_halves_come_apart_is_one_sign() -> None:
    pieces = ['{"response": {"message": "', "\ud83d", "\ude00", "a\ud83d", "b", "\ude00", '"}}', "\ud83d"]
    _, values, report, text = read(pieces)
    assert (values, report.after) == ({"message": "😀a\ufffdb\ufffd"}, "\ufffd")
    text.encode()


def test_a_member_that_ends_what_is_wanted_ends_the_reply() -> None:
    text = response('"plan": "a", "message": "b", "stop": "c"') + " More."
    for pieces in ([text], text):
        texts, values, report, _ = read(pieces, "message")
        assert (texts, values, report.complete) == ({"plan": "a", "message": "b"}, {"plan": "a", "message": "b"}, True)


@pytest.mark.parametrize("nasty", ["a", "\\n", "\\u00e9", "{", '{"a":', "<think", "<think>", "[1,", "```\n"])
def test_the_cost_grows_with_the_length_and_no_faster(nasty: str) -> None:
    def seconds(count: int) -> float:
        text = '{"response": {"message": "' + nasty * count + '"x' if nasty[0] in "a\\" else nasty * count
        started = time.process_time()
        read([text])
        read(text[at : at + 4] for at in range(0, len(text), 4))
        return time.process_time() - started

    seconds(100)
    assert seconds(8_000) < 0.01 + 40 * min(seconds(800) for _ in range(3))
