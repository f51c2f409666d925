"""A project's tree of roles: each made by its class, with what the settings give it.

The rule to know: a role's class is asked for its parameters before it is made, so each fault points at its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from callboard.actors import Role
from callboard.experience.examples import Examples
from callboard.experience.experience import Experience
from callboard.experience.pools import Pools
from callboard.prompts.library import Library
from callboard.prompts.template import near
from callboard.runtime import Actor
from callboard.runtime.actor import actor_tree
from callboard.runtime.callboard_error import describe
from callboard.runtime.chat_model import ChatModel
from callboard.runtime.directory import Directory
from callboard.runtime.errors import DuplicateName, InvalidFile

from .project_settings import ProjectSettings
from .role_class import Constructor, UnusableRole, find_role_class, settings_name
from .settings import RoleSettings
from .settings_file import Place


@dataclass(frozen=True, slots=True)
class Placed:
    """A role of the tree, and what it was given."""

    actor: Actor
    depth: int
    """How many roles are above it."""
    settings_name: str
    model: str | None
    """By its name in the settings."""
    experience: Experience | None
    examples: Examples | None


class RoleTree:
    """Makes the roles of a project; `placed` are those that could be made, subordinates behind their superior."""

    def __init__(self, read: ProjectSettings, models: Mapping[str, ChatModel]) -> None:
        self.placed: list[Placed] = []
        self.names: set[str] = set()
        """The settings names in the tree."""
        self.faults: list[InvalidFile] = []
        self._read = read
        self._settings = read.settings
        self._models = models
        self._library = self._read_library()
        self._pools = Pools()
        self.root = self._make(read.settings.roles, ("roles",), 0)
        if self.root is not None:
            self._check_names(self.root)

    def _read_library(self) -> Library | None:
        try:
            return None if self._settings.prompts is None else Library(self._settings.prompts)
        except InvalidFile as fault:
            self.faults.append(fault)
            return None

    def _make(self, node: RoleSettings, place: Place, depth: int) -> Actor | None:
        """The role with all under it; None if it cannot be made, and a fault says why."""
        before = len(self.faults)
        constructor = self._constructor(node, place)
        at = len(self.placed)
        subordinates = [
            self._make(one, (*place, "subordinates", i), depth + 1) for i, one in enumerate(node.subordinates)
        ]
        if constructor is None:
            return None
        name = settings_name(constructor.role)
        self.names.add(name)
        given = dict(self._given(node, constructor, place))
        given |= self._parameters(node, constructor, place)
        if subordinates:
            given["subordinates"] = tuple(one for one in subordinates if one is not None)
        if len(self.faults) > before or ("model" in constructor.needed and "model" not in given):
            return None
        try:
            actor = constructor.role(**given)
            Directory().check_free(actor.name, None)
        except Exception as error:  # what the constructor of somebody's raises may be anything
            self._fault(place, f"{constructor.role.__name__} cannot be made: {describe(error)}", "correct its settings")
            return None
        if self._library is not None and isinstance(actor, Role):
            actor.library = self._library
        lessons, examples = given.get("experience"), given.get("examples")
        self.placed.insert(at, Placed(actor, depth, name, self._model_name(node, constructor), lessons, examples))
        return actor

    def _constructor(self, node: RoleSettings, place: Place) -> Constructor | None:
        try:
            folder = self._read.file.folder
            role = find_role_class(node.role, folder, from_project=self._settings.import_from_project)
            return Constructor(role)
        except UnusableRole as error:
            self._fault((*place, "role"), error.message, error.remedy)
        except (ValueError, TypeError) as error:  # a class whose parameters cannot be read
            self._fault((*place, "role"), describe(error), "name another class")
        return None

    def _given(self, node: RoleSettings, constructor: Constructor, place: Place) -> Iterator[tuple[str, Any]]:
        """What the tree and the other sections give to its constructor."""
        name = settings_name(constructor.role)
        wanted: dict[str, tuple[Place, Any]] = {
            "name": ((*place, "name"), node.name),
            "subordinates": ((*place, "subordinates"), node.subordinates or None),
            "experience": (("experience", "roles", name), self._experience(name)),
            "examples": (("examples", "roles", name), self._examples(name)),
        }
        for parameter, (where, value) in wanted.items():
            if value is not None and constructor.takes(parameter):
                yield parameter, value
            elif value is not None:
                self._fault(where, f"{constructor.role.__name__} takes no {parameter}", "remove it")
        yield from self._model(node, constructor, place)

    def _model(self, node: RoleSettings, constructor: Constructor, place: Place) -> Iterator[tuple[str, ChatModel]]:
        name = self._model_name(node, constructor)
        if node.model is not None and name is None:
            self._fault((*place, "model"), f"{constructor.role.__name__} takes no model", "remove it")
        elif name is not None and name in self._models:
            yield "model", self._models[name]
        elif name is not None and name not in self._settings.models:
            there = self._settings.models
            remedy = f"write {near(name, there)}" if there else "name one under models"
            self._fault((*place, "model"), f"there is no model {name!r}", remedy)
        elif name is None and "model" in constructor.needed:
            what = f"{constructor.role.__name__} needs a model, and there is none"
            self._fault(place, what, "name one under models, such as main: {url: …, name: …}")

    def _model_name(self, node: RoleSettings, constructor: Constructor) -> str | None:
        if not constructor.takes("model"):
            return None
        return node.model or next(iter(self._settings.models or self._models), None)

    def _parameters(self, node: RoleSettings, constructor: Constructor, place: Place) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for name, value in node.parameters.items():
            try:
                given[name] = constructor.checked(name, value, self._read.file.folder)
            except UnusableRole as error:
                self._fault((*place, "parameters", name), error.message, error.remedy)
        for name in constructor.needed:
            if name in constructor.parameters and name not in node.parameters:
                self._fault(place, f"{constructor.role.__name__} needs {name}", f"write it under parameters: {name}")
        return given

    def _experience(self, name: str) -> Experience | None:
        section = self._settings.experience
        use = section.roles.get(name)
        if use is None or not use.use:
            return None
        limit = section.limit if use.limit is None else use.limit
        threshold = section.threshold if use.threshold is None else use.threshold
        folder, dynamic = use.folder or section.folder, use.dynamic_sub_path
        return Experience(folder, dynamic_sub_path=dynamic, limit=limit, threshold=threshold, pools=self._pools)

    def _examples(self, name: str) -> Examples | None:
        section = self._settings.examples
        use = section.roles.get(name)
        if use is None or not use.use:
            return None
        return Examples(use.folder or section.folder / f"{name}_examples", dynamic_sub_path=use.dynamic_sub_path)

    def _check_names(self, root: Actor) -> None:
        try:
            actor_tree(root, None)
        except (DuplicateName, TypeError) as error:
            self._fault(("roles",), str(error).partition(";")[0], "give each role a name of its own")

    def _fault(self, place: Place, message: str, remedy: str) -> None:
        self.faults.append(self._read.file.fault(place, message, remedy))
