"""The library: templates by name, whose folder comes first, includes, and what is told of a faulty file."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from callboard.prompts.library import MOST_INCLUDED, Library, packaged
from callboard.prompts.slots import SLOTS
from callboard.runtime.errors import InvalidFile

from .test_imports import ROOT

PROMPTS = Path(ROOT, "callboard", "prompts")
NAMES = sorted(path.stem for path in PROMPTS.glob("*.md"))

KEYS = {
    "fw.user_message": ["system_message", "user_message", "attachments"],
    "fw.intervention": ["system_message", "user_intervention", "attachments"],
}
OF_ROLE = {"name", "asker", "subordinates", "reply_format"}


def library(folder: Path, **texts: str) -> Library:
    """One whose own folder has these templates; a double underscore stands for a dot."""
    write(folder, **texts)
    return Library(folder)


def write(folder: Path, **texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name.replace('__', '.')}.md").write_text(text, encoding="utf-8")
    return folder


def test_the_packaged_templates_are_those_of_the_folder() -> None:
    assert list(packaged.names) == NAMES
    assert repr(packaged) == f"<Library of {len(NAMES)} templates in 1 folders>"


@pytest.mark.parametrize("name", ["planner", "code_interpreter"])
def test_the_template_of_a_role_has_slots_that_roles_fill(name: str) -> None:
    assert {"name", "reply_format"} <= packaged.find(name, slots=OF_ROLE).slots


@pytest.mark.parametrize("name", [name for name in NAMES if name in SLOTS])
def test_a_message_of_callboards_own_renders_with_its_slots(name: str) -> None:
    values = {slot: f"<{slot}>" for slot in SLOTS[name]}
    text = packaged.render(name, **values)
    assert text == text.strip() != ""
    assert all(values[slot] in text for slot in packaged.find(name).slots)


@pytest.mark.parametrize("name", NAMES)
def test_a_template_without_slots_is_the_text_of_its_file(name: str) -> None:
    template = packaged.find(name)
    if not template.slots and not template.is_json:
        assert template.render() == (PROMPTS / f"{name}.md").read_text(encoding="utf-8").rstrip("\n")


def test_the_keys_of_the_users_words_keep_their_order_and_are_left_out_when_empty() -> None:
    for name, keys in KEYS.items():
        values = {slot: () for slot in SLOTS[name]} | {"message": "é {{attachments}}", "attachments": ("a",)}
        assert packaged.render(name, **values) == f'{{"{keys[1]}": "é {{{{attachments}}}}", "attachments": ["a"]}}'
        values["system_message"] = ("s",)
        assert [key for key in packaged.find(name).build(**values) if key in keys] == keys


def test_the_nudge_is_one_system_message() -> None:
    nudge = json.loads(packaged.render("fw.msg_nudge"))
    assert list(nudge) == ["system_message"]


def test_an_unknown_template_is_refused_with_what_it_may_be_and_those_there_are() -> None:
    with pytest.raises(
        ValueError,
        match=r"no template 'planer'; it may be planner, or another of: agent, agent.approval, code_interpreter, fw",
    ):
        packaged.find("planer")


@pytest.mark.parametrize("name", ["../planner", "a/planner", "a\\planner", "..", "/etc/passwd", "planner\0"])
def test_a_path_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is a path"):
        packaged.find(name)


def test_a_file_replaces_that_of_the_same_name_in_the_folders_behind(tmp_path: Path) -> None:
    project = write(tmp_path / "project", planner="project", fw__msg_nudge="Go on, {{if 1}}please{{endif}}.", more="m")
    both = Library(write(tmp_path / "role", planner="role"), project)
    assert [both.render(name) for name in ("planner", "fw.msg_nudge", "more")] == ["role", "Go on, please.", "m"]
    assert packaged.render("fw.msg_nudge") == Library(tmp_path).render("fw.msg_nudge")
    assert {*both.names} == {*packaged.names, "more"}


def test_an_include_is_looked_for_in_all_folders_from_the_first(tmp_path: Path) -> None:
    behind = write(tmp_path / "b", a='a {{include "rules.md"}}\n{{include "b"}}', rules="old {{x}}", b="b {{y}}\n")
    found = Library(write(tmp_path / "a", rules="new {{z}}"), behind).find("a")
    assert found.slots == {"y", "z"}
    assert found.render(y="{{include 'b'}}", z="z") == "a new z\nb {{include 'b'}}"


def test_an_original_is_that_of_the_next_folder_behind(tmp_path: Path) -> None:
    top = write(tmp_path / "1", planner="1 {{include original}}")
    middle = write(tmp_path / "3", planner="3 {{include original}}")
    text = Library(top, write(tmp_path / "2"), middle).find("planner")
    assert text.source.text == "1 {{include original}}"
    values = {slot: slot for slot in OF_ROLE}
    assert text.render(**values) == f"1 3 {packaged.render('planner', **values)}"


def test_a_json_template_included_in_text_is_its_json(tmp_path: Path) -> None:
    own = library(tmp_path, fw__user_message="Read: {{include original}}")
    assert (
        own.render("fw.user_message", message="m", attachments=(), system_message="") == 'Read: {"user_message": "m"}'
    )


def test_text_is_included_in_a_string_of_a_json_template(tmp_path: Path) -> None:
    own = library(tmp_path, a='{"a": "<{{include "b"}}>"}', b='"{{x}}"\n')
    assert own.render("a", x="\\") == '{"a": "<\\"\\\\\\">"}'


FAULTY = {
    "b.md, line 2: templates include each other without end: a → b → a": {
        "a": "{{include 'b'}}",
        "b": "\n{{include 'a'}}",
    },
    "a.md, line 1: templates include each other without end: a → a": {"a": "{{include 'a'}}"},
    "there is no template 'plannr'; do: include planner": {"a": "{{include 'plannr'}}"},
    "there is no original behind it; do: remove": {"a": "{{include original}}"},
    "a.md, line 2: 'b c' is no name of a slot": {"a": "x\n{{b c}}"},
    r"fw.intervention.md, line 3: there is no slot 'mesage'; do: use message": {
        "fw__intervention": '{\n\n"a": {{mesage}}}'
    },
    r"x.md, line 1: there is no slot 'y'": {"fw__error": "{{include 'x'}}", "x": "{{y}}"},
}


@pytest.mark.parametrize("told", FAULTY)
def test_a_faulty_template_is_refused_when_the_library_is_made(told: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=told):
        library(tmp_path, **FAULTY[told])


@pytest.mark.parametrize("order", [1, -1])
def test_includes_go_only_so_deep_whatever_the_names(order: int, tmp_path: Path) -> None:
    names = [f"t{number:02}" for number in range(MOST_INCLUDED + 1)][::order]
    texts = {name: f"{{{{include '{inner}'}}}}{{{{include 'leaf'}}}}" for name, inner in pairwise(names)}
    write(tmp_path / "deep", **texts, **{names[-1]: "x"}, leaf="")
    with pytest.raises(InvalidFile, match=f"more than 20 templates within each other: .*{names[-2]} → {names[-1]}"):
        Library(tmp_path / "deep")
    (tmp_path / "deep" / f"{names[0]}.md").unlink()
    assert Library(tmp_path / "deep").render(names[1]) == "x"


def test_what_changes_on_disk_is_seen_by_the_next_library(tmp_path: Path) -> None:
    own = library(tmp_path, a="old {{include 'b'}}", b="b")
    write(tmp_path, a="new", b="new", fw__msg_nudge="{{broken")
    assert own.render("a") == "old b"
    assert own.find("a") is own.find("a")
    (tmp_path / "fw.msg_nudge.md").unlink()
    assert Library(tmp_path).render("a") == "new"


def test_a_slot_that_the_caller_has_no_value_for_is_refused_when_it_is_found(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"a.md, line 1: there is no slot 'x'; do: use one of: y"):
        library(tmp_path, a="{{x}}").find("a", slots=["y"])


def test_a_text_of_ones_own_may_include_templates_of_the_library(tmp_path: Path) -> None:
    own = library(tmp_path, rules="No {{x}}.")
    assert own.parse("Rules: {{include 'rules'}}").render(x="guessing") == "Rules: No guessing."
    with pytest.raises(InvalidFile, match="template 'text': there is no template 'rulez'; do: include rules"):
        own.parse("{{include 'rulez'}}")
