"""The import graph of the tree: arrows go one way; each rule is shown to catch its fault on a small tree."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # they read the sources and run none of them: the gate does

# A package imports only from those to its left.
PACKAGES = ["runtime", "prompts", "experience", "actors", "service"]

# Inside runtime a module imports from rows above its own, and from modules to its left in its row.
LAYERS = {
    0: """value callboard_error invalid_answer invalid_file model_error errors json_value ids text markers
          shared_memory attachment post round transcript_file transcript_json transcript_markdown transcript_shape
          transcript user_message event model_event chat_model embedder summary journal usage""",
    1: """nursery signal subscription mailbox server draft limits working_time inspection options cancellation
          dead_letters request receipt shield turn answer gate scripted_model
          backoff relay retrying_model fallback_model cassette recording_model replay_model""",
    2: "directory waits",
    3: "routes router",
    4: """process_group ladder worker worker_process thread_call straggler tool step call summaries above
          attempt_view context actor""",
    5: """reach aim intervention filed_round role_rounds shared_entries memory account attempt receive_loop lifetime""",
    6: "root_turn line queued background roster facilities supervisor",
    7: """spoken streaming typed_answer conversation_view conversation_life conversation opening draining
          admission board boundary_watch budget_watch end_watch receipt_watch leftovers record placement invariant
          referee failure moments seeded_run testing watchdog""",
}

# Folders of runtime that bring a library of their own. They may import every row; no row imports them,
# and they do not import each other.
EDGES = ["models", "journals", "hosts"]

# What only some parts of runtime may import.
ONLY_IN = {"yaml": {"transcript", "transcript_file"}}

ROOT = Path(__file__).parent.parent
ROW = {name: row for row, names in LAYERS.items() for name in names.split()}
ORDER = [name for names in LAYERS.values() for name in names.split()]


@dataclass(frozen=True, slots=True)
class Module:
    """A source file of callboard."""

    name: str
    """Its dotted name, such as `callboard.runtime.models.http`."""
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        """The package it stands in, `callboard` for the files beside the packages."""
        name = self.name.split(".")[1:2]
        return name[0] if name and name[0] in PACKAGES else "callboard"

    @property
    def part(self) -> str:
        """The module or folder of its package it is, or is in; empty for the package's own `__init__`."""
        return "".join(self.name.split(".")[2:3])


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module and how that was written."""

    target: str
    """Its whole dotted name, such as `callboard.runtime.post` or `trio`."""
    line: int
    relative: bool


def read_modules(root: Path) -> dict[str, Module]:
    """Every module of the packages under `root`/callboard, by name."""
    top = root / "callboard"
    folders = [top / package for package in PACKAGES]
    paths = sorted([*top.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))])
    modules = {}
    for path in paths:
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = Module(name, path, ast.parse(path.read_text(encoding="utf-8")))
    return modules


def imports_of(module: Module, known: set[str]) -> Iterator[Import]:
    """What a module imports, those for types and those in functions too."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, relative=False)
        elif isinstance(node, ast.ImportFrom):
            base = origin(module, node)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield Import(inner if inner in known else base, node.lineno, relative=node.level > 0)


