"""Transcripts as files: what loads, what is refused and how it says so, and what a save leaves behind."""

import json
import re
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import pytest
import yaml
from yaml import YAMLError

from callboard.runtime.attachment import Attachment
from callboard.runtime.errors import InvalidFile
from callboard.runtime.json_value import FrozenMapping
from callboard.runtime.markers import END, START
from callboard.runtime.post import Marks, Post
from callboard.runtime.round import Round
from callboard.runtime.shared_memory import SharedMemoryEntry
from callboard.runtime.text import Text, temporal
from callboard.runtime.transcript import Transcript
from callboard.runtime.transcript_file import Loader, PureLoader, dump, parse

# As the original writes its examples: no ids, no extra.
SAMPLE = """\
enabled: true
version: 3
rounds:
  - user_query: add two numbers
    state: finished          # or created
    post_list:
      - {message: add two numbers, send_from: User, send_to: Planner, attachment_list: []}
      - message: please compute 2+2
        send_from: Planner
        send_to: CodeInterpreter
        attachment_list:
          - {type: plan, content: "1. compute 2+2"}
"""

ENTRY = SharedMemoryEntry("plan", "1. think", "round", "sme-1")
ATTACHMENTS = (
    Attachment.create("shared_memory_entry", "a note", "atta-1", ENTRY),
    Attachment.create("artifact_paths", ["a.csv"], "atta-2"),
    Attachment.create("plan", "1. think", "atta-3", {"a": [1]}),
)
ASKED = Post("post-1", "User", "Planner", "hello", ATTACHMENTS)
ANSWERED = Post("post-2", "Planner", "User", "done", (), Marks("post-1", "reply"))
ROUNDS = (Round("round-1", "hello", "finished", (ASKED, ANSWERED)), Round("round-2", "more", "stopped", ()))
TRANSCRIPT = Transcript("conv-1", ROUNDS, ({"name": "sql"},), (), False, FrozenMapping({"version": 3}))


def written(folder: Path, text: str) -> Path:
    path = folder / "notes.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path) -> InvalidFile:
    with pytest.raises(InvalidFile) as caught:
        Transcript.from_yaml(path)
    return caught.value


def test_a_file_of_the_original_loads(tmp_path: Path) -> None:
    transcript = Transcript.from_yaml(written(tmp_path, SAMPLE))
    (round_,) = transcript.rounds
    assert (round_.user_query, round_.state, len(round_.post_list)) == ("add two numbers", "finished", 2)
    assert str(round_.post_list[1].attachment_list[0]) == "PLAN: 1. compute 2+2"
    assert transcript.roles == ("User", "Planner", "CodeInterpreter")


def test_unknown_keys_at_the_top_are_kept_and_written_back(tmp_path: Path) -> None:
    transcript = Transcript.from_yaml(written(tmp_path, SAMPLE))
    assert transcript.extra == {"version": 3}
    assert list(transcript.to_dict()) == ["id", "plugins", "roles", "enabled", "rounds", "version"]


def test_unknown_keys_further_down_are_passed_over(tmp_path: Path) -> None:
    text = SAMPLE.replace("    state: finished", "    mood: good\n    state: finished")
    assert len(Transcript.from_yaml(written(tmp_path, text)).rounds) == 1


def test_an_extra_cannot_take_the_place_of_a_field() -> None:
    with pytest.raises(ValueError, match="fields: rounds"):
        Transcript("conv-1", (), extra=FrozenMapping({"rounds": 1}))


def test_roles_that_posts_name_are_added_in_order_of_appearance() -> None:
    assert Transcript("conv-1", ROUNDS).roles == ("User", "Planner")
    assert Transcript("conv-1", ROUNDS, roles=("Idle", "Planner")).roles == ("Idle", "Planner", "User")


def test_a_restored_transcript_is_the_same() -> None:
    assert Transcript.restore(TRANSCRIPT.to_dict()) == TRANSCRIPT


