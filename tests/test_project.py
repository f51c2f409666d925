"""Projects: the tree of roles that settings describe, what each role is given, and every fault before anything runs."""

import json
from collections import UserDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from callboard.actors import CodeInterpreter, Planner, Role
from callboard.experience.examples import Examples
from callboard.experience.experience import Experience
from callboard.runtime import Actor, ChatModel, Post, TurnContext
from callboard.runtime.backoff import Backoff
from callboard.runtime.limits import Limits
from callboard.runtime.scripted_model import ScriptedModel
from callboard.service import project_models
from callboard.service.invalid_settings import InvalidSettings
from callboard.service.project import Project, load_project
from callboard.service.served_model import ServedModel, serve

from .test_taskweaver_config import COMPLETE

MODELS = """\
models:
  main: {url: "http://localhost:1/v1", name: small}
  other: {url: "http://localhost:1/v1", name: large, key_env: OTHER_KEY}
"""
ENVIRON = {"OTHER_KEY": "sk-tulip"}


class Guided(Role):
    """A role that is given lessons and examples."""

    settings_name = "planner"

    def __init__(
        self,
        model: ChatModel,
        *,
        name: str = "Guided",
        subordinates: tuple[Actor, ...] = (),
        experience: Experience | None = None,
        examples: Examples | None = None,
    ) -> None:
        super().__init__(model, name=name, subordinates=subordinates)
        self.given = experience, examples

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        return None


class Coder(Guided):
    """Another one."""

    settings_name = "code_generator"


class Needy(Guided):
    """One that cannot do without something, and takes nothing that is too large."""

    def __init__(self, model: ChatModel, size: int) -> None:
        super().__init__(model, name="Needy")
        if size > 9:
            raise OverflowError("too large")


GUIDED = f"roles: {{role: '{__name__}:Guided', subordinates: [{{role: '{__name__}:Coder', name: Coder}}]}}\n"


def load(folder: Path, text: str, environ: Mapping[str, str] = ENVIRON) -> Project:
    (folder / "callboard.yaml").write_text(text, encoding="utf-8")
    return load_project(folder, environ=environ)


def faults(folder: Path, text: str, environ: Mapping[str, str] = ENVIRON) -> list[str]:
    with pytest.raises(InvalidSettings) as caught:
        load(folder, text, environ)
    return [str(fault).partition("yaml, ")[2] for fault in caught.value.faults]


def test_the_tree_is_made_of_the_roles_own_constructors(tmp_path: Path) -> None:
    tree = "{role: CodeInterpreter, name: Coder, model: other, parameters: {timeout: 5, folder: work}}"
    project = load(
        tmp_path, f"{MODELS}roles: {{role: Planner, parameters: {{most_steps: 3}}, subordinates: [{tree}]}}\n"
    )
    planner, coder = project.root, project.root.subordinates[0]
    assert isinstance(planner, Planner) and isinstance(coder, CodeInterpreter)
    assert (planner.most_steps, coder.name, coder.timeout, coder.folder) == (3, "Coder", 5.0, tmp_path / "work")
    assert (planner.model.name, coder.model.name) == ("small", "large")
    assert [(one.actor.name, one.depth) for one in project.roles] == [("Planner", 0), ("Coder", 1)]


def test_the_roles_stand_in_the_order_of_the_tree(tmp_path: Path) -> None:
    inner = "{role: Planner, name: Inner, subordinates: [{role: Echo, name: A}, {role: Echo, name: B}]}"
    tree = f"roles: {{role: Planner, subordinates: [{inner}, {{role: Echo, name: C}}]}}\n"
    placed = load(tmp_path, MODELS + tree).roles
    assert [(one.actor.name, one.depth) for one in placed] == [
        ("Planner", 0),
        ("Inner", 1),
        ("A", 2),
        ("B", 2),
        ("C", 1),
    ]


