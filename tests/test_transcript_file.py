"""YAML that both libraries read and write alike, and files that are replaced whole."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from callboard.runtime.errors import InvalidFile
from callboard.runtime.transcript_file import (
    Dumper,
    Loader,
    PureDumper,
    PureLoader,
    dump,
    line_of,
    parse,
    read_text,
    replace_file,
)

needs_libyaml = pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml")
both_loaders = pytest.mark.parametrize("loader", [Loader, PureLoader])
both_dumpers = pytest.mark.parametrize("dumper", [Dumper, PureDumper])


@needs_libyaml
def test_libyaml_is_used_where_it_is_there() -> None:
    assert issubclass(Dumper, yaml.CSafeDumper)
    assert issubclass(Loader, yaml.CSafeLoader)


# Where the writers disagree unless told what to do.
AWKWARD: dict[str, Any] = {
    "no key": {"": ""},
    "key of 127": {"k" * 127: 1},
    "key of 128": {"k" * 128: 1},
    "key of 129": {"k" * 129: {"x": 1}},
    "key of few characters and many bytes": {"é" * 100: 1},
    "key of two lines": {"a\nb": 1},
    "long key of two lines": {"a\n" * 100: [1]},
    "keys of breaks": {"\r": 1, "\x85": 1, "\u2028": 1, "\u2029a": 1, "\n": [1]},
    "long line": {"a": "word " * 1000},
    "trailing blanks": ["a \n", " a", "a\n\n", "\ta", " \n a"],
    "numbers as text": {"1": "1", "1.0": "1e5", "0x1f": "1_000", "1:30": "0o7"},
    "words that mean something": ["yes", "No", "null", "~", "true", "2024-01-31", "=", "<<", "...", "---"],
    "signs that mean something": ["a: b", "a #b", "- a", "? a", "*a", "&a", "!a", "%a", "@a", "`a", "'", '"'],
    "merge as key": {"<<": {"a": 1}, "=": 1},
    "floats": [1e16, 1.5e-7, -0.0, 1e300, 5e-324],
    "nothing": [{}, [], None, ""],
}


@pytest.mark.parametrize("name", AWKWARD)
def test_both_writers_write_the_same_and_both_readers_read_it_back(name: str) -> None:
    written = dump(AWKWARD[name])
    assert written == dump(AWKWARD[name], PureDumper)
    assert repr(parse(written.decode())) == repr(parse(written.decode(), PureLoader)) == repr(AWKWARD[name])


@both_dumpers
@pytest.mark.parametrize(("text", "yaml_text"), [("a\nb", '"a\\nb"'), ("é", '"\\xE9"'), ("a b", "a b"), ("1", "'1'")])
def test_text_beyond_a_line_of_ascii_is_written_escaped_in_one_line(text: str, yaml_text: str, dumper: Any) -> None:
    assert dump({"a": text}, dumper).decode() == f"a: {yaml_text}\n"


@both_dumpers
def test_a_long_line_stays_one_line(dumper: Any) -> None:
    text = "word \x85" * 50_000
    written = dump({"a": text}, dumper)
    assert written.count(b"\n") == 1
    assert parse(written.decode()) == {"a": text}


@both_dumpers
def test_values_that_stand_twice_are_written_twice(dumper: Any) -> None:
    shared = [1]
    assert dump({"a": shared, "b": shared}, dumper) == b"a:\n- 1\nb:\n- 1\n"


@both_dumpers
def test_what_is_no_plain_data_is_not_written(dumper: Any) -> None:
    with pytest.raises(yaml.YAMLError):
        dump({"a": object()}, dumper)


@both_loaders
def test_values_may_be_shared_by_alias(loader: Any) -> None:
    assert parse("a: &x [1]\nb: *x", loader) == {"a": [1], "b": [1]}


@both_loaders
def test_aliases_of_aliases_may_not_multiply(loader: Any) -> None:
    lines = ["a: &a [[], [], [], [], [], []]"]
    lines += [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in zip("abcdef", "bcdefg", strict=True)]
    with pytest.raises(InvalidFile, match="multiply"):
        parse("\n".join(lines), loader)


@both_loaders
@pytest.mark.parametrize("text", ["a: 1\nb: 2\na: 3", "{c: {a: 1,\n b: 2,\n a: 3}}"])
def test_a_key_that_stands_twice_is_refused_with_its_line(text: str, loader: Any) -> None:
    with pytest.raises(InvalidFile, match="line 3: the key 'a' stands twice"):
        parse(text, loader)


@both_loaders
def test_a_merge_may_be_overridden(loader: Any) -> None:
    assert parse("x: &x {a: 1, b: 2}\ny: {<<: *x, a: 3}", loader)["y"] == {"a": 3, "b": 2}


@both_loaders
@pytest.mark.parametrize("tag", ["python/object/apply:os.getcwd", "python/name:os.getcwd", "python/tuple"])
def test_a_tag_of_python_runs_nothing(tag: str, loader: Any) -> None:
    with pytest.raises(InvalidFile, match="line 2: could not determine a constructor"):
        parse(f"a: 1\nb: !!{tag} []", loader)


@both_loaders
def test_a_character_that_yaml_does_not_allow_is_refused_with_its_line(loader: Any) -> None:
    with pytest.raises(InvalidFile, match="line 3: a character"):
        parse("a: é\nb: é\nc: \x07", loader)


@both_loaders
def test_a_mapping_that_merges_another_may_be_merged_itself(loader: Any) -> None:
    text = "a: &a {x: 1, y: 1}\nq: {b: &b {<<: *a, x: 2}}\nc: {<<: *b}\nd: {<<: *b, y: 3}"
    read = parse(text, loader)
    assert (read["q"]["b"], read["c"], read["d"]) == ({"x": 2, "y": 1}, {"x": 2, "y": 1}, {"x": 2, "y": 3})
    with pytest.raises(InvalidFile, match="stands twice"):
        parse("a: &a {x: 1, x: 2}\nc: {<<: *a}", loader)


@both_loaders
def test_lists_in_lists_without_end_are_refused(loader: Any) -> None:
    with pytest.raises(InvalidFile, match="nest"):
        parse("[" * 1500, loader)


@both_loaders
def test_a_number_beyond_all_measure_is_refused(loader: Any) -> None:
    with pytest.raises(InvalidFile, match="cannot be read"):
        parse("a: 1" + "0" * 5000, loader)


@pytest.mark.parametrize(
    ("place", "line"),
    [((), 2), (("a",), 2), (("a", 1), 4), (("a", 1, "y"), 5), (("a", 1, "z"), 4), (("b", "c"), 6), ((7,), 7)],
)
def test_the_line_of_a_place_is_that_of_the_nearest_value_that_is_there(place: Any, line: int) -> None:
    text = "# notes\na:\n- 1\n- x: 2\n  y: 3\nb: 4\n7: 5\n"
    assert line_of(text, place) == line


def test_an_empty_text_has_no_lines() -> None:
    assert line_of("", ("a",)) is None


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "notes.yaml").write_bytes(b"\xef\xbb\xbfa: 1")
    assert read_text(tmp_path / "notes.yaml") == "a: 1"


def test_text_that_is_no_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "notes.yaml").write_bytes(b"a: 1\nb: \xff")
    with pytest.raises(InvalidFile, match=r"notes\.yaml, line 2: this is no UTF-8"):
        read_text(tmp_path / "notes.yaml")


def test_a_file_is_made_and_replaced_and_nothing_else_stays(tmp_path: Path) -> None:
    replace_file(tmp_path / "notes.yaml", b"one")
    replace_file(str(tmp_path / "notes.yaml"), b"two")
    assert (tmp_path / "notes.yaml").read_bytes() == b"two"
    assert [path.name for path in tmp_path.iterdir()] == ["notes.yaml"]


def test_a_link_stays_a_link_to_the_replaced_file(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_bytes(b"one")
    (tmp_path / "link.yaml").symlink_to("real.yaml")
    replace_file(tmp_path / "link.yaml", b"two")
    assert (tmp_path / "link.yaml").is_symlink()
    assert (tmp_path / "real.yaml").read_bytes() == b"two"


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "notes.yaml"
    path.write_bytes(b"one")
    path.chmod(0o600)
    replace_file(path, b"two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_in_no_folder_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "none" / "notes.yaml", b"one")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_step_that_fails_leaves_the_old_file_alone(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "the disk is full")

    (tmp_path / "notes.yaml").write_bytes(b"one")
    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="the disk is full"):
        replace_file(tmp_path / "notes.yaml", b"two")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"one"]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of what was synced and replaced, in order."""
    done: list[str] = []
    sync, put = os.fsync, os.replace

    def fsync(handle: int) -> None:
        done.append("sync folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "sync file")
        sync(handle)

    def put_in_place(source: Path, target: Path) -> None:
        done.append("replace")
        put(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", put_in_place)
    yield done


@pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="this system cannot sync a folder")
def test_the_data_is_on_disk_before_the_name_and_the_name_before_the_end(steps: list[str], tmp_path: Path) -> None:
    replace_file(tmp_path / "notes.yaml", b"one")
    assert steps == ["sync file", "replace", "sync folder"]


def test_where_a_folder_cannot_be_synced_the_file_is_replaced_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_DIRECTORY", raising=False)
    replace_file(tmp_path / "notes.yaml", b"one")
    assert (tmp_path / "notes.yaml").read_bytes() == b"one"