def origin(module: Module, node: ast.ImportFrom) -> str:
    """The absolute name of what stands after `from`; empty if the dots lead out of callboard."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    up = node.level - (module.path.stem == "__init__")
    return ".".join([*parts[: max(0, len(parts) - up)], *(node.module or "").split(".")]).strip(".")


def faults(root: Path) -> list[str]:
    """Everything in the import graph under `root` that breaks a rule, as `module:line: what`."""
    modules = read_modules(root)
    found: list[str] = []
    for module in modules.values():
        if fault := missing_from_table(module):
            found.append(f"{module.name}: {fault}")
        found += [f"{module.name}:{line}: import inside a function" for line in inside_functions(module.tree)]
        for one in imports_of(module, set(modules)):
            found += [f"{module.name}:{one.line}: {fault}" for fault in import_faults(module, one)]
    return list(dict.fromkeys(found + cycles(modules) + bare_imports(root)))


def missing_from_table(module: Module) -> str | None:
    """Why a module of runtime has no place in the table, if it has none."""
    placed = module.package != "runtime" or module.part in ["", *ORDER, *EDGES]
    return None if placed else f"{module.part} is missing from the table of layers"


def import_faults(module: Module, one: Import) -> Iterator[str]:
    """What is wrong with a single import."""
    match one.target.split("."):
        case ["callboard", "__main__"]:
            yield "nobody imports the command line"
        case ["callboard", package, *rest] if module.package != "callboard":
            yield from inner_faults(module, package, "".join(rest[:1]), one)
        case ["callboard", *_]:
            pass
        case _ if one.relative:
            yield "the dots lead out of callboard"
        case [top, *_]:
            yield from outer_faults(module, top)


def inner_faults(module: Module, package: str, part: str, one: Import) -> Iterator[str]:
    """What is wrong with a package's import of a part of callboard."""
    if one.relative != (package == module.package):
        yield f"{one.target}: relative within a package, absolute across packages"
    if package not in PACKAGES[: PACKAGES.index(module.package) + 1]:
        yield f"{module.package} may not import {package}"
    elif package == module.package == "runtime" and not may_import(module.part, part):
        yield f"runtime.{module.part} may not import {part or 'the door of runtime'}"


def may_import(part: str, other: str) -> bool:
    """Whether the table of layers lets one part of runtime import another."""
    if part in ("", other):
        return True
    if part in EDGES:
        return other in ORDER
    return part in ORDER and other in ORDER[: ORDER.index(part)]


def outer_faults(module: Module, top: str) -> Iterator[str]:
    """What is wrong with an import from outside callboard."""
    in_runtime = module.package == "runtime"
    if top == "asyncio" and not (in_runtime and module.part == "hosts"):
        yield "asyncio is imported in runtime/hosts/ alone"
    if top == "trio" and in_runtime and ROW.get(module.part) == 0:
        yield "layer 0 knows no trio"
    if in_runtime and module.part not in ONLY_IN.get(top, {module.part}):
        yield f"{top} is imported in {' and '.join(sorted(ONLY_IN[top]))} alone"