def test_a_saved_transcript_is_restored_the_same(tmp_path: Path) -> None:
    TRANSCRIPT.save(tmp_path / "notes.yaml")
    assert Transcript.restore_yaml(tmp_path / "notes.yaml") == TRANSCRIPT


def test_a_transcript_from_a_dict_has_new_ids_save_those_of_attachments() -> None:
    transcript = Transcript.from_dict(TRANSCRIPT.to_dict())
    new = {transcript.id, *(round_.id for round_ in transcript.rounds)}
    new |= {post.id for round_ in transcript.rounds for post in round_.post_list}
    assert len(new) == 5
    assert not new & {"conv-1", "round-1", "round-2", "post-1", "post-2"}
    assert transcript.rounds[0].post_list[0].attachment_list == ATTACHMENTS


def test_replies_in_a_new_transcript_point_to_the_new_posts() -> None:
    asked, answered = Transcript.from_dict(TRANSCRIPT.to_dict()).rounds[0].post_list
    assert answered.marks == Marks(asked.id, "reply")


def test_a_reply_may_point_to_a_post_of_a_later_round() -> None:
    rounds = (Round("round-1", "", "created", (ANSWERED,)), Round("round-2", "", "created", (ASKED,)))
    fresh = Transcript.from_dict(Transcript("conv-1", rounds).to_dict()).rounds
    assert fresh[0].post_list[0].marks.in_reply_to == fresh[1].post_list[0].id


def test_a_reply_to_a_post_that_is_not_there_keeps_what_it_says() -> None:
    rounds = (Round("round-1", "", "created", (ANSWERED,)),)
    (round_,) = Transcript.from_dict(Transcript("conv-1", rounds).to_dict()).rounds
    assert round_.post_list[0].marks.in_reply_to == "post-1"


def test_a_transcript_from_a_dict_forgets_roles_that_never_spoke() -> None:
    transcript = replace(TRANSCRIPT, roles=("Idle",))
    assert Transcript.from_dict(transcript.to_dict()).roles == ("User", "Planner")
    assert Transcript.restore(transcript.to_dict()).roles == ("Idle", "User", "Planner")


@pytest.mark.parametrize(
    ("key", "remove"),
    [
        ("id", lambda entry: entry),
        ("rounds[1].id", lambda entry: entry["rounds"][1]),
        ("rounds[0].post_list[1].id", lambda entry: entry["rounds"][0]["post_list"][1]),
    ],
)
def test_restoring_without_an_id_is_refused_with_the_way_out(key: str, remove: Any) -> None:
    entry = TRANSCRIPT.to_dict()
    del remove(entry)["id"]
    with pytest.raises(InvalidFile, match="from_yaml") as caught:
        Transcript.restore(entry)
    assert caught.value.key == key
    assert Transcript.from_dict(entry).extra == {"version": 3}


def test_null_lists_are_empty() -> None:
    entry = {"enabled": True, "plugins": None, "roles": None, "rounds": [{**ROUNDS[1].to_dict(), "post_list": None}]}
    transcript = Transcript.from_dict(entry)
    assert (transcript.plugins, transcript.roles, transcript.rounds[0].post_list) == ((), (), ())


