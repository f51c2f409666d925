"""Project: a folder with settings, as models and roles that can be used.

The rule to know: all of it is made, and all faults are found, before anything runs; connections are opened last.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from callboard.prompts.template import near
from callboard.runtime import Actor
from callboard.runtime.errors import InvalidFile
from callboard.runtime.options import ConversationOptions

from .invalid_settings import InvalidSettings
from .project_models import make_models
from .project_settings import ProjectSettings, read_project_settings
from .role_tree import Placed, RoleTree
from .served_model import ServedModel
from .settings import Settings
from .settings_file import SettingsFile
from .taskweaver_config import LeftOut
from .taskweaver_keys import SETTINGS_NAMES

GIVEN = "the model of the command line"


@dataclass(frozen=True, slots=True)
class Project:
    """What would run."""

    settings: Settings
    file: SettingsFile
    root: Actor
    roles: tuple[Placed, ...]
    """The tree, each superior before its subordinates."""
    models: Mapping[str, ServedModel]
    """By their names in the settings; those that no role uses too."""
    left_out: tuple[LeftOut, ...]
    """What the file says and callboard has no use for."""

    @property
    def options(self) -> ConversationOptions:
        """Of its conversations."""
        return ConversationOptions(limits=self.settings.limits.limits())

    @property
    def first_model(self) -> ServedModel | None:
        """The one for roles that name none."""
        return next(iter(self.models.values()), None)

    @property
    def summarizer(self) -> ServedModel | None:
        """The one that makes lessons of conversations."""
        name = self.settings.experience.model
        return self.first_model if name is None else self.models.get(name, self.first_model)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Actor]:
        """The root of the tree, while the connections of all models are open. Cancelled, they are closed."""
        async with AsyncExitStack() as stack:
            # One model may stand under several names; its connections are opened once.
            for model in {id(one): one for one in self.models.values()}.values():
                await stack.enter_async_context(model.opened())
            yield self.root


def load_project(folder: Path, *, environ: Mapping[str, str] = os.environ, model: ServedModel | None = None) -> Project:
    """The project of a folder; `model` stands for all of its models.

    What its settings name of one's own is imported, and so runs. Raises InvalidFile if there is no file of settings,
    or it is none; InvalidSettings with all faults of what it says.
    """
    read = read_project_settings(folder)
    if model is None:
        models, faults = make_models(read, environ)
    else:
        models, faults = dict.fromkeys(read.settings.models or (GIVEN,), model), []
    tree = RoleTree(read, {name: one.chat for name, one in models.items()})
    faults += tree.faults
    if not tree.faults:
        faults += _unknown_names(read, tree)
    faults += _missing_folders(read, tree)
    faults += _missing_summarizer(read)
    if faults or tree.root is None:
        raise InvalidSettings(sorted(faults, key=lambda fault: fault.line or 0))
    left_out = (*read.left_out, *_unused_names(read, tree))
    return Project(read.settings, read.file, tree.root, tuple(tree.placed), models, left_out)


def _named(read: ProjectSettings, tree: RoleTree) -> Iterator[tuple[str, str]]:
    """The sections, and the settings names in them that no role of the tree has."""
    for section in ("experience", "examples"):
        for name in getattr(read.settings, section).roles:
            if name not in tree.names:
                yield section, name


def _unknown_names(read: ProjectSettings, tree: RoleTree) -> Iterator[InvalidFile]:
    for section, name in _named(read, tree):
        if name not in SETTINGS_NAMES:
            what = f"no role of the tree has the settings name {name!r}"
            yield read.file.fault((section, "roles", name), what, f"write {near(name, tree.names)}")


def _unused_names(read: ProjectSettings, tree: RoleTree) -> Iterator[LeftOut]:
    for section, name in _named(read, tree):
        key, line = read.file.source((section, "roles", name))
        yield LeftOut(key, line, f"{SETTINGS_NAMES[name]} is not in the tree of roles")


def _missing_folders(read: ProjectSettings, tree: RoleTree) -> Iterator[InvalidFile]:
    told = set()
    for one in tree.placed:
        for section, given in (("experience", one.experience), ("examples", one.examples)):
            folder = None if given is None else Path(given.folder)
            if folder is not None and not folder.is_dir() and (section, folder) not in told:
                told.add((section, folder))
                place = (section, "roles", one.settings_name)
                yield read.file.fault(place, f"there is no folder {folder}", "make it, or write use: false")


def _missing_summarizer(read: ProjectSettings) -> Iterator[InvalidFile]:
    name, there = read.settings.experience.model, read.settings.models
    if name is not None and name not in there:
        remedy = f"write {near(name, there)}" if there else "name one under models"
        yield read.file.fault(("experience", "model"), f"there is no model {name!r}", remedy)
