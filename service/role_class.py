"""Role classes: those that settings name, packaged or one's own, and what may be given to them in a file.

The rule to know: a module that stands in the project's folder is imported, and so runs, only if the settings say that
it may.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module, invalidate_caches
from importlib.util import find_spec
from inspect import Parameter, isabstract, signature
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import ConfigDict, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

from callboard.actors import CodeInterpreter, Echo, Planner
from callboard.prompts.template import near
from callboard.runtime import Actor
from callboard.runtime.callboard_error import describe

PACKAGED: Mapping[str, type[Actor]] = {one.__name__: one for one in (Planner, CodeInterpreter, Echo)}
OF_THE_TREE = frozenset({"model", "name", "subordinates", "experience", "examples"})
"""Parameters that are no matter of `parameters`: the tree and the other sections give them."""

_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


class UnusableRole(Exception):
    """Why a role cannot be had, and what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def find_role_class(name: str, folder: Path, *, from_project: bool) -> type[Actor]:
    """The packaged class of that name, or the one that ``package.module:Class`` says, which is imported.

    `from_project` allows modules of `folder`, which is put last among those that modules are looked for in. Raises
    UnusableRole.
    """
    if name in PACKAGED:
        return PACKAGED[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise UnusableRole(
            f"callboard brings no role {name!r}", f"write {near(name, PACKAGED)}; one of your own as module:Class"
        )
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise UnusableRole(f"{name!r} names no class", "write package.module:Class")
    _check_place(module, folder, from_project=from_project)
    return _class_in(_imported(module), attribute)


def settings_name(role: type[Actor]) -> str:
    """Under which name the settings speak of a role: its own, or that of the file of its class."""
    return getattr(role, "settings_name", "") or role.__module__.rpartition(".")[2]


def _check_place(module: str, folder: Path, *, from_project: bool) -> None:
    """Looks for the module's first package, and runs nothing."""
    if from_project:
        invalidate_caches()
        if str(folder.resolve()) not in sys.path:
            sys.path.append(str(folder.resolve()))
    top = module.partition(".")[0]
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        spec = None
    here = any((folder / one).exists() for one in (f"{top}.py", top))
    remedy = "write import_from_project: true, which runs the code there" if here and not from_project else "install it"
    if spec is None:
        raise UnusableRole(f"there is no module {top!r}", remedy)
    places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.has_location and spec.origin else ())]
    inside = any(Path(place).resolve().parent == folder.resolve() for place in places)
    if inside and not from_project:
        raise UnusableRole(f"the module {top!r} stands in the project's folder", remedy)
    if here and not inside and from_project:
        raise UnusableRole(f"another module {top!r} hides the one in the project's folder", "rename that one")


def _imported(module: str) -> object:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise UnusableRole(f"there is no module {error.name!r}", "check the name") from error
        raise UnusableRole(f"{module} needs a module that is not there: {error.name}", "install it") from error
    except Exception as error:  # what a module of somebody's raises may be anything
        raise UnusableRole(f"{module} cannot be imported: {describe(error)}", "correct the module") from error


def _class_in(module: object, name: str) -> type[Actor]:
    found = getattr(module, name, None)
    if found is None:
        close = get_close_matches(name, dir(module), n=1)
        remedy = f"write {close[0]}" if close else "check the name"
        raise UnusableRole(f"{getattr(module, '__name__', '')} has no {name}", remedy)
    if not (isinstance(found, type) and issubclass(found, Actor)):
        raise UnusableRole(f"{name} is no class of roles", "name a subclass of callboard.runtime.Actor")
    if isabstract(found):
        raise UnusableRole(f"{name} cannot be made: it has no `receive`", "name a class that has one")
    return found


class Constructor:
    """What a role's class takes: asked before it is made, so that a fault can be told where it stands."""

    def __init__(self, role: type[Actor]) -> None:
        self.role = role
        given = signature(role).parameters.values()
        self._parameters = {one.name: one for one in given if one.kind in _NAMED}
        self._takes_any = any(one.kind is Parameter.VAR_KEYWORD for one in given)
        try:
            self._types = get_type_hints(role.__init__, include_extras=True)
        except Exception:  # annotations of somebody's that only type checkers can read: values go in as they are
            self._types = {}

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names that `parameters` may have in a file."""
        return tuple(name for name in self._parameters if name not in OF_THE_TREE)

    def takes(self, name: str) -> bool:
        """Whether it takes a parameter of that name."""
        return name in self._parameters or self._takes_any

    @property
    def needed(self) -> tuple[str, ...]:
        """The parameters that it cannot do without."""
        return tuple(name for name, one in self._parameters.items() if one.default is Parameter.empty)

    def checked(self, name: str, value: Any, folder: Path) -> Any:
        """The value as the parameter's type has it, paths relative to `folder`. Raises UnusableRole."""
        if name in OF_THE_TREE:
            raise UnusableRole("this is no parameter", f"write {name} beside parameters, or in its own section")
        if not self.takes(name):
            remedy = f"write {near(name, self.parameters)}" if self.parameters else "remove it"
            raise UnusableRole(f"{self.role.__name__} takes no such parameter", remedy)
        if name not in self._types:
            return value
        try:
            config = ConfigDict(arbitrary_types_allowed=True, hide_input_in_errors=True)
            return _with_paths(_adapter(self._types[name], config).validate_python(value), folder)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            said = first["msg"].replace("Input should", "it should")
            raise UnusableRole(f"{self.role.__name__}: {said}", "correct the value") from None


def _adapter(type: Any, config: ConfigDict) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(type, config=config)
    except PydanticSchemaGenerationError:
        return TypeAdapter(Any)
    except PydanticUserError:  # a type with a configuration of its own
        return TypeAdapter(type)


def _with_paths(value: Any, folder: Path) -> Any:
    """The value, with each path in it made relative to the folder."""
    match value:
        case Path():
            return folder / value.expanduser()
        case dict():
            return {key: _with_paths(one, folder) for key, one in value.items()}
        case list() | tuple():
            return type(value)(_with_paths(one, folder) for one in value)
    return value
