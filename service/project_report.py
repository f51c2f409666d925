"""A project's report: what would run, line by line, as `callboard check` prints it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .found_files import FoundFiles
from .project import Project
from .role_tree import Placed
from .settings import ModelSettings


def report_project(project: Project, found: Sequence[FoundFiles]) -> Iterator[str]:
    """The roles with what they are given, the models, the folders, the limits, and what was left out.

    `found` is what each role finds, in their order.
    """
    yield f"Settings: {project.file.path}"
    yield "Roles"
    for role, files in zip(project.roles, found, strict=True):
        yield from _role(role, files)
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
    faults = dict.fromkeys(str(fault) for files in found for fault in files.faults)
    if faults:
        yield "Files that are passed over"
    yield from (f"  {fault}" for fault in faults)


def _role(role: Placed, found: FoundFiles) -> Iterator[str]:
    margin = "  " * (role.depth + 1)
    kind = type(role.actor).__name__
    named = "" if kind == role.actor.name else f" ({kind})"
    model = f", model {role.model}" if role.model else ""
    yield f"{margin}{role.actor.name}{named}: settings name {role.settings_name}{model}"
    if role.experience is not None:
        limit = role.experience.limit
        yield f"{margin}  lessons: {found.lessons}, {f'at most {limit}' if limit else 'all that are alike enough'}"
    if role.examples is not None:
        yield f"{margin}  examples: {found.examples}"


def _model(model: ModelSettings) -> str:
    key = "without a key"
    if model.key_env is not None:
        key = f"with the key of {model.key_env}"
    elif model.key is not None:
        key = "with a key that stands in the file; put it into the environment, and its variable's name into key_env"
    return f"{model.name} at {model.url or 'Anthropic'}, {key}"
