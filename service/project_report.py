"""A project's report: what would run, line by line, as `callboard check` prints it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from .project import Project
from .role_tree import Placed
from .settings import ModelSettings


def report_project(project: Project) -> Iterator[str]:
    """The roles with what they are given, the models, the folders, the limits, and what was left out."""
    yield f"Settings: {project.file.path}"
    yield "Roles"
    for role in project.roles:
        yield from _role(role)
    yield "Models"
    first = next(iter(project.settings.models), None)
    for name, model in project.settings.models.items():
        yield f"  {name}: {_model(model)}{', for roles that name none' if name == first else ''}"
    if first is None:
        yield "  none in the settings"
    yield f"Templates: {project.settings.prompts or 'those of callboard'}"
    yield f"Conversations are saved as lessons in: {project.settings.experience.folder}"
    limits = project.settings.limits.model_dump(exclude_none=True)
    yield f"A round may use: {', '.join(f'{size:g} {kind}' for kind, size in limits.items()) or 'anything'}"
    if project.left_out:
        yield "Left out"
    for key, line, reason in project.left_out:
        yield f"  line {line}, {key}: {reason}"


def _role(role: Placed) -> Iterator[str]:
    margin = "  " * (role.depth + 1)
    kind = type(role.actor).__name__
    named = "" if kind == role.actor.name else f" ({kind})"
    model = f", model {role.model}" if role.model else ""
    yield f"{margin}{role.actor.name}{named}: settings name {role.settings_name}{model}"
    if lessons := role.experience:
        chosen = f"at most {lessons.limit}" if lessons.limit else "all that are alike enough"
        folder = Path(lessons.folder)
        yield f"{margin}  lessons: {_found(folder, lessons.dynamic_sub_path, _lessons(folder))}, {chosen}"
    if examples := role.examples:
        folder = Path(examples.folder)
        there = f"{_count(folder.glob('*.yaml'))} files"
        yield f"{margin}  examples: {_found(folder, examples.dynamic_sub_path, there)}"


def _found(folder: Path, dynamic: bool, found: str) -> str:
    return f"in the sub folder of {folder} that shared memory names" if dynamic else f"{found} in {folder}"


def _lessons(folder: Path) -> str:
    """How many there are, and how many conversations of which none has been made yet."""
    names = [path.stem for path in folder.glob("*exp_*.yaml")]
    made = {name.removeprefix("exp_") for name in names if name.startswith("exp_")}
    raw = {name.removeprefix("raw_exp_") for name in names if name.startswith("raw_exp_")}
    written = {name.removeprefix("handcrafted_exp_") for name in names if name.startswith("handcrafted_exp_")}
    waiting = len((raw | written) - made)
    return f"{len(made)}" + (f" and {waiting} to be made by a refresh" if waiting else "")


def _count(found: Iterable[Path]) -> int:
    return sum(1 for _ in found)


def _model(model: ModelSettings) -> str:
    key = "without a key"
    if model.key_env is not None:
        key = f"with the key of {model.key_env}"
    elif model.key is not None:
        key = "with a key that stands in the file; put it into the environment, and its variable's name into key_env"
    return f"{model.name} at {model.url or 'Anthropic'}, {key}"