def test_lessons_and_examples_go_to_the_roles_of_their_settings_names(tmp_path: Path) -> None:
    for folder in ("lessons", "own", "shown", "examples/code_generator_examples"):
        (tmp_path / folder).mkdir(parents=True)
    of_roles = "{planner: {}, code_generator: {folder: own, limit: 1}}"
    lessons = f"experience: {{folder: lessons, limit: 3, threshold: 0.4, roles: {of_roles}}}"
    examples = "examples: {roles: {planner: {folder: shown, dynamic_sub_path: true}, code_generator: {}}}"
    guided, coder = (one.actor for one in load(tmp_path, f"{MODELS}{GUIDED}{lessons}\n{examples}\n").roles)
    assert isinstance(guided, Guided) and isinstance(coder, Guided)
    assert guided.given[0] == Experience(tmp_path / "lessons", limit=3, threshold=0.4)
    assert guided.given[1] == Examples(tmp_path / "shown", dynamic_sub_path=True)
    assert coder.given[0] == Experience(tmp_path / "own", limit=1, threshold=0.4)
    assert coder.given[1] == Examples(tmp_path / "examples" / "code_generator_examples")


def test_the_originals_complete_example_gives_the_packaged_roles_what_it_says(tmp_path: Path) -> None:
    for folder in ("planner_exp_dir", "code_generator_exp_dir", "planner_examples"):
        (tmp_path / folder).mkdir()
    (tmp_path / "taskweaver_config.json").write_text(json.dumps(COMPLETE))
    planner, coder = (one.actor for one in load_project(tmp_path, environ={}).roles)
    assert isinstance(planner, Planner) and isinstance(coder, CodeInterpreter)
    assert planner.experience == Experience(tmp_path / "planner_exp_dir", threshold=0.3)
    assert planner.examples == Examples(tmp_path / "planner_examples", dynamic_sub_path=True)
    assert coder.experience == Experience(tmp_path / "code_generator_exp_dir", dynamic_sub_path=True, threshold=0.3)
    assert (coder.examples, coder.most_attempts) == (None, 4)
    assert planner.experience.pools is coder.experience.pools


def test_what_is_not_used_is_not_given(tmp_path: Path) -> None:
    off = "experience: {roles: {planner: {use: false}}}\nexamples: {roles: {planner: {use: false}}}\n"
    guided = load(tmp_path, MODELS + GUIDED + off).root
    assert isinstance(guided, Guided)
    assert guided.given == (None, None)


def test_the_templates_of_the_project_are_those_of_its_roles(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "fw.msg_nudge.md").write_text("Go on.")
    planner = load(tmp_path, MODELS + "prompts: texts\n").root
    assert isinstance(planner, Planner)
    assert planner.library.render("fw.msg_nudge") == "Go on."
    assert Planner.library.render("fw.msg_nudge") != "Go on."


def test_the_limits_are_those_of_its_conversations(tmp_path: Path) -> None:
    assert load(tmp_path, MODELS + "limits: {replies: 3}\n").options.limits == Limits(replies=3)


def test_a_role_without_a_model_needs_none(tmp_path: Path) -> None:
    project = load(tmp_path, "roles: Echo\n")
    assert (project.root.name, project.first_model, project.roles[0].model) == ("Echo", None, None)


def test_a_model_that_is_given_stands_for_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "callboard.yaml").write_text(MODELS)
    served = serve("openai", {"base_url": "http://localhost:1", "name": "given"})
    planner = load_project(tmp_path, environ={}, model=served).root
    assert isinstance(planner, Planner)
    assert planner.model is served.chat


async def test_the_connections_are_open_while_the_project_is_and_each_once(tmp_path: Path) -> None:
    opened: list[str] = []

    class Line:
        async def __aenter__(self) -> None:
            opened.append("opened")

        async def __aexit__(self, *error: object) -> None:
            opened.append("closed")

    (tmp_path / "callboard.yaml").write_text(MODELS)
    project = load_project(tmp_path, environ={}, model=ServedModel(ScriptedModel({}), Line()))
    async with project.opened() as root:
        assert (root, opened) == (project.root, ["opened"])
    assert opened == ["opened", "closed"]


def test_only_the_variable_that_is_named_is_asked_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CALLBOARD_API_KEY", "LLM_API_KEY", "LLM_MODEL"):
        monkeypatch.setenv(name, "sk-rose")
    asked: list[str] = []

    class Environ(UserDict[str, str]):
        def __getitem__(self, name: str) -> str:
            asked.append(name)
            return "sk-tulip"

    keys: list[str] = []

    def note(api: str, arguments: Mapping[str, Any], backoff: Backoff) -> ServedModel:
        keys.append(arguments["api_key"])
        return serve(api, arguments, backoff)

    monkeypatch.setattr(project_models, "serve", note)
    load(tmp_path, MODELS + "  hosted: {api: anthropic, name: m}\n", Environ())
    assert (asked, keys) == (["OTHER_KEY"], ["", "sk-tulip", ""])


