"""The figures of style that a machine can read off the sources, and each of them shown to catch its fault."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_imports import PACKAGES, ROOT

pytestmark = pytest.mark.slow  # they read the sources and run none of them: the gate does

MODULE_LINES = 250
FUNCTION_LINES = 45
PARAMETERS = 5
TYPE_IGNORES = 4

# Functions whose keyword-only parameters are options for users, which are not counted, as `path:name`.
OPTIONS = {"runtime/tool.py:__init__", "service/chat.py:hold_chat"}

NO_NOUNS = {"utils", "util", "helpers", "helper", "common", "base", "manager"}
SILENCED = re.compile(r"#\s*(type:\s*ignore|noqa)(?P<rules>\[[^]]*\]|:\s*[A-Z0-9, ]+)?\s*(?P<reason>[#(].*\w)?")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources(root: Path) -> dict[str, str]:
    """The text of each module of the packages under `root`/callboard, by its path below callboard."""
    top = root / "callboard"
    paths = [*top.glob("*.py"), *(path for package in PACKAGES for path in (top / package).rglob("*.py"))]
    return {path.relative_to(top).as_posix(): path.read_text(encoding="utf-8") for path in sorted(paths)}


def faults(path: str, text: str) -> Iterator[str]:
    """What in one module breaks a rule, as `path: what`."""
    tree = ast.parse(text)
    lines = len(text.splitlines())
    if lines > MODULE_LINES:
        yield f"{path}: {lines} lines"
    if NO_NOUNS & set(Path(path).with_suffix("").parts):
        yield f"{path}: a module is named for one noun"
    yield from (f"{path}:{name}: no docstring" for name in undocumented(tree))
    for function in functions(tree):
        yield from (f"{path}:{function.name}: {fault}" for fault in function_faults(path, function))
    for line, comment in comments(text):
        yield from (f"{path}:{line}: {fault}" for fault in comment_faults(comment))


def functions(tree: ast.AST) -> list[Function]:
    """Every function and method in a tree, inner ones too."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def function_faults(path: str, function: Function) -> Iterator[str]:
    """What is wrong with a function's size."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if lines > FUNCTION_LINES:
        yield f"{lines} lines"
    count = len(parameters(function, options=f"{path}:{function.name}" in OPTIONS))
    if count > PARAMETERS:
        yield f"{count} parameters"


def parameters(function: Function, *, options: bool) -> list[str]:
    """What a function is given besides `self`, `cls` and `*args`; keyword-only `options` are left out."""
    taken = function.args
    named = [*taken.posonlyargs, *taken.args, *([] if options else taken.kwonlyargs)]
    return [one.arg for one in named if one.arg not in ("self", "cls")]


def undocumented(tree: ast.Module) -> Iterator[str]:
    """The public names without a docstring: of the module, its classes and functions, and their methods."""
    if ast.get_docstring(tree) is None:
        yield "module"
    for node in tree.body:
        yield from undocumented_below(node)


def undocumented_below(node: ast.AST) -> Iterator[str]:
    """The same of one class or function. The methods of a subclass may be documented in its bases."""
    if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
        return
    if ast.get_docstring(node) is None:
        yield node.name
    if isinstance(node, ast.ClassDef) and not node.bases:
        for inner in node.body:
            yield from (f"{node.name}.{name}" for name in undocumented_below(inner))


def comments(text: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each comment."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def comment_faults(comment: str) -> Iterator[str]:
    """What is wrong with a comment: it leaves work for later, or silences a tool without rule or reason."""
    if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", comment):
        yield "work left for later"
    silenced = SILENCED.match(comment)
    if silenced and not (silenced["rules"] and silenced["reason"]):
        yield "a silencing names its rule and gives its reason: `# type: ignore[rule]  # reason`"


def silencings(text: str) -> list[str]:
    """Where and how a module silences the type checker or the linter."""
    marks = [f"{line}: {comment}" for line, comment in comments(text) if SILENCED.match(comment)]
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    casts = [f"{call.lineno}: {ast.unparse(call)}" for call in calls if is_cast(call.func)]
    return marks + casts


def is_cast(called: ast.expr) -> bool:
    """Whether the called thing is `cast` or `typing.cast`."""
    return ast.unparse(called) in ("cast", "typing.cast")


def test_the_sources_keep_the_figures() -> None:
    found = [fault for path, text in sources(ROOT).items() for fault in faults(path, text)]
    assert not found, "\n".join(found)


def test_runtime_hardly_silences_the_type_checker() -> None:
    found = {path: silencings(text) for path, text in sources(ROOT).items() if path.startswith("runtime/")}
    print({path: marks for path, marks in found.items() if marks})
    assert sum("type: ignore" in mark for marks in found.values() for mark in marks) <= TYPE_IGNORES


def test_who_parks_is_out_of_reach_of_ctrl_c() -> None:
    """KeyboardInterrupt between noting a task and parking it would leave a task to be woken that has ended."""
    trees = {path: ast.parse(text) for path, text in sources(ROOT).items()}
    parking = [(path, one) for path, tree in trees.items() for one in functions(tree) if parks(one)]
    assert len(parking) >= 6
    reached = [f"{path}:{one.name}" for path, one in parking if "enable_ki_protection" not in decorators(one)]
    assert not reached


def parks(function: Function) -> bool:
    """Whether it waits by the means of trio's own primitives."""
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(ast.unparse(called).endswith("wait_task_rescheduled") for called in calls)


