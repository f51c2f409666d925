"""A project's settings: what the file says, with its defaults, and every fault where it stands, without a secret."""

import copy
import pickle
import re
import traceback
from pathlib import Path

import pytest
from pydantic import ValidationError

from callboard.runtime.errors import InvalidFile
from callboard.runtime.limits import Limits
from callboard.service.invalid_settings import InvalidSettings
from callboard.service.project_settings import ProjectSettings, read_project_settings
from callboard.service.settings import Settings

WHOLE = """\
models:
  main: {url: "http://localhost:8000/v1", name: small, key_env: SOME_KEY, options: {temperature: 0}}
  other: {api: anthropic, name: large, timeout: 5, limit: 2, attempts: 1, schema_as: tool}
roles:
  role: Planner
  name: Head
  parameters: {most_steps: 5}
  subordinates:
    - Echo
    - {role: CodeInterpreter, model: other}
prompts: prompts
import_from_project: true
experience:
  folder: lessons
  limit: 3
  roles:
    planner: {threshold: 0.5}
    code_generator: {folder: /elsewhere, dynamic_sub_path: true, use: false}
examples:
  roles: {planner: {folder: shown}}
limits: {replies: null, seconds: 90, cost: 1}
"""


def read(folder: Path, text: str) -> ProjectSettings:
    (folder / "callboard.yaml").write_text(text, encoding="utf-8")
    return read_project_settings(folder)


def faults(folder: Path, text: str) -> list[str]:
    """What is wrong, without the file's name."""
    with pytest.raises(InvalidSettings) as caught:
        read(folder, text)
    return [str(fault).removeprefix(f"{folder / 'callboard.yaml'}, ") for fault in caught.value.faults]


def test_a_file_says_all_there_is_to_say(tmp_path: Path) -> None:
    settings = read(tmp_path, WHOLE).settings
    assert [*settings.models] == ["main", "other"]
    assert (settings.models["main"].options, settings.models["other"].api) == ({"temperature": 0}, "anthropic")
    assert [one.role for one in settings.roles.subordinates] == ["Echo", "CodeInterpreter"]
    assert settings.limits.limits() == Limits(seconds=90, cost=1)
    assert settings.import_from_project


def test_paths_are_relative_to_the_folder_of_the_file(tmp_path: Path) -> None:
    settings = read(tmp_path, WHOLE).settings
    assert settings.prompts == tmp_path / "prompts"
    assert settings.experience.folder == tmp_path / "lessons"
    assert settings.experience.roles["code_generator"].folder == Path("/elsewhere")
    assert settings.examples.roles["planner"].folder == tmp_path / "shown"
    assert settings.examples.folder == tmp_path / "examples"


def test_an_empty_file_means_a_planner_with_an_interpreter_and_ten_replies(tmp_path: Path) -> None:
    settings = read(tmp_path, "").settings
    assert (settings.roles.role, settings.roles.subordinates[0].role) == ("Planner", "CodeInterpreter")
    assert settings.limits.limits() == Limits(replies=10)
    assert settings.experience.folder == tmp_path / "experience"


def test_a_folder_without_settings_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"there is no callboard\.yaml; do: write one with `callboard init`"):
        read_project_settings(tmp_path)


MODEL = "models:\n  main:\n    url: http://h/v1\n    name: m\n"

