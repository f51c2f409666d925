"""What a user installs is the tree: the links, the wheel made out of the sdist, the versions of Python."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import callboard

from .test_imports import ROOT, absolute_imports, read_modules

LINKED = ["runtime", "actors", "prompts", "experience", "service"]

# The dependency that brings a module which is not named like it.
BROUGHT_BY = {"pydantic_core": "pydantic", "typing_extensions": "typing-extensions", "yaml": "pyyaml"}

# Interpreters that must take the sources: those on the path, and those that the environment variable
# CALLBOARD_PYTHONS lists, separated like the entries of a path.
NAMED = [name for name in os.environ.get("CALLBOARD_PYTHONS", "").split(os.pathsep) if name]
PYTHONS = ["python3.11", "python3.12", "python3.13", "python3.14", *NAMED]

COMPILE_ALL = """
import pathlib, sys
for path in map(pathlib.Path, sys.argv[1:]):
    compile(path.read_bytes(), path, "exec", dont_inherit=True)
"""

LACKING = """
import sys
from importlib.metadata import PackageNotFoundError, version

def numbers(text):
    return [int(part) for part in text.split(".") if part.isdecimal()]

def lacks(requirement):
    name, least = requirement.split(">=")
    try:
        return numbers(version(name)) < numbers(least)
    except PackageNotFoundError:
        return True

print(*filter(lacks, sys.argv[1:]), sep=", ")
"""


def project() -> dict[str, Any]:
    """The `project` table of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def tree() -> set[str]:
    """The files of the packages, as a wheel names them."""
    found = (Path(folder, name) for folder, _, names in walk(ROOT / "callboard") for name in names)
    return {path.relative_to(ROOT).as_posix() for path in found if not path.name.startswith(".")}


def walk(top: Path) -> list[tuple[str, list[str], list[str]]]:
    """The folders below `top`, through the links and without caches."""
    return [entry for entry in os.walk(top, followlinks=True) if Path(entry[0]).name != "__pycache__"]


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """What a program prints; a failure is told with all that it printed."""
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | variables, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def interpreter(name: str) -> str:
    """An interpreter that runs, else the test is skipped; one named in the environment has to run."""
    found = shutil.which(name)
    if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
        return found
    assert name not in NAMED, f"{name}, named in CALLBOARD_PYTHONS, does not run"
    pytest.skip(f"{name} is not on the path, or does not run")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `python -m build` makes out of the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed wheel and nothing else."""
    if find_spec("pip") is None:
        pytest.skip("this environment has no pip")
    target = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    run(sys.executable, "-m", "pip", "install", *options, "--target", target, wheel, cwd=target)
    return target


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """The wheel's metadata."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


@pytest.mark.parametrize("package", LINKED)
def test_a_package_is_a_relative_link_to_its_folder(package: str) -> None:
    if not (ROOT / package).is_dir():
        pytest.skip("an sdist holds the folders themselves")
    assert os.readlink(ROOT / "callboard" / package) == os.path.join("..", package)


@pytest.mark.parametrize("package", ["", *LINKED])
def test_a_package_is_typed(package: str) -> None:
    assert (ROOT / "callboard" / package / "py.typed").is_file()


def test_python_3_11_is_the_oldest() -> None:
    assert project()["requires-python"] == ">=3.11"


@pytest.mark.slow
def test_what_the_sources_import_is_declared() -> None:
    imported = {top for module in read_modules(ROOT).values() for _, top in absolute_imports(module.tree)}
    foreign = imported - sys.stdlib_module_names - {"callboard", "pytest"}  # pytest is there when it loads the plugin
    declared = {requirement.split(">=")[0] for requirement in project()["dependencies"]}
    assert {BROUGHT_BY.get(name, name) for name in foreign} <= declared


@pytest.mark.slow
def test_the_wheel_holds_the_tree_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name for name in names if ".dist-info/" not in name} == tree()


@pytest.mark.slow
def test_the_wheel_tells_its_version_and_the_oldest_python(metadata: Message) -> None:
    assert metadata["Version"] == callboard.__version__
    assert metadata["Requires-Python"] == ">=3.11"


@pytest.mark.slow
def test_the_installed_package_runs_without_the_tree(installed: Path, tmp_path: Path) -> None:
    names = ", ".join(f"callboard.{package}" for package in LINKED)
    program = f"import callboard, {names}\nprint(*(one.__file__ for one in (callboard, {names})), sep='\\n')"
    printed = run(sys.executable, "-c", program, cwd=tmp_path, PYTHONPATH=str(installed))
    assert [Path(line).parent.relative_to(installed).as_posix() for line in printed.splitlines()] == [
        "callboard",
        *(f"callboard/{package}" for package in LINKED),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", PYTHONS)
def test_every_python_compiles_the_sources(name: str) -> None:
    paths = [ROOT / path for path in sorted(tree()) if path.endswith(".py")]
    run(interpreter(name), "-W", "error", "-c", COMPILE_ALL, *paths, cwd=ROOT)


@pytest.mark.slow
@pytest.mark.parametrize("name", PYTHONS)
def test_every_python_that_has_the_dependencies_imports_the_package(name: str, installed: Path, tmp_path: Path) -> None:
    python = interpreter(name)
    if lacking := run(python, "-c", LACKING, *project()["dependencies"], cwd=tmp_path).strip():
        pytest.skip(f"{name} lacks {lacking}")
    run(python, "-W", "error", "-c", "import callboard.runtime", cwd=tmp_path, PYTHONPATH=str(installed))