def inside_functions(tree: ast.Module) -> Iterator[int]:
    """The lines of the imports that stand inside a function."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inner = (node for function in functions for node in ast.walk(function))
    yield from sorted({node.lineno for node in inner if isinstance(node, ast.Import | ast.ImportFrom)})


def cycles(modules: dict[str, Module]) -> list[str]:
    """The first ring of imports, if there is one."""
    known = set(modules)
    graph = {name: {one.target for one in imports_of(module, known)} for name, module in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [f"a ring of imports: {' -> '.join(reversed(error.args[1]))}"]
    return []


def bare_imports(root: Path) -> list[str]:
    """Where a package is imported by its bare name, in the sources, the tests or the benchmarks."""
    others = sorted(path for folder in ("tests", "benchmarks") for path in (root / folder).rglob("*.py"))
    paths = [module.path for module in read_modules(root).values()] + others
    return [
        f"{path.relative_to(root)}:{line}: import it as callboard.{top}"
        for path in paths
        for line, top in absolute_imports(ast.parse(path.read_text(encoding="utf-8")))
        if top in PACKAGES
    ]


def absolute_imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and the first name of every absolute import."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name.split(".")[0]) for alias in names)
            case ast.ImportFrom(module=str(name), level=0):
                yield node.lineno, name.split(".")[0]


def write_tree(root: Path, sources: dict[str, str]) -> None:
    """Write a small tree; a name is a path without `.py`, below callboard unless it is in tests."""
    for package in PACKAGES:
        (root / "callboard" / package).mkdir(parents=True)
        (root / "callboard" / package / "__init__.py").touch()
    for name, source in sources.items():
        path = (root if name.startswith("tests/") else root / "callboard") / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)


def test_the_tree_has_no_fault() -> None:
    found = faults(ROOT)
    assert not found, "\n".join(found)


def test_every_package_of_the_tree_is_read() -> None:
    present = {module.package for module in read_modules(ROOT).values()}
    assert present >= {"callboard", "runtime", "prompts", "experience", "actors", "service"}


def test_no_module_stands_twice_in_the_table() -> None:
    assert len(ORDER) == len(set(ORDER))


def test_the_door_of_runtime_loads_no_library_it_does_not_need() -> None:
    program = "import sys, callboard.runtime; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert {"httpx", "numpy", "hypothesis", "pytest"}.isdisjoint(loaded.stdout.split())


RIGHT = {
    "a row above": {"runtime/router": "from .post import Post", "runtime/post": ""},
    "to the left in its row": {"runtime/post": "from . import ids", "runtime/ids": ""},
    "the door": {"runtime/__init__": "from .post import Post", "runtime/post": ""},
    "a package before it": {"actors/echo": "from callboard.runtime.post import Post", "runtime/post": ""},
    "the door of a package before it": {"actors/echo": "from callboard.runtime import Post"},
    "an edge": {"runtime/models/http": "import httpx\nfrom ..errors import E", "runtime/errors": ""},
    "asyncio in hosts": {"runtime/hosts/bridge": "import asyncio"},
    "trio above layer 0": {"runtime/mailbox": "import trio"},
    "yaml where it belongs": {"runtime/transcript": "import yaml"},
    "yaml in prompts": {"prompts/library": "import yaml"},
    "the version": {"service/page": "from callboard import __version__", "__init__": "__version__ = '1'"},
    "the command line": {"__main__": "from callboard.service.cli import main", "service/cli": ""},
    "a package by its whole name": {"tests/test_a": "from callboard import runtime"},
}

WRONG = {
    "runtime may not import prompts": {
        "runtime/post": "from callboard.prompts.library import x",
        "prompts/library": "",
    },
    "experience may not import actors": {"experience/pool": "import callboard.actors"},
    "runtime.post may not import router": {"runtime/post": "from .router import x", "runtime/router": ""},
    "runtime.ids may not import post": {"runtime/ids": "from . import post", "runtime/post": ""},
    "runtime.errors may not import text": {
        "runtime/errors": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .text import Text",
        "runtime/text": "",
    },
    "runtime.board may not import hosts": {
        "runtime/board": "from .hosts import x",
        "runtime/hosts/__init__": "",
    },
    "runtime.models may not import journals": {
        "runtime/models/http": "from ..journals import x",
        "runtime/journals/__init__": "",
    },
    "runtime.board may not import the door of runtime": {"runtime/board": "from . import Post"},
    "a ring of imports": {"actors/a": "from .b import x", "actors/b": "from .a import y"},
    "import inside a function": {"actors/a": "def f():\n    import json"},
    "import it as callboard.runtime": {"actors/a": "from runtime.post import Post"},
    "import it as callboard.prompts": {"tests/test_a": "import prompts.library"},
    "import it as callboard.service": {"tests/test_a": "def f():\n    import service"},
    "strange is missing from the table of layers": {"runtime/strange": ""},
    "asyncio is imported in runtime/hosts/ alone": {"actors/a": "from asyncio import sleep"},
    "layer 0 knows no trio": {"runtime/post": "import trio.lowlevel"},
    "yaml is imported in transcript and transcript_file alone": {"runtime/memory": "import yaml"},
    "relative within a package, absolute across packages": {
        "actors/a": "from callboard.actors.b import x",
        "actors/b": "",
    },
    "callboard.runtime.post: relative within a package": {
        "actors/a": "from ..runtime.post import x",
        "runtime/post": "",
    },
    "nobody imports the command line": {"service/a": "from callboard.__main__ import x", "__main__": ""},
    "the dots lead out of callboard": {"actors/a": "from ...elsewhere import x"},
}


@pytest.mark.parametrize("sources", RIGHT.values(), ids=RIGHT)
def test_what_is_allowed_is_no_fault(tmp_path: Path, sources: dict[str, str]) -> None:
    write_tree(tmp_path, sources)
    assert faults(tmp_path) == []


@pytest.mark.parametrize(("fault", "sources"), WRONG.items(), ids=WRONG)
def test_each_rule_catches_its_fault(tmp_path: Path, fault: str, sources: dict[str, str]) -> None:
    write_tree(tmp_path, sources)
    assert any(fault in found for found in faults(tmp_path))
