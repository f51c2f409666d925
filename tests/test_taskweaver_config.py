"""TaskWeaver's dotted keys: what they mean here, and that none is dropped in silence."""

import json
from pathlib import Path
from typing import Any

import pytest

from callboard.service.invalid_settings import InvalidSettings
from callboard.service.project_settings import ProjectSettings, read_project_settings
from callboard.service.settings import ExamplesUse, ExperienceUse, RoleSettings
from callboard.service.taskweaver_keys import KEYS, MODEL_KEYS, ROLE_KEYS, TREE_KEYS

COMPLETE = {
    "llm.api_type": "openai",
    "llm.api_base": "http://localhost:8000/v1",
    "llm.api_key": "sk-1",
    "llm.model": "small",
    "llm.response_format": "json_object",
    "llm.openai.temperature": 0,
    "llm.openai.max_tokens": "512",
    "session.roles": ["planner", "code_interpreter"],
    "session.max_internal_chat_round_num": 15,
    "session.experience_dir": "saved",
    "experience.retrieve_threshold": 0.3,
    "planner.use_experience": True,
    "planner.experience_dir": "planner_exp_dir",
    "planner.dynamic_experience_sub_path": False,
    "planner.use_example": True,
    "planner.example_base_path": "planner_examples",
    "planner.dynamic_example_sub_path": True,
    "code_generator.use_experience": "yes",
    "code_generator.experience_dir": "${AppBaseDir}/code_generator_exp_dir",
    "code_generator.dynamic_experience_sub_path": "true",
    "code_generator.use_example": False,
    "code_interpreter.max_retry_count": 3,
}
"""A configuration as the original's documentation has them, with all keys of experience and examples."""


def read(folder: Path, keys: dict[str, Any], name: str = "taskweaver_config.json") -> ProjectSettings:
    (folder / name).write_text(json.dumps(keys, indent=2), encoding="utf-8")
    return read_project_settings(folder)


def faults(folder: Path, keys: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidSettings) as caught:
        read(folder, keys)
    return [str(fault).partition("json, ")[2] for fault in caught.value.faults]


def test_the_originals_complete_example_means_the_same_here(tmp_path: Path) -> None:
    settings = read(tmp_path, COMPLETE).settings
    assert settings.experience.roles == {
        "planner": ExperienceUse(folder=tmp_path / "planner_exp_dir"),
        "code_generator": ExperienceUse(folder=tmp_path / "code_generator_exp_dir", dynamic_sub_path=True),
    }
    assert settings.examples.roles == {
        "planner": ExamplesUse(folder=tmp_path / "planner_examples", dynamic_sub_path=True),
        "code_generator": ExamplesUse(use=False),
    }
    assert (settings.experience.folder, settings.experience.threshold) == (tmp_path / "saved", 0.3)
    assert settings.limits.replies == 15


def test_its_model_and_its_roles_are_those_of_the_original(tmp_path: Path) -> None:
    settings = read(tmp_path, COMPLETE).settings
    model = settings.models["llm"]
    assert (model.url, model.name, model.schema_as) == ("http://localhost:8000/v1", "small", "json_object")
    assert model.options == {"temperature": 0, "max_tokens": 512}
    interpreter = RoleSettings(role="CodeInterpreter", parameters={"most_attempts": 4})
    assert settings.roles == RoleSettings(role="Planner", subordinates=(interpreter,))


def test_nothing_of_it_is_left_out(tmp_path: Path) -> None:
    assert read(tmp_path, COMPLETE).left_out == ()


def test_the_dotted_keys_stand_in_callboards_own_file_too(tmp_path: Path) -> None:
    (tmp_path / "callboard.yaml").write_text("limits: {seconds: 5}\nplanner.use_experience: true\n")
    settings = read_project_settings(tmp_path).settings
    assert (settings.limits.seconds, [*settings.experience.roles]) == (5, ["planner"])


def test_a_folder_that_is_named_is_not_used_before_it_is_said(tmp_path: Path) -> None:
    settings = read(tmp_path, {"planner.experience_dir": "there"}).settings
    assert not settings.experience.roles["planner"].use


def test_examples_are_used_where_their_folder_is_as_in_the_original(tmp_path: Path) -> None:
    (tmp_path / "examples" / "planner_examples").mkdir(parents=True)
    assert read(tmp_path, {}).settings.examples.roles == {"planner": ExamplesUse()}
    assert not read(tmp_path, {"planner.use_example": False}).settings.examples.roles["planner"].use


def test_further_models_go_by_their_alias(tmp_path: Path) -> None:
    keys = {
        "llm.model": "large",
        "ext_llms.llm_configs": {"mini": {"llm.model": "small", "llm.api_type": "anthropic", "llm.smooth": 1}},
        "planner.llm_alias": "mini",
        "experience.llm_alias": "",
    }
    found = read(tmp_path, keys)
    assert [(one.api, one.name) for one in found.settings.models.values()] == [
        ("openai", "large"),
        ("anthropic", "small"),
    ]
    assert (found.settings.roles.model, found.settings.roles.subordinates[0].model) == ("mini", None)
    assert found.settings.experience.model is None
    assert [(one.key, one.line) for one in found.left_out] == [("ext_llms.llm_configs.mini.llm.smooth", 7)]


