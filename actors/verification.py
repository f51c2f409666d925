"""Verification: a lint of code before it is run, by what stands in its syntax tree.

The rule to know: it is no sandbox. It tells a model early what it should not have written; who means to get round it
does, since names can be made at run time. What code may do is decided by `sandbox`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

MODULES = frozenset({"pandas", "matplotlib", "numpy", "sklearn", "scipy", "seaborn", "datetime", "typing"})
FUNCTIONS = frozenset(
    [
        "eval",
        "exec",
        "execfile",
        "compile",
        "open",
        "input",
        "raw_input",
        "reload",
        "__import__",
        "getattr",
        "setattr",
        "delattr",
        "vars",
        "globals",
        "locals",
        "__getattribute__",
        "__setattr__",
        "__delattr__",
    ]
)
_NEVER = frozenset(
    [
        "getattr",
        "setattr",
        "delattr",
        "vars",
        "globals",
        "locals",
        "__getattribute__",
        "__setattr__",
        "__delattr__",
        "__dict__",
        "__class__",
        "__bases__",
        "__subclasses__",
        "__mro__",
        "__builtins__",
    ]
)
_HARMLESS = frozenset({"__name__", "__doc__", "__version__", "__file__", "__init__", "__len__"})
# Modules that other modules hold as attributes.
_DANGEROUS = frozenset(
    [
        "os",
        "sys",
        "subprocess",
        "shutil",
        "socket",
        "builtins",
        "importlib",
        "ctypes",
        "pty",
        "pickle",
        "marshal",
        "runpy",
        "code",
        "signal",
        "posix",
        "multiprocessing",
    ]
)
_IN_TEXT = re.compile(r"[.\[]\s*['\"]?(__\w+__)")
_MAGIC = re.compile(r"\s*[%!]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What code may import, call and assign. An empty set allows or blocks nothing; None asks for nothing.

    Raises ValueError if modules, or functions, are both allowed and blocked.
    """

    allowed_modules: frozenset[str] | None = None
    blocked_modules: frozenset[str] | None = None
    allowed_functions: frozenset[str] | None = None
    blocked_functions: frozenset[str] | None = None
    allowed_variables: frozenset[str] | None = None
    """The names that code may bind in any way."""

    def __post_init__(self) -> None:
        if self.allowed_modules is not None and self.blocked_modules is not None:
            raise ValueError("modules are either allowed or blocked, not both")
        if self.allowed_functions is not None and self.blocked_functions is not None:
            raise ValueError("functions are either allowed or blocked, not both")

    def imports(self, module: str) -> bool:
        """Whether it may be imported, by the first part of its name."""
        first = module.partition(".")[0]
        return _passes(first, self.allowed_modules, self.blocked_modules)

    def calls(self, name: str) -> bool:
        """Whether it may be called."""
        return name not in _NEVER and _passes(name, self.allowed_functions, self.blocked_functions)

    def names(self, name: str) -> bool:
        """Whether it may be mentioned; what must not be called, could be called by another name."""
        return name not in _NEVER and (self.blocked_functions is None or name not in self.blocked_functions)

    @property
    def told(self) -> str:
        """The rules in words, a line each."""
        said = {
            "Import nothing but": self.allowed_modules,
            "Do not import": self.blocked_modules,
            "Call nothing but": self.allowed_functions,
            "Do not call": self.blocked_functions,
            "Assign to nothing but": self.allowed_variables,
        }
        lines = [f"- {rule}: {', '.join(sorted(names)) or 'none'}" for rule, names in said.items() if names is not None]
        return "\n".join([*lines, "- Do not use names with two underscores at both ends, and no lines with % or !"])


DEFAULT_RULES = Rules(allowed_modules=MODULES, blocked_functions=FUNCTIONS)
"""Those of TaskWeaver."""


def verify(code: str, rules: Rules | None) -> list[str]:
    """What is wrong with the code, a sentence each with its line; nothing without rules."""
    if rules is None:
        return []
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if any(map(_MAGIC.match, code.splitlines())):
            return ["Lines that begin with % or ! are no Python, and are not run here."]
        return [f"Syntax error: {error}"]
    nodes = sorted(ast.walk(tree), key=lambda node: getattr(node, "lineno", 0))
    found = (f"Line {getattr(node, 'lineno', 1)}: {fault}." for node in nodes for fault in _faults(node, rules))
    return list(dict.fromkeys(found))


def _passes(name: str, allowed: frozenset[str] | None, blocked: frozenset[str] | None) -> bool:
    return (allowed is None or name in allowed) and (blocked is None or name not in blocked)


def _faults(node: ast.AST, rules: Rules) -> Iterator[str]:
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from _import_faults(node, rules)
        case ast.Call():
            yield from _call_faults(node.func, rules)
        case ast.Attribute():
            yield from _attribute_faults(node.attr, rules)
        case ast.MatchClass():
            for name in node.kwd_attrs:
                yield from _attribute_faults(name, rules)
        case ast.Name() if not rules.names(node.id):
            yield f"{node.id} must not be used"
        case ast.Subscript(slice=ast.Constant(value=str() as key)) if key.startswith("__") or key in _NEVER:
            yield f"the key {key!r} must not be used"
        case ast.Constant(value=str() as text):
            yield from (f"{name} must not be used, in a format neither" for name in _IN_TEXT.findall(text))
    if rules.allowed_variables is not None:
        yield from (f"{name} must not be assigned" for name in _bound(node) if name not in rules.allowed_variables)


def _import_faults(node: ast.Import | ast.ImportFrom, rules: Rules) -> Iterator[str]:
    names = [one.name for one in node.names]
    if isinstance(node, ast.Import):
        yield from (f"{name} must not be imported" for name in names if not rules.imports(name))
        return
    if node.level:
        yield "relative imports are not possible here"
    elif node.module and not rules.imports(node.module):
        yield f"{node.module} must not be imported"
    # Modules of the system that another module has imported for itself.
    yield from (f"{name} must not be imported" for name in names if _is_smuggled(name, rules) or not rules.names(name))


def _call_faults(function: ast.expr, rules: Rules) -> Iterator[str]:
    match function:
        case ast.Name(id=name) if not rules.names(name):
            pass  # it must not be mentioned, which is told of the name
        case ast.Name(id=name) | ast.Attribute(attr=name):
            if not rules.calls(name):
                yield f"{name} must not be called"
        case ast.Call():
            pass
        case _:
            yield "only what has a name must be called"


def _attribute_faults(name: str, rules: Rules) -> Iterator[str]:
    is_inner = name.startswith("__") and name.endswith("__") and name not in _HARMLESS
    if is_inner or name in _NEVER or _is_smuggled(name, rules):
        yield f"the attribute {name} must not be used"


def _is_smuggled(name: str, rules: Rules) -> bool:
    """Whether it is called as a module of the system is that must not be imported."""
    return name in _DANGEROUS and not rules.imports(name)


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a node itself binds, in whatever way."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case (
            ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name)
        ):
            yield name
        case ast.MatchMapping(rest=str() as name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