# What is replaced in the sample, by what; then the line and key where it is refused, and a word of the reason.
REFUSED = {
    "a number for a message": ("please compute 2+2", "5", 8, "rounds[0].post_list[1].message", "quotes"),
    "a date for a message": ("please compute 2+2", "2024-01-31", 8, "rounds[0].post_list[1].message", "quotes"),
    "an unknown type": (
        "type: plan",
        "type: board",
        12,
        "rounds[0].post_list[1].attachment_list[0].type",
        "'board' is no attachment type",
    ),
    "a retired type": (
        "type: plan",
        "type: python",
        12,
        "rounds[0].post_list[1].attachment_list[0].type",
        "reply_type with the content python",
    ),
    "a list for a content": (
        '"1. compute 2+2"',
        "[a]",
        12,
        "rounds[0].post_list[1].attachment_list[0]",
        "not str",
    ),
    "a number for a content": (
        '"1. compute 2+2"',
        "1",
        12,
        "rounds[0].post_list[1].attachment_list[0].content",
        "should be text",
    ),
    "nan in an extra": (
        '"1. compute 2+2"',
        "x, extra: {a: [.nan]}",
        12,
        "rounds[0].post_list[1].attachment_list[0].extra",
        r"value\.a\[0\] is nan",
    ),
    "an entry without content": (
        "type: plan, ",
        "type: shared_memory_entry, extra: {type: plan, scope: round}, ",
        12,
        "rounds[0].post_list[1].attachment_list[0]",
        "extra has no key 'content'",
    ),
    "an entry of unknown scope": (
        "type: plan, ",
        "type: shared_memory_entry, extra: {type: plan, content: x, scope: day}, ",
        12,
        "rounds[0].post_list[1].attachment_list[0]",
        "'day' is no scope",
    ),
    "an attachment that is a number": (
        "attachment_list: []",
        "attachment_list: [3]",
        7,
        "rounds[0].post_list[0].attachment_list[0]",
        "mapping",
    ),
    "an unknown kind": ("list: []", "list: [], kind: shout", 7, "rounds[0].post_list[0].kind", "'nudge'"),
    "an extra that is a number": ("list: []", "list: [], extra: 3", 7, "rounds[0].post_list[0].extra", "mapping"),
    "words that are a number": ("list: []", "list: [], words: 3", 7, "rounds[0].post_list[0].words", "quotes"),
    "system messages that are one": (
        "list: []",
        "list: [], system_message: be brief",
        7,
        "rounds[0].post_list[0].system_message",
        "write a list",
    ),
    "bytes for a message": (
        "please compute 2+2",
        "!!binary aGk=",
        8,
        "rounds[0].post_list[1].message",
        "quotes",
    ),
    "an unknown state": ("state: finished", "state: done", 5, "rounds[0].state", "'stopped'"),
    "no sender": ("        send_from: Planner\n", "", 8, "rounds[0].post_list[1].send_from", "missing"),
    "no enabled": ("enabled: true\n", "", 1, "enabled", "write enabled:"),
    "enabled in words": ("enabled: true", "enabled: sure", 1, "enabled", "true or false"),
    "plugins that are no list": ("version: 3", "plugins: 3", 2, "plugins", "list"),
    "nan in a plugin": ("version: 3", "plugins: [{a: .nan}]", 2, "plugins[0]", "nan"),
    "a date under an unknown key": ("version: 3", "version: 2024-01-31", 2, "version", "type date"),
    "a key that is no text": ("version: 3", "7: 3", 2, "[7]", "no string"),
    "data nested too deep": ("version: 3", f"version: {'[' * 900}{']' * 900}", 2, "version", "nested deeper"),
    "a key that stands twice": ("version: 3", "enabled: false", 2, None, "'enabled' stands twice"),
    "a tag of Python": ("version: 3", "version: !!python/object:os.system x", 2, None, "tag"),
    "a control character": ("version: 3", "version: \x01", 2, None, "does not allow"),
    "an unknown alias": ("version: 3", "version: *a", 2, None, "undefined alias"),
    "a value in itself": ("version: 3", "version: &a [*a]", None, None, "multiply"),
    "a day that is none": ("version: 3", "version: 2024-13-45", None, None, "month"),
    "broken YAML": ("rounds:", "- x", 3, None, "correct the YAML"),
    "no mapping": (SAMPLE, "- x", 1, None, "no mapping"),
    "an empty file": (SAMPLE, "", None, None, "no mapping"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_file_is_refused_with_path_line_key_and_reason(name: str, tmp_path: Path) -> None:
    old, new, line, key, reason = REFUSED[name]
    path = written(tmp_path, SAMPLE.replace(old, new, 1))
    error = refusal(path)
    assert (error.path, error.line, error.key) == (str(path), line, key)
    assert re.search(reason, str(error))
    assert error.remedy


def test_a_bad_dict_is_refused_with_the_key_alone() -> None:
    entry = TRANSCRIPT.to_dict()
    entry["rounds"][0]["post_list"][1]["message"] = 5
    with pytest.raises(InvalidFile) as caught:
        Transcript.from_dict(entry)
    assert (caught.value.path, caught.value.line) == (None, None)
    assert caught.value.key == "rounds[0].post_list[1].message"


def test_half_a_surrogate_pair_in_a_dict_is_refused() -> None:
    entry = TRANSCRIPT.to_dict()
    entry["rounds"][0]["post_list"][1]["message"] = "\ud800"
    with pytest.raises(InvalidFile, match=r"rounds\[0\]\.post_list\[1\]\.message: .*surrogate"):
        Transcript.from_dict(entry)


def test_a_file_that_is_not_there_is_refused_with_its_path(tmp_path: Path) -> None:
    error = refusal(tmp_path / "none.yaml")
    assert str(error).startswith(f"{tmp_path / 'none.yaml'}: No such file")


def test_a_folder_is_refused_with_its_path(tmp_path: Path) -> None:
    assert refusal(tmp_path).path == str(tmp_path)


def test_null_values_of_marks_load(tmp_path: Path) -> None:
    text = SAMPLE.replace("attachment_list: []", "attachment_list: null, at: null, words: null, extra: null")
    assert Transcript.from_yaml(written(tmp_path, text)).rounds[0].post_list[0].marks == Marks()


def test_a_save_that_cannot_be_leaves_the_old_file_as_it_was(tmp_path: Path) -> None:
    path = written(tmp_path, SAMPLE)
    unsaid = replace(TRANSCRIPT, id=object())  # type: ignore[arg-type]
    with pytest.raises(YAMLError):
        unsaid.save(path)
    assert path.read_text(encoding="utf-8") == SAMPLE
    assert list(tmp_path.iterdir()) == [path]


def written_json(folder: Path, entry: Any) -> Path:
    """A file of JSON, with a line for each value."""
    path = folder / "notes.json"
    path.write_text(json.dumps(entry, indent=1, ensure_ascii=False), encoding="utf-8")
    return path


def test_a_transcript_is_saved_and_restored_as_json(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    TRANSCRIPT.save_json(path)
    assert json.loads(path.read_text(encoding="utf-8")) == TRANSCRIPT.to_dict()
    assert Transcript.restore_json(path) == TRANSCRIPT
    fresh = Transcript.from_json(path)
    assert fresh.id != "conv-1"
    assert fresh.rounds[0].post_list[0].attachment_list == ATTACHMENTS


def test_json_that_cannot_be_written_leaves_the_old_file_as_it_was(tmp_path: Path) -> None:
    path = written_json(tmp_path, {})
    with pytest.raises(TypeError):
        replace(TRANSCRIPT, id=object()).save_json(path)  # type: ignore[arg-type]  # that it is refused is the test
    assert path.read_text(encoding="utf-8") == "{}"


def test_a_bad_json_file_is_refused_with_path_line_key_and_reason(tmp_path: Path) -> None:
    entry = TRANSCRIPT.to_dict()
    entry["rounds"][0]["post_list"][1]["message"] = 5
    path = written_json(tmp_path, entry)
    with pytest.raises(InvalidFile, match="put the value in quotes") as caught:
        Transcript.from_json(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert (caught.value.path, caught.value.key) == (str(path), "rounds[0].post_list[1].message")
    assert lines[(caught.value.line or 0) - 1] == '     "message": 5,'


def test_restoring_json_without_an_id_is_refused_at_the_value_that_lacks_it(tmp_path: Path) -> None:
    entry = TRANSCRIPT.to_dict()
    del entry["rounds"][1]["id"]
    with pytest.raises(InvalidFile) as caught:
        Transcript.restore_json(written_json(tmp_path, entry))
    assert caught.value.key == "rounds[1].id"
    assert Transcript.from_json(tmp_path / "notes.json").rounds[1].state == "stopped"


# As others write it: no place beside the markers.
TEMPORAL = SAMPLE.replace("1. compute 2+2", f"1. compute {START}2+2{END}")
PLACE = "{start: 11, end: 68}"


def test_an_example_that_is_not_enabled_loads_and_says_so(tmp_path: Path) -> None:
    transcript = Transcript.from_yaml(written(tmp_path, SAMPLE.replace("enabled: true", "enabled: false")))
    assert (transcript.enabled, len(transcript.rounds)) == (False, 1)
    assert "Not enabled" in transcript.to_markdown()
    assert "Not enabled" not in replace(transcript, enabled=True).to_markdown()


@pytest.mark.parametrize("more", ["", f", temporal: [{PLACE}]", ", temporal: []"])
def test_markers_of_a_file_mean_something_where_the_key_says_so_or_is_not_there(more: str, tmp_path: Path) -> None:
    text = TEMPORAL.replace(f'{END}"', f'{END}"{more}')
    (attachment,) = Transcript.from_yaml(written(tmp_path, text)).rounds[0].post_list[1].attachment_list
    wanted = Text(f"1. compute {START}2+2{END}") if more.endswith("[]") else "1. compute " + temporal("2+2")
    assert (attachment.content, attachment.temporal) == (wanted.string, wanted.spans)


# The value of the key; then the place of the fault in it, and a word of the reason.
MISPLACED = {
    "[{start: 10, end: 68}]": ("[0]", "no part between markers"),
    f"[{PLACE}, {PLACE}]": ("[1]", "no part between markers"),
    "[{start: 11}]": ("[0].end", "missing"),
    "[{start: 11, end: true}]": ("[0].end", "whole number"),
    "[{start: 11, end: 68, lifetime: day}]": ("[0].lifetime", "'round'"),
    "[[11, 68]]": ("[0]", "mapping"),
    "": ("", "write a list"),
    "5": ("", "write a list"),
}


@pytest.mark.parametrize("value", MISPLACED)
def test_a_place_that_is_none_is_refused_with_line_and_key(value: str, tmp_path: Path) -> None:
    place, reason = MISPLACED[value]
    error = refusal(written(tmp_path, TEMPORAL.replace(f'{END}"', f'{END}",\n             temporal: {value}')))
    assert (error.line, error.key) == (13, f"rounds[0].post_list[1].attachment_list[0].temporal{place}")
    assert re.search(reason, str(error))


def test_a_place_in_a_message_is_refused_with_its_key(tmp_path: Path) -> None:
    text = SAMPLE.replace("attachment_list: []", "attachment_list: [], temporal: [{start: 0, end: 3}]")
    assert refusal(written(tmp_path, text)).key == "rounds[0].post_list[0].temporal[0]"


@pytest.mark.slow
def test_five_thousand_rounds_load_and_libyaml_reads_them_in_less_than_half_the_time(tmp_path: Path) -> None:
    rounds = tuple(Round(f"round-{number}", "hello", "finished", (ANSWERED,) * 6) for number in range(5_000))
    Transcript("conv-1", rounds).save(tmp_path / "notes.yaml")
    assert Transcript.restore_yaml(tmp_path / "notes.yaml").rounds == rounds
    if yaml.__with_libyaml__:
        text = dump(Transcript("conv-1", rounds[:200]).to_dict()).decode()
        assert cpu_seconds(Loader, text) < cpu_seconds(PureLoader, text) / 2


def cpu_seconds(loader: Any, text: str) -> float:
    """What it takes to read the text."""
    started = process_time()
    parse(text, loader)
    return process_time() - started
