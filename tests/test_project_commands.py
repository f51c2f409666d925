"""`init`, `check` and `--project`: what a person types in a project's folder, and what they are told."""

import re
from pathlib import Path

import pytest

from callboard.runtime import Transcript
from callboard.service.command_line import main
from callboard.service.project_settings import read_project_settings

from .test_command_line import run_command

SETTINGS = """\
models:
  main: {url: "http://localhost:1/v1", name: small, key_env: SOME_KEY}
roles: Echo
limits: {replies: 3, seconds: 60}
logging.log_folder: logs
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with settings in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOME_KEY", "sk-tulip")
    (tmp_path / "callboard.yaml").write_text(SETTINGS)
    return tmp_path


def test_init_writes_settings_that_check_finds_nothing_wrong_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / "new")]) == 0
    assert main(["check", str(tmp_path / "new")]) == 0
    printed = capsys.readouterr().out
    assert f"{tmp_path / 'new' / 'callboard.yaml'} is written" in printed
    assert "    CodeInterpreter: settings name code_generator, model main\n" in printed


def test_all_that_the_written_settings_mention_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main(["init", str(tmp_path)])
    path = tmp_path / "callboard.yaml"
    said = re.sub(r"^( *)# ([a-z ]*- role: |[a-z_ ]+:)", r"\1\2", path.read_text(), flags=re.MULTILINE)
    path.write_text(said)
    (tmp_path / "my_roles.py").write_text("from callboard.actors import Echo\nclass Reviewer(Echo): pass\n")
    read = read_project_settings(tmp_path)
    assert (read.left_out, read.settings.import_from_project) == ((), True)
    assert [one.role for one in read.settings.roles.subordinates] == ["CodeInterpreter", "my_roles:Reviewer"]
    assert [*read.settings.experience.roles] == ["planner", "code_generator"]
    assert read.settings.limits.cost == 2.5


@pytest.mark.parametrize("name", ["callboard.yaml", "taskweaver_config.json"])
def test_init_leaves_settings_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / name).write_text("mine")
    assert main(["init", str(tmp_path)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]


def test_init_that_cannot_write_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["init", str(tmp_path / "file" / "new")]) == 1
    assert "was not written: Not a directory" in capsys.readouterr().err


def test_check_says_what_would_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 0
    printed = capsys.readouterr().out
    assert (
        printed
        == f"""\
Settings: callboard.yaml
Roles
  Echo: settings name echo
Models
  main: small at http://localhost:1/v1, with the key of SOME_KEY, for roles that name none
Templates: those of callboard
Conversations are saved as lessons in: {Path("experience")}
A round may use: 3 replies, 60 seconds
Left out
  line 5, logging.log_folder: nothing is logged; `conversation.events()` tells what happens
"""
    )


LESSON = "exp_id: {id}\nexperience_text: Answer politely.\n"
EXAMPLE = "enabled: {enabled}\nrounds: []\n"
GIVEN = """\
models: {main: {url: 'http://localhost:1', name: m}}
roles: {role: Planner, subordinates: [CodeInterpreter]}
experience: {folder: ., roles: {planner: {limit: 4}, code_generator: {dynamic_sub_path: true}}}
examples: {roles: {planner: {folder: shown}}}
"""


@pytest.fixture
def lessons(tmp_path: Path) -> Path:
    """A project with lessons and examples."""
    for name in ("shown", "sub"):
        (tmp_path / name).mkdir()
    (tmp_path / "callboard.yaml").write_text(GIVEN)
    for name in ("exp_a", "sub/exp_b", "sub/handcrafted_exp_c"):
        (tmp_path / f"{name}.yaml").write_text(LESSON.format(id=name[-1]))
    (tmp_path / "shown" / "one.yaml").write_text(EXAMPLE.format(enabled="true"))
    (tmp_path / "shown" / "two.yaml").write_text(EXAMPLE.format(enabled="false"))
    return tmp_path


def test_check_counts_lessons_and_examples(lessons: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(lessons)]) == 0
    printed = capsys.readouterr().out
    assert f"    lessons: 0, and 1 that wait for a refresh, in {lessons}, at most 4\n" in printed
    assert f"    examples: 1 in {lessons / 'shown'}\n" in printed
    chosen = f"in the sub folder of {lessons} that shared memory chooses (shown: 0; sub: 0, and 2 that wait"
    assert f"      lessons: {chosen}" in printed


def test_check_names_the_files_that_are_passed_over_and_exits_with_1(
    lessons: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (lessons / "exp_bad.yaml").write_text("exp_id: other\n")
    (lessons / "shown" / "bad.yaml").write_text("rounds: [\n")
    assert main(["check", str(lessons)]) == 1
    _, _, passed = capsys.readouterr().out.partition("Files that are passed over\n")
    assert [line.partition(",")[0].strip() for line in passed.splitlines()] == [
        str(lessons / "exp_bad.yaml"),
        str(lessons / "shown" / "bad.yaml"),
    ]


def test_check_tells_every_fault_on_a_line_and_exits_with_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "callboard.yaml").write_text("limit: 3\nroles: Echo\nlimits: {replies: x}\n")
    assert main(["check"]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in printed] == [
        "callboard.yaml, line 1, limit",
        "callboard.yaml, line 3, limits.replies",
    ]


def test_a_folder_without_settings_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path)]) == 1
    assert "write one with `callboard init`" in capsys.readouterr().out


@pytest.mark.slow
def test_a_chat_of_a_project_is_with_its_roles_and_tells_what_was_left_out(folder: Path) -> None:
    done = run_command("chat", "--project", folder, "--save", folder / "chat.yaml", input="hello\n")
    assert (done.returncode, "Echo, of" in done.stdout) == (0, True)
    assert done.stderr.startswith(f"callboard: {folder / 'callboard.yaml'}, line 5, logging.log_folder: left out: ")
    assert Transcript.restore_yaml(folder / "chat.yaml").rounds[0].post_list[-1].message == "hello"


@pytest.mark.parametrize("command", ["chat", "demo"])
def test_settings_that_cannot_be_used_are_one_line_and_exit_with_2(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (folder / "callboard.yaml").write_text("limit: 3\n")
    assert main([command]) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert output.err.startswith("callboard: callboard.yaml, line 1, limit: there is no such key")