FAULTS = {
    "limit: 3\n": r"line 1, limit: there is no such key; do: write limits, or another of: examples, experience,",
    "limits:\n  reply: 3\n": r"line 2, limits\.reply: there is no such key; do: write replies, or another of: cost,",
    "roles:\n  role: Echo\n  subordinates:\n    - {rol: Echo}\n": r"line 4, roles\.subordinates\[0\]\.role: .*missing",
    "roles: {role: Echo, subordinates: [{role: Echo, nam: E}]}": r"line 1, .*\[0\]\.nam: .*write name, or another of",
    "limits: {replies: 0}\n": r"line 1, limits\.replies: it should be greater than or equal to 1",
    "limits: {replies: '3'}\n": r"line 1, limits\.replies: .*; do: write a whole number",
    "limits: {seconds: true}\n": r"line 1, limits\.seconds: .*; do: write a number",
    "limits: {cost: .nan}\n": r"line 1, limits\.cost: ",
    "import_from_project: 1\n": r"line 1, import_from_project: .*; do: write true or false",
    "experience: here\n": r"line 1, experience: .*; do: write a mapping",
    "models: [main]\n": r"line 1, models: .*; do: write a mapping",
    "models:\n  main: {name: m}\n": r"line 2, models\.main\.url: this key is missing",
    "models:\n  main: {url: 'http://h/v1'}\n": r"line 2, models\.main\.name: this key is missing; do: write name:",
    "models:\n  main: {name: m, url: 'ftp://h'}\n": r"line 2, models\.main\.url: a URL begins with http",
    "models:\n  main: {name: m, url: h, api: azure}\n": r"line 2, models\.main\.api: it should be 'openai' or 'anth",
    MODEL + "    options: {timeout: 3}\n": r"line 5, models\.main\.options: timeout is no option .*: write it beside",
    "experience: {roles: {planner: {limt: 3}}}\n": r"line 1, experience\.roles\.planner\.limt: .*write limit, or",
    "experience: {roles: {planner: {threshold: 2}}}\n": r"line 1, experience\.roles\.planner\.threshold: it should be",
    'prompts: ""\n': r"line 1, prompts: this is no path",
    "a: &a {replies: 0}\nlimits: *a\n": r"line 1, limits\.replies: it should be greater",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_names_its_line_and_key_and_what_could_be_meant(tmp_path: Path, text: str) -> None:
    found = faults(tmp_path, text)
    assert any(re.match(FAULTS[text], fault) for fault in found), found


def test_all_faults_are_told_in_the_order_of_their_lines(tmp_path: Path) -> None:
    found = faults(tmp_path, "nothing: 1\nlimits:\n  replies: 0\nmodels: {main: {}}\n")
    assert [fault.partition(",")[0] for fault in found] == ["line 1", "line 3", "line 4", "line 4"]


def test_the_error_speaks_of_the_first_fault_and_says_how_many_more_there_are(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"line 1, a: .* \(and 1 more; `callboard check` lists them\)") as caught:
        read(tmp_path, "a: 1\nb: 2\n")
    assert (caught.value.line, caught.value.key, len(caught.value.faults)) == (1, "a", 2)


def test_the_error_survives_pickle_and_copy(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings) as caught:
        read(tmp_path, "a: 1\nb: 2\n")
    for other in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert str(other) == str(caught.value)


SECRETS = {
    MODEL + "    key: sk-tulip\n": "models.main.key: an API key stands in no file: name the environment variable",
    MODEL
    + "    api_key: sk-tulip\n": "models.main.api_key: there is no such key; do: write key_env, or another of: api",
    MODEL + "    key_env: sk-tulip\n": "models.main.key_env: this is no name of an environment variable; do: write the",
    MODEL + "    timeout: sk-tulip\n": "models.main.timeout: ",
    MODEL + "    options: {api_key: sk-tulip}\n": "models.main.options: api_key is no option for the server: name the",
    MODEL + "    options: {headers: {X: sk-tulip}}\n": "models.main.options: headers is no option",
    "models: {main: {name: m, url: 'http://u:sk-tulip@h/v1'}}\n": "models.main.url: a URL with a password",
    "models: {main: {name: m, url: 'http://h/v1?key=sk-tulip'}}\n": "models.main.url: a URL with a password",
    "llm.api_type: sk-tulip\n": "llm.api_type: callboard speaks openai",
}


@pytest.mark.parametrize("text", SECRETS)
def test_no_error_shows_a_secret_that_stands_in_the_wrong_place(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        read(tmp_path, text)
    assert any(f", {SECRETS[text]}" in str(fault) for fault in caught.value.faults), caught.value
    shown = [*map(str, caught.value.faults), *traceback.format_exception(caught.value), repr(caught.value)]
    assert "tulip" not in "".join(shown)


def test_what_was_read_shows_no_secret(tmp_path: Path) -> None:
    read_ = read(tmp_path, "llm.model: m\nllm.api_key: sk-tulip\nllm.openai.stop: tulip\n")
    assert read_.settings.models["llm"].key is not None
    assert read_.settings.models["llm"].key.get_secret_value() == "sk-tulip"
    assert "tulip" not in repr(read_) + str(read_) + repr(read_.settings.models)


def test_what_pydantic_says_of_settings_shows_no_secret_either() -> None:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"models": {"main": {"name": ["tulip"]}}, "experience": "tulip"})
    assert "tulip" not in str(caught.value)
