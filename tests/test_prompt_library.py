"""The library: templates found by name, and filled in once."""

import json
import re
from pathlib import Path

import pytest

from callboard.prompts import library
from callboard.prompts.library import fill, fill_json, template

from .test_imports import ROOT

NAMES = sorted(path.stem for path in Path(ROOT, "callboard", "prompts").glob("*.md"))

KEYS = {
    "fw.user_message": ["system_message", "user_message", "attachments"],
    "fw.intervention": ["system_message", "user_intervention", "attachments"],
}

SLOTS = {
    "planner": {"name", "asker", "subordinates", "reply_format"},
    "code_interpreter": {"name", "asker", "reply_format"},
    "reply_format.planner": set(),
    "reply_format.code_interpreter": set(),
    "fw.user_message": {"system_message", "message", "attachments"},
    "fw.intervention": {"system_message", "message", "attachments"},
    "fw.msg_nudge": set(),
}


def write_template(monkeypatch: pytest.MonkeyPatch, path: Path, text: str) -> None:
    """Makes a file the only template, named `own`."""
    path.write_text(text, encoding="utf-8")
    template.cache_clear()
    monkeypatch.setattr(library, "_templates", lambda: {"own": path})


def test_every_template_is_known_with_its_slots() -> None:
    assert sorted(SLOTS) == NAMES
    assert {name: set(re.findall(r"\{\{(\w+)\}\}", template(name))) for name in NAMES} == SLOTS


@pytest.mark.parametrize("name", NAMES)
def test_a_template_is_the_text_of_its_file(name: str) -> None:
    text = Path(ROOT, "callboard", "prompts", f"{name}.md").read_text(encoding="utf-8")
    assert template(name) == text.rstrip("\n")


def test_an_unknown_template_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"no template 'plan'; there are code_interpreter, fw\.intervention, "):
        template("plan")


@pytest.mark.parametrize("name", ["../planner", "a/planner", "a\\planner", "..", "/etc/passwd"])
def test_a_path_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is a path"):
        template(name)


def test_slots_are_filled() -> None:
    assert fill("{{a}} and {{b_2}} and {{a}}, { {a} }", a="x", b_2="y") == "x and y and x, { {a} }"


def test_a_value_is_not_scanned_again() -> None:
    assert fill("{{a}}{{b}}", a="{{b}}{{c}}\\1", b="{{a}}") == "{{b}}{{c}}\\1{{a}}"


def test_a_slot_may_be_called_text_or_name() -> None:
    assert fill("{{text}} {{name}}", text="x", name="y") == "x y"


def test_a_slot_without_a_value_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a value for b, c"):
        fill("{{a}}{{c}}{{b}}", a="")


def test_a_value_without_a_slot_is_refused() -> None:
    with pytest.raises(ValueError, match="has no slot b; it has a"):
        fill("{{a}}", a="", b="")


@pytest.mark.parametrize("name", KEYS)
def test_the_keys_of_a_json_template_keep_their_order(name: str) -> None:
    text = fill_json(name, attachments=["a"], message="m", system_message=["s"])
    assert list(json.loads(text).items()) == list(zip(KEYS[name], (["s"], "m", ["a"]), strict=True))


@pytest.mark.parametrize("empty", ["", [], (), {}, None])
def test_what_is_empty_is_left_out(empty: str | list[str] | None) -> None:
    assert fill_json("fw.user_message", message="é", attachments=empty, system_message=empty) == '{"user_message": "é"}'


@pytest.mark.parametrize("said", ["{{attachments}}", '"}, {"', "```\n{}", "\\\n\t\x00", "\\1\\g<0>"])
def test_words_that_look_like_a_template_stay_as_they_are(said: str) -> None:
    text = fill_json("fw.intervention", message=said, attachments=[said], system_message=())
    assert json.loads(text) == {"user_intervention": said, "attachments": [said]}


def test_zero_and_false_are_not_empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_template(monkeypatch, tmp_path / "own.md", '```json\n{"a": {{a}}, "b": {{b}}, "c": {{c}}}\n```\n')
    assert fill_json("own", a=0, b=False, c={"d": [1.5]}) == '{"a": 0, "b": false, "c": {"d": [1.5]}}'


def test_a_value_that_json_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        fill_json("fw.user_message", message=float("nan"), attachments=(), system_message=())


def test_a_missing_value_of_a_json_template_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a value for attachments"):
        fill_json("fw.user_message", message="m", system_message=())


def test_a_template_without_a_fence_is_no_json_template() -> None:
    with pytest.raises(ValueError, match="'planner' is no JSON in a fence"):
        fill_json("planner")


def test_the_nudge_is_one_system_message() -> None:
    nudge = json.loads(fill_json("fw.msg_nudge"))
    assert list(nudge) == ["system_message"]
    assert nudge["system_message"]