def decorators(function: Function) -> list[str]:
    """What stands before it, as written."""
    return [ast.unparse(decorator) for decorator in function.decorator_list]


def test_the_options_left_out_of_the_count_exist() -> None:
    trees = {path: ast.parse(text) for path, text in sources(ROOT).items()}
    assert {f"{path}:{one.name}" for path, tree in trees.items() for one in functions(tree)} >= OPTIONS


WRONG = {
    "runtime/post.py: 251 lines": '"""It."""\n' + "\n" * 250,
    "runtime/post.py:long: 46 lines": '"""It."""\ndef long():\n    """It."""\n' + "    1\n" * 44,
    "runtime/post.py:wide: 6 parameters": '"""It."""\ndef wide(a, b, c, d, e, *, f):\n    """It."""\n',
    "runtime/post.py:module: no docstring": "",
    "runtime/post.py:Bare: no docstring": '"""It."""\nclass Bare:\n    pass\n',
    "runtime/post.py:bare: no docstring": '"""It."""\nasync def bare():\n    pass\n',
    "runtime/post.py:A.b: no docstring": '"""It."""\nclass A:\n    """It."""\n    def b(self): ...\n',
    "runtime/post.py:2: work left for later": '"""It."""\n# TO' + "DO: more\n",
    "runtime/post.py:2: a silencing names its rule": '"""It."""\nx = 1  # type: ignore[assignment]\n',
    "runtime/post.py:3: a silencing names its rule": '"""It."""\n\nx = 1  # noqa  # it is so\n',
}


@pytest.mark.parametrize(("fault", "text"), WRONG.items(), ids=[fault.split(": ", 1)[1] for fault in WRONG])
def test_each_figure_catches_its_fault(fault: str, text: str) -> None:
    assert any(found.startswith(fault) for found in faults("runtime/post.py", text))


@pytest.mark.parametrize("path", ["runtime/utils.py", "runtime/base/post.py", "actors/manager.py"])
def test_a_module_without_a_noun_is_a_fault(path: str) -> None:
    assert list(faults(path, '"""It."""')) == [f"{path}: a module is named for one noun"]


def test_what_is_within_the_figures_is_no_fault() -> None:
    text = '"""It."""\ndef f(self, a, b, c, d, e, *rest):\n    """It."""\nx = 1  # noqa: B039 (why)\n'
    assert list(faults("runtime/post.py", text)) == []


def test_casts_and_ignores_are_counted() -> None:
    text = "x = cast(int, y)\nz = typing.cast(int, y)\nw = 1  # type: ignore[a]  # why\n# cast(no, thing)\n"
    assert [mark.split(":")[0] for mark in silencings(text)] == ["3", "1", "2"]
