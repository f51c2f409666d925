"""The command `callboard experience`: what it prints, and how it says what is wrong."""

from pathlib import Path

import pytest

from callboard.experience.lesson_file import write_handcrafted
from callboard.runtime.transcript import Transcript
from callboard.service.command_line import main
from callboard.service.experience_folder import experience_folder

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two lessons."""
    for id, text in (("year", "Say the year of each figure.\nAlways."), ("price", "Prices are in euros.")):
        (tmp_path / f"handcrafted_exp_{id}.yaml").write_bytes(write_handcrafted(id, text))
    return tmp_path


def run(capsys: Captured, folder: Path, *arguments: str) -> tuple[int, list[str], str]:
    """The exit code, and what it printed on either channel."""
    code = main(["experience", *arguments, "--folder", str(folder)])
    printed, error = capsys.readouterr()
    return code, printed.splitlines(), error


def test_lessons_are_made_listed_shown_searched_and_removed(folder: Path, capsys: Captured) -> None:
    code, lines, _ = run(capsys, folder, "refresh")
    assert (code, lines[-2:]) == (0, ["made of conversations: 0, new vectors: 2", "as they were: 0"])
    assert run(capsys, folder, "list") == (
        0,
        ["price  Prices are in euros.", "year  Say the year of each figure. Always."],
        "",
    )
    assert run(capsys, folder, "show", "year") == (0, ["Say the year of each figure.", "Always."], "")
    code, lines, _ = run(capsys, folder, "search", "Which year is each figure of?", "--limit", "1")
    score, id, *text = lines[0].split()
    assert (code, len(lines), id, float(score) > 0.2, text[0]) == (0, 1, "year", True, "Say")
    code, lines, _ = run(capsys, folder, "remove", "year")
    assert lines == ["removed handcrafted_exp_year.yaml", "removed exp_year.yaml"]
    assert run(capsys, folder, "list")[1] == ["price  Prices are in euros."]


def test_a_lesson_of_ones_own_waits_for_the_next_refresh(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "new"
    assert run(capsys, folder, "add", "Be short.", "--id", "short")[1] == ["short: is found after the next refresh"]
    assert run(capsys, folder, "list")[1] == ["short  not read yet  (waits for refresh)"]
    run(capsys, folder, "refresh")
    assert run(capsys, folder, "list")[1] == ["short  Be short."]


def test_a_saved_conversation_waits_for_a_model(folder: Path, capsys: Captured) -> None:
    Transcript("conv-1", ()).save(folder / "raw_exp_conv-1.yaml")
    code, lines, _ = run(capsys, folder, "refresh")
    assert (code, lines[-1]) == (0, "conversations that wait for a model: conv-1")
    assert run(capsys, folder, "list")[1][0] == "conv-1  not read yet  (waits for refresh)"


def test_a_file_that_is_passed_over_is_named_and_the_others_work(folder: Path, capsys: Captured) -> None:
    (folder / "handcrafted_exp_bad.yaml").write_text("exp_id: other\nexperience_text: x\n")
    code, lines, error = run(capsys, folder, "refresh")
    assert (code, lines[-2]) == (1, "made of conversations: 0, new vectors: 2")
    assert "passed over: " in error and "handcrafted_exp_bad.yaml, line 1, exp_id" in error
    code, lines, _ = run(capsys, folder, "list")
    assert (code, lines[1:]) == (0, ["price  Prices are in euros.", "year  Say the year of each figure. Always."])


@pytest.mark.parametrize(
    ("arguments", "expected", "told"),
    [
        (("show", "nobody"), 1, "there is no lesson 'nobody'"),
        (("remove", "nobody"), 1, "there is no lesson 'nobody'"),
        (("remove", "../x"), 1, "no id of a lesson"),
        (("add", "x", "--id", "year"), 1, "is taken"),
        (("add", " "), 1, "not empty"),
        (("search", "x", "--limit", "0"), 1, "limit is a whole number"),
        (("search", "x", "--threshold", "2"), 1, "threshold is a number"),
    ],
)
def test_what_is_wrong_is_one_line(
    folder: Path, capsys: Captured, arguments: tuple[str, ...], expected: int, told: str
) -> None:
    code, lines, error = run(capsys, folder, *arguments)
    assert (code, lines, error.count("\n")) == (expected, [], 1)
    assert error.startswith("callboard: ") and told in error


@pytest.mark.parametrize("what", [("list",), ("search", "x"), ("refresh",)])
def test_a_folder_that_is_not_there_is_told(tmp_path: Path, capsys: Captured, what: tuple[str, ...]) -> None:
    code, lines, error = run(capsys, tmp_path / "no", *what)
    assert (code, lines) == (2, [])
    assert str(tmp_path / "no") in error


def test_what_saves_and_what_reads_look_at_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert experience_folder() == tmp_path / "experience"
    assert experience_folder(Path("lessons")) == tmp_path / "lessons"


def test_a_terminal_is_not_told_what_lessons_hold_of_escapes(folder: Path, capsys: Captured) -> None:
    (folder / "handcrafted_exp_odd.yaml").write_bytes(write_handcrafted("odd", "a\x1b[31mb"))
    run(capsys, folder, "refresh")
    assert "\x1b" not in "".join(run(capsys, folder, "show", "odd")[1] + run(capsys, folder, "list")[1])


def test_in_a_project_the_folder_is_the_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (tmp_path / "callboard.yaml").write_text(
        "models: {small: {url: 'http://127.0.0.1:9/v1', name: small}}\nexperience: {folder: lessons}\n"
    )
    lessons = tmp_path / "lessons"
    lessons.mkdir()
    (lessons / "handcrafted_exp_year.yaml").write_bytes(write_handcrafted("year", "Say the year."))
    assert main(["experience", "refresh", "--project", str(tmp_path)]) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["experience", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "year  Say the year."
