"""Plugin: plain typed functions that code in a kernel may call by their names.

The rule to know: the host reads their source and never runs it; they are run in the kernel, and there alone.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Plugin:
    """The public functions of a module that is installed, by its dotted name, or of a source file, by its Path.

    A source file is sent to the kernel and may import what is installed. A module that is not installed for the
    interpreter itself cannot be seen in bubblewrap. Raises ValueError for what is not there, has no public function, or
    has one with a parameter or a result without a type; SyntaxError for what is no Python.
    """

    where: str | Path
    name: str = field(init=False)
    """The module's name in the kernel."""
    signatures: tuple[str, ...] = field(init=False)
    """What the model is shown of each function: its first line with types, and the first paragraph of its docstring."""
    shipment: dict[str, Any] = field(init=False, repr=False, compare=False)
    """What a kernel is sent."""

    def __post_init__(self) -> None:
        path = self.where if isinstance(self.where, Path) else _source(self.where)
        name = f"plugin_{path.stem}" if isinstance(self.where, Path) else self.where
        if not path.is_file():
            raise ValueError(f"plugin {self.where}: there is no file {path}")
        source = path.read_text(encoding="utf-8")
        body = ast.parse(source, str(path)).body
        functions = [one for one in body if isinstance(one, _Function) and not one.name.startswith("_")]
        if not functions:
            raise ValueError(f"plugin {self.where}: it has no public function")
        for one in functions:
            _check_types(one, self.where)
        names = [one.name for one in functions]
        sent = source if isinstance(self.where, Path) else ""
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "signatures", tuple(map(_signature, functions)))
        object.__setattr__(self, "shipment", {"module": name, "source": sent, "functions": names})


def _source(module: str) -> Path:
    """The file of a module. Packages above it are imported, the module is not."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        raise ValueError(f"plugin {module}: there is no module of that name with a source")
    return Path(spec.origin)


def _check_types(function: _Function, where: str | Path) -> None:
    taken = function.args
    every = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, *filter(None, (taken.vararg, taken.kwarg))]
    untyped = [one.arg for one in every if one.annotation is None]
    if function.returns is None:
        untyped.append("its result")
    if untyped:
        raise ValueError(f"plugin {where}: {function.name} has no type for {', '.join(untyped)}")


def _signature(function: _Function) -> str:
    begin = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    first = inspect.cleandoc(ast.get_docstring(function) or "").partition("\n\n")[0]
    told = "".join(f"\n    {line}" for line in first.splitlines())
    return f"{begin} {function.name}({ast.unparse(function.args)}){returns}{':' if told else ''}{told}"
