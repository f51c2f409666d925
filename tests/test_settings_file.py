"""Files of settings: values with the lines they are written on, through anchors and merges, and what is none."""

import traceback
from itertools import pairwise
from pathlib import Path

import pytest

from callboard.runtime.errors import InvalidFile
from callboard.runtime.transcript_file import Loader, PureLoader
from callboard.service import settings_file
from callboard.service.settings_file import SettingsFile, key_path, read_settings_file

both_loaders = pytest.mark.parametrize("loader", [Loader, PureLoader])

MERGED = """\
base: &base
  name: small
  url: here
deep:
  inner: &inner {<<: *base, name: large}
list:
  - <<: [*inner, *base]
    limit: 3
  - *base
"""


def read(folder: Path, text: str, name: str = "callboard.yaml") -> SettingsFile:
    (folder / name).write_text(text, encoding="utf-8")
    return read_settings_file(folder / name)


def test_anchors_and_merges_are_resolved_and_the_nearer_value_counts(tmp_path: Path) -> None:
    small, large = {"name": "small", "url": "here"}, {"name": "large", "url": "here"}
    file = read(tmp_path, MERGED)
    assert file.data == {"base": small, "deep": {"inner": large}, "list": [{**large, "limit": 3}, small]}


@pytest.mark.parametrize(
    ("place", "source"),
    [
        (("deep", "inner", "name"), ("deep.inner.name", 5)),
        (("list", 0, "name"), ("list[0].name", 5)),
        (("list", 0, "url"), ("list[0].url", 3)),
        (("list", 1), ("list[1]", 1)),
        (("list", 0, "no", 2), ("list[0].no[2]", 7)),
        (("none",), ("none", 1)),
    ],
)
def test_a_value_knows_the_line_on_which_it_is_really_written(
    tmp_path: Path, place: tuple[str | int, ...], source: tuple[str, int]
) -> None:
    assert read(tmp_path, MERGED).source(place) == source


def test_a_fault_names_file_line_and_key(tmp_path: Path) -> None:
    fault = read(tmp_path, "a:\n  - b: 1\n").fault(("a", 0, "b"), "no", "yes")
    assert str(fault) == f"{tmp_path / 'callboard.yaml'}, line 2, a[0].b: no; do: yes"


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "# nothing\n").data == {}


def test_keys_are_text_whatever_they_look_like(tmp_path: Path) -> None:
    assert read(tmp_path, "on: 1\n2: 3\n").data == {"on": 1, "2": 3}


NINE = ", ".join(["*{0}"] * 9)
BOMB = "x: &x [1]\n" + "".join(f"{b}: &{b} [{NINE.format(a)}]\n" for a, b in pairwise("xyzvw"))
MERGE_BOMB = "x: &x {a: 1}\n" + "".join(f"{b}: &{b} {{<<: [{NINE.format(a)}]}}\n" for a, b in pairwise("xyzvwu"))

FAULTS = {
    "a: 1\nb: 2\na: 3\n": r"line 3, a: the key stands twice, on line 1 too",
    "a:\n  b: 1\n  b: 2\n": r"line 3, a\.b: the key stands twice, on line 2 too",
    "a: 1\nb: [1\n": r"line 3: .*expected",
    "- a\n": r"line 1: these are no settings",
    "a\n": r"line 1: these are no settings",
    "a: *b\n": r"line 1: found undefined alias",
    "a: 1\nb: &b\n  c: *b\n": r"line \d: .*without end",
    "a: &a\n  <<: *a\n": r"line 1: .*without end",
    BOMB: r"line 1: too many values",
    MERGE_BOMB: r"line 2: too many values",
    "a: {<<: 3}\n": r"line 1: only mappings can be merged",
    "? [a]\n: 1\n": r"line 1: a key is no text",
    "a: 1\nb: !x {c: 1}\n": r"line 2: !x is no kind of value",
    "a: !!python/name:os.system x\n": r"line 1: could not determine a constructor",
    "a: 1\nb: 2020-99-99\n": r"line 2: a value is not what it looks like",
    "a: 1\n---\nb: 1\n": r"line 2: expected a single document",
    "a: \x00\n": r"line 1: a character that YAML does not allow",
}


@pytest.mark.parametrize("text", FAULTS)
def test_what_cannot_be_read_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidFile, match=r"callboard\.yaml, " + FAULTS[text]):
        read(tmp_path, text)


@both_loaders
def test_json_is_read_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loader: type) -> None:
    monkeypatch.setattr(settings_file, "Loader", loader)
    file = read(tmp_path, '{\n\t"a.b": "\\/x",\n\t"c": [true, null]\n}', "taskweaver_config.json")
    assert file.data == {"a.b": "/x", "c": [True, None]}
    assert file.source(("c", 1)) == ("c[1]", 3)


@pytest.mark.parametrize("text", ["{\n'a': 1}", '{\n"a": 1,}', "a: 1\n", '{"a": 1,\n"a": 2}', "[" * 5000])
def test_what_is_no_json_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidFile, match=r"taskweaver_config\.json, line \d"):
        read(tmp_path, text, "taskweaver_config.json")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="No such file"):
        read_settings_file(tmp_path / "callboard.yaml")


@both_loaders
def test_what_is_wrong_with_yaml_shows_no_line_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loader: type
) -> None:
    monkeypatch.setattr(settings_file, "Loader", loader)
    secret = "tu" + "lip"
    with pytest.raises(InvalidFile) as caught:
        read(tmp_path, f"key: [{secret}\n")
    assert secret not in "".join(traceback.format_exception(caught.value))


def test_no_value_is_in_the_repr(tmp_path: Path) -> None:
    assert "tulip" not in repr(read(tmp_path, "key: tulip\n"))


def test_a_place_reads_as_one_writes_it() -> None:
    assert key_path(("roles", "subordinates", 0, "model")) == "roles.subordinates[0].model"
    assert key_path(()) == ""