def test_the_keys_of_a_service_count_before_those_of_all(tmp_path: Path) -> None:
    settings = read(tmp_path, {"llm.openai.model": "own", "llm.model": "any", "llm.azure.model": "other"}).settings
    assert settings.models["llm"].name == "own"


@pytest.mark.parametrize(
    ("roles", "tree"), [("echo", ["Echo"]), (["planner"], ["Planner"]), ("planner, echo", ["Planner", "Echo"])]
)
def test_the_roles_of_a_session_become_the_tree(tmp_path: Path, roles: object, tree: list[str]) -> None:
    root = read(tmp_path, {"session.roles": roles}).settings.roles
    assert [root.role, *(one.role for one in root.subordinates)] == tree


LEFT_OUT = {
    "logging.log_folder": "nothing is logged",
    "plugin.base_path": "there are no plugins",
    "code_generator.enable_auto_plugin_selection": "there are no plugins",
    "planner.prompt_file_path": "templates of your own",
    "planner.prompt_compression": "not made shorter",
    "execution_service.env_dir": "a process of its own",
    "llm.embedding_model": "the embedder",
    "llm.azure.api_version": "none of callboard's",
    "web_search.api_provider": "there is no such role",
    "code_interpreter.allowed_modules": "takes `parameters`",
}


@pytest.mark.parametrize("key", LEFT_OUT)
def test_what_has_no_use_here_is_left_out_with_a_reason(tmp_path: Path, key: str) -> None:
    (left_out,) = read(tmp_path, {key: "x"}).left_out
    assert (left_out.key, left_out.line) == (key, 2)
    assert LEFT_OUT[key] in left_out.reason


FAULTS: dict[str, dict[str, Any]] = {
    "line 2, planner.use_experince: there is no such key; do: write planner.use_experience": {
        "planner.use_experince": True
    },
    "line 2, session.role: there is no such key; do: write session.roles": {"session.role": ["planner"]},
    "line 2, nothing.like.it: there is no such key; do: remove it": {"nothing.like.it": 1},
    "line 2, planner.use_experience: it should be a valid boolean": {"planner.use_experience": "maybe"},
    "line 2, session.max_internal_chat_round_num: it should be greater": {"session.max_internal_chat_round_num": "0"},
    "line 2, planner.experience_dir: ${ModuleBaseDir} is a folder": {"planner.experience_dir": "${ModuleBaseDir}/x"},
    "line 2, execution_service.kernel_mode: code runs as a process": {"execution_service.kernel_mode": "container"},
    "line 2, code_interpreter.code_verification_on: code is not": {"code_interpreter.code_verification_on": True},
    "line 2, llm.api_type: callboard speaks": {"llm.api_type": "azure"},
    "line 2, session.roles: these are no roles that": {"session.roles": ["planner", "web_search"]},
    "line 2, session.roles: these are no roles that callboard": {"session.roles": ["echo", "code_interpreter"]},
    "line 2, session.roles: these are no roles": {"session.roles": 3},
    "line 2, ext_llms.llm_configs: these are no models": {"ext_llms.llm_configs": []},
    "line 2, ext_llms.llm_configs: mini is no model": {"ext_llms.llm_configs": {"mini": 1}},
    "line 2, llm.openai.temperature.name: this key is missing": {"llm.openai.temperature": 0},
}


@pytest.mark.parametrize("told", FAULTS)
def test_what_cannot_be_meant_is_told_by_the_originals_key(tmp_path: Path, told: str) -> None:
    assert any(fault.startswith(told) for fault in faults(tmp_path, FAULTS[told])), faults(tmp_path, FAULTS[told])


def test_a_protection_that_was_not_asked_for_is_no_matter(tmp_path: Path) -> None:
    keys = {"execution_service.kernel_mode": "local", "code_interpreter.code_verification_on": False}
    assert read(tmp_path, keys).left_out == ()


CLASHES = {
    "limits: {replies: 3}\nsession.max_internal_chat_round_num: 4\n": "limits.replies on line 1 says the same",
    "experience: {roles: {planner: {use: true}}}\nplanner.use_experience: false\n": "line 1 says the same",
    "roles: Echo\nsession.roles: [planner]\n": "the file has a tree of roles of its own",
}


@pytest.mark.parametrize("text", CLASHES)
def test_what_is_said_twice_is_a_fault(tmp_path: Path, text: str) -> None:
    (tmp_path / "callboard.yaml").write_text(text)
    with pytest.raises(InvalidSettings, match=CLASHES[text]):
        read_project_settings(tmp_path)


def test_every_key_that_is_known_is_taken(tmp_path: Path) -> None:
    names = [f"{name}.{rest}" for name in ("planner", "code_generator", "own_role") for rest in ROLE_KEYS]
    known = [*names, *KEYS, *TREE_KEYS, *(f"llm.{key}" for key in MODEL_KEYS)]
    assert all("there is no such key" not in fault for fault in faults(tmp_path, {key: [] for key in known}))