def test_lessons_are_made_by_the_model_that_is_named_or_else_the_first(tmp_path: Path) -> None:
    named, first = (load(tmp_path, MODELS + text) for text in ("experience: {model: other}\n", ""))
    assert named.summarizer is named.models["other"]
    assert first.summarizer is first.models["main"]


def test_what_was_left_out_is_told(tmp_path: Path) -> None:
    text = "roles: Echo\nlogging.log_folder: logs\ncode_generator.use_experience: true\n"
    assert [(one.key, one.line) for one in load(tmp_path, text).left_out] == [
        ("logging.log_folder", 2),
        ("code_generator.use_experience", 3),
    ]


NEEDY = f"{MODELS}roles: {{role: '{__name__}:Needy', parameters: "
FAULTS = {
    "roles: Planner\n": "line 1, roles: Planner needs a model, and there is none; do: name one under models",
    MODELS + "roles: {role: Planner, model: man}\n": "line 4, roles.model: there is no model 'man'; do: write main",
    MODELS + "roles: {role: Echo, model: main}\n": "line 4, roles.model: Echo takes no model; do: remove it",
    MODELS + "roles: {role: Plannr}\n": "line 4, roles.role: callboard brings no role 'Plannr'; do: write Planner",
    MODELS + "roles: Plannr\n": "line 4, roles.role: callboard brings no role 'Plannr'; do: write Planner",
    "roles: {role: Echo, subordinates: [Echo]}\n": "line 1, roles.subordinates: Echo takes no subordinates",
    "roles: {role: Echo, name: a b}\n": "line 1, roles: Echo cannot be made: ValueError: a role's name is",
    "roles: {role: Echo, name: User}\n": "line 1, roles: Echo cannot be made: DuplicateName: two actors are",
    MODELS + "roles: {role: Planner, subordinates: [Echo, Echo]}\n": "line 4, roles: two actors are called 'Echo'",
    MODELS
    + "roles:\n  role: Planner\n  parameters:\n    most_stps: 3\n": "line 7, roles.parameters.most_stps: Planner",
    NEEDY + "{}}\n": "line 4, roles: Needy needs size; do: write it under parameters",
    NEEDY + "{size: 10}}\n": "line 4, roles: Needy cannot be made: OverflowError: too large",
    MODELS + "prompts: nowhere\n": "",
    MODELS + "experience: {model: mian}\n": "line 4, experience.model: there is no model 'mian'; do: write main, or",
    MODELS + "experience: {roles: {plannr: {}}}\n": "line 4, experience.roles.plannr: no role of the tree has the",
    MODELS + GUIDED + "experience: {roles: {planner: {}}}\n": "line 5, experience.roles.planner: there is no folder",
    MODELS + GUIDED + "planner.use_example: true\n": "line 5, planner.use_example: there is no folder",
    "roles: Echo\nexperience: {roles: {echo: {}}}\n": "line 2, experience.roles.echo: Echo takes no experience",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_of_the_tree_is_told_where_it_stands(tmp_path: Path, text: str) -> None:
    assert any(fault.startswith(FAULTS[text]) for fault in faults(tmp_path, text)), faults(tmp_path, text)


def test_a_key_that_is_not_set_is_told_without_the_name_which_may_be_the_key(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, MODELS, {})
    assert fault == (
        "line 3, models.other.key_env: the environment variable that it names is not set; do: set it, or name another"
    )


def test_a_key_that_no_header_may_have_is_told_and_not_shown(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, MODELS, {"OTHER_KEY": "tu\u00fflip"})
    assert fault.startswith("line 3, models.other: the model cannot be made: the header Authorization (the API key)")
    assert "lip" not in fault


def test_nothing_of_a_project_shows_a_key(tmp_path: Path) -> None:
    assert "tulip" not in repr(load(tmp_path, MODELS))
