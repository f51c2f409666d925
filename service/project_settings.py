"""A project's settings: the file in its folder, read and checked as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from callboard.runtime.errors import InvalidFile

from .invalid_settings import InvalidSettings, faults_of
from .project_folder import ORIGINAL, find_settings
from .settings import Settings
from .settings_file import SettingsFile, read_settings_file
from .taskweaver_config import LeftOut, map_keys
from .taskweaver_keys import SETTINGS_NAMES


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """What a file says, and where."""

    settings: Settings
    file: SettingsFile
    """In callboard's own keys."""
    left_out: tuple[LeftOut, ...]
    """Keys of the original that have no use here."""


def read_project_settings(folder: Path) -> ProjectSettings:
    """The settings of the project in that folder.

    Raises InvalidFile if there is no file, or it is none; InvalidSettings for what it says, all faults at once.
    """
    path = find_settings(folder)
    if path is None:
        raise InvalidFile("there is no callboard.yaml", path=folder, remedy="write one with `callboard init`")
    mapped = map_keys(read_settings_file(path))
    file, faults = mapped.file, list(mapped.faults)
    file.data.setdefault("experience", {})
    file.data.setdefault("examples", {})
    for section in ("experience", "examples"):
        if isinstance(file.data[section], dict):
            file.data[section].setdefault("folder", section)
    if path.name == ORIGINAL:
        _use_examples(file)
    try:
        settings = Settings.model_validate(file.data, context={"folder": file.folder})
    except ValidationError as error:
        faults += faults_of(error, file, Settings)
    if faults:
        raise InvalidSettings(sorted(faults, key=lambda fault: fault.line or 0))
    return ProjectSettings(settings, file, mapped.left_out)


def _use_examples(file: SettingsFile) -> None:
    """In the original a role is given the examples that are in its folder unless the file says otherwise."""
    roles = file.data["examples"].setdefault("roles", {})
    for name in SETTINGS_NAMES:
        if (file.folder / "examples" / f"{name}_examples").is_dir():
            roles.setdefault(name, {})
