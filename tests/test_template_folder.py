"""A folder of templates: its files and their keys, and what cannot be read."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from callboard.prompts.library import Library
from callboard.prompts.template_folder import read_folder, read_package
from callboard.runtime.errors import InvalidFile

PLANNER = """\
version: 0.1
instructions: |-
  You are {{name}}.
  {{ include "planner.rules" }}
rules: "No {{what}}."
schema: |
  {"stop": {{stops}}}
"""


def test_the_keys_of_a_yaml_file_are_templates(tmp_path: Path) -> None:
    (tmp_path / "planner.yaml").write_text(PLANNER, encoding="utf-8")
    library = Library(tmp_path)
    assert [*read_folder(tmp_path)] == ["planner.instructions", "planner.rules", "planner.schema"]
    assert library.render("planner.instructions", name="P", what="guessing") == "You are P.\nNo guessing."
    assert library.find("planner.schema").build(stops=["x"]) == {"stop": ["x"]}


def test_one_yaml_file_may_replace_several_packaged_templates(tmp_path: Path) -> None:
    (tmp_path / "fw.yml").write_text("msg_nudge: Go on.\nmsg_limit: 'Enough: {{limit}}'\n", encoding="utf-8")
    assert Library(tmp_path).render("fw.msg_nudge") == "Go on."
    assert Library(tmp_path).render("fw.msg_limit", limit=3) == "Enough: 3"


def test_it_is_read_alike_wherever_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes("\ufeffa\r\n{{if x}}\r\né\r\n{{endif}}\r\nb\r\n".encode())
    assert Library(tmp_path).render("a", x=1) == "a\né\nb"


def test_other_files_hidden_ones_and_folders_are_no_templates(tmp_path: Path) -> None:
    for name in ("a.txt", ".hidden.md", ".md", "a.md~", "b.py"):
        (tmp_path / name).write_text("{{")
    (tmp_path / "folder").mkdir()
    assert read_folder(tmp_path) == {}


FAULTS = {
    "a: [1\n": r"a\.yaml, line 2: .*expected",
    "a: x\na: y\n": r"a\.yaml, line 2: the key 'a' stands twice",
    "- a\n": r"a\.yaml, line 1: this is no mapping",
    "": r"a\.yaml, line 1: this is no mapping",
    "a: x\nb: 1.5\n": r"a\.yaml, line 2, b: float is no text; do: write a text",
    "a: x\nb:\n  c: d\n": r"a\.yaml, line 2, b: dict is no text",
    "a: x\non: y\n": r"a\.yaml, line \d, True: the key True is no text",
    "a: !!python/name:os.system x\n": r"a\.yaml, line 1: could not determine a constructor",
    "a: x\nb: |\n  x\n  {{c d}}\n": r"a\.yaml, line 2, b: line 2 of its text: 'c d' is no name of a slot",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_faulty_yaml_file_is_refused_with_line_and_key(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidFile, match=FAULTS[text]):
        Library(tmp_path)


def test_a_link_may_lead_to_a_file_of_the_folder_and_not_out_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "..data").mkdir(parents=True)
    (folder / "..data" / "a.md").write_text("inside")
    (folder / "a.md").symlink_to(folder / "..data" / "a.md")
    (tmp_path / "linked").symlink_to(folder)
    assert Library(tmp_path / "linked").render("a") == "inside"
    (tmp_path / "secret").write_text("secret")
    (folder / "b.md").symlink_to(tmp_path / "secret")
    with pytest.raises(InvalidFile, match=r"b\.md: a link that leads out of the folder"):
        Library(folder)


def test_a_package_may_be_zipped_or_linked_by_its_installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache.md").write_text("linked")
    (tmp_path / "linked_package").mkdir()
    (tmp_path / "linked_package" / "__init__.py").touch()
    (tmp_path / "linked_package" / "a.md").symlink_to(tmp_path / "cache.md")
    with ZipFile(tmp_path / "packages.zip", "w") as archive:
        archive.writestr("zipped_package/__init__.py", "")
        archive.writestr("zipped_package/a.md", "zipped\n")
    for place in (tmp_path, tmp_path / "packages.zip"):
        monkeypatch.syspath_prepend(place)
    found = [read_package(name)["a"].text for name in ("linked_package", "zipped_package")]
    assert found == ["linked", "zipped\n"]


def test_two_templates_of_one_name_in_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "fw.msg_nudge.md").write_text("x")
    (tmp_path / "fw.yaml").write_text("msg_nudge: y")
    with pytest.raises(InvalidFile, match=r"two templates are called 'fw\.msg_nudge': .*md and .*yaml; do: rename"):
        Library(tmp_path)


def test_what_cannot_be_read_is_told_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="missing: No such file or directory; do: give a folder"):
        Library(tmp_path / "missing")
    (tmp_path / "a.md").write_bytes(b"x\n\xff")
    with pytest.raises(InvalidFile, match=r"a\.md, line 2: this is no UTF-8"):
        Library(tmp_path)
    (tmp_path / "a.md").unlink()
    (tmp_path / "a.md").mkdir()
    with pytest.raises(InvalidFile, match=r"a\.md: Is a directory"):
        Library(tmp_path)
