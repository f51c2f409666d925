"""Classes of roles: packaged ones by name, own ones by their module, and what their constructors take."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from callboard.actors import CodeInterpreter, Echo, Planner
from callboard.runtime import Actor, Post, TurnContext
from callboard.service.role_class import Constructor, UnusableRole, find_role_class, settings_name

if TYPE_CHECKING:
    from callboard.runtime.chat_model import ChatModel

ROLE = """\
from callboard.actors import Echo

class Mine(Echo):
    pass

class Named(Echo):
    settings_name = "another"
"""


class Silent(Actor):
    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        return None


@dataclass(eq=False)
class Keeper(Silent):
    needed: int
    _: KW_ONLY
    files: Mapping[str, Path] | None = None
    model: "ChatModel | None" = None


class Anything(Silent):
    def __init__(self, **options: Any) -> None:
        self.options = options


class Unreadable(Silent):
    def __init__(self, model: "ChatModel", count: int = 1) -> None:
        self.count = count


@pytest.fixture(autouse=True)
def modules_as_before(tmp_path: Path) -> Iterator[None]:
    path = sys.path.copy()
    yield
    sys.path[:] = path
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def find(name: str, folder: Path = Path(__file__).parent, *, from_project: bool = False) -> type[Actor]:
    return find_role_class(name, folder, from_project=from_project)


def test_packaged_roles_go_by_their_names() -> None:
    assert [find(name) for name in ("Planner", "CodeInterpreter", "Echo")] == [Planner, CodeInterpreter, Echo]


def test_an_installed_class_goes_by_its_module() -> None:
    assert find("callboard.actors.echo:Echo") is Echo


def test_a_class_of_the_project_is_found_if_the_settings_allow_it(tmp_path: Path) -> None:
    (tmp_path / "own_roles.py").write_text(ROLE)
    assert find("own_roles:Mine", tmp_path, from_project=True).__name__ == "Mine"
    assert sys.path[-1] == str(tmp_path.resolve())


@pytest.mark.parametrize("on_path", [False, True])
def test_a_module_of_the_project_does_not_run_unless_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_path: bool
) -> None:
    (tmp_path / "trap.py").write_text("raise SystemExit('it ran')")
    if on_path:
        monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnusableRole) as caught:
        find("trap:Mine", tmp_path)
    assert caught.value.remedy == "write import_from_project: true, which runs the code there"


def test_a_module_that_hides_that_of_the_project_is_told(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text(ROLE)
    with pytest.raises(UnusableRole, match="another module 'json' hides the one in the project's folder"):
        find("json:Mine", tmp_path, from_project=True)


BROKEN = {
    "Plannr": r"callboard brings no role 'Plannr'",
    "own roles:Mine": r"names no class",
    "nowhere_at_all:X": r"there is no module 'nowhere_at_all'",
    "callboard.nowhere:X": r"there is no module 'callboard.nowhere'",
    "callboard.actors:Plannr": r"callboard\.actors has no Plannr",
    "callboard.actors:__all__": r"__all__ is no class of roles",
    "callboard.runtime:Post": r"Post is no class of roles",
    "callboard.runtime:Actor": r"Actor cannot be made: it has no `receive`",
    "lacking:Mine": r"lacking needs a module that is not there: nowhere_at_all",
    "failing:Mine": r"failing cannot be imported: ZeroDivisionError",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_class_that_cannot_be_had_is_told_why(tmp_path: Path, name: str) -> None:
    (tmp_path / "lacking.py").write_text("import nowhere_at_all")
    (tmp_path / "failing.py").write_text("1 / 0")
    with pytest.raises(UnusableRole, match=BROKEN[name]):
        find(name, tmp_path, from_project=True)


def test_a_role_goes_by_the_file_of_its_class_unless_it_says_otherwise(tmp_path: Path) -> None:
    (tmp_path / "named_roles.py").write_text(ROLE)
    names = [settings_name(find(f"named_roles:{one}", tmp_path, from_project=True)) for one in ("Mine", "Named")]
    assert names == ["named_roles", "another"]
    assert [settings_name(one) for one in (Planner, CodeInterpreter, Echo)] == ["planner", "code_generator", "echo"]


def test_a_constructor_says_what_it_takes_and_needs() -> None:
    keeper = Constructor(Keeper)
    assert (keeper.parameters, keeper.needed) == (("needed", "files"), ("needed",))
    assert (keeper.takes("model"), keeper.takes("experience")) == (True, False)
    assert Constructor(Anything).takes("experience")


def test_values_are_as_the_types_of_the_parameters_have_them(tmp_path: Path) -> None:
    taken = Constructor(CodeInterpreter).checked("files", {"a.csv": "data/a.csv"}, tmp_path)
    assert taken == {"a.csv": tmp_path / "data" / "a.csv"}
    assert Constructor(CodeInterpreter).checked("folder", "/there", tmp_path) == Path("/there")
    assert Constructor(CodeInterpreter).checked("timeout", 5, tmp_path) == 5.0
    assert Constructor(Anything).checked("whatever", [1], tmp_path) == [1]


def test_a_type_that_only_type_checkers_know_is_not_checked(tmp_path: Path) -> None:
    assert Constructor(Unreadable).checked("count", "many", tmp_path) == "many"


WRONG = [
    ("CodeInterpreter", "timeot", 5, r"CodeInterpreter takes no such parameter"),
    ("CodeInterpreter", "timeout", "soon", r"CodeInterpreter: it should be a valid number"),
    ("CodeInterpreter", "files", {"a": {}}, r"CodeInterpreter: "),
    ("CodeInterpreter", "model", "main", r"this is no parameter"),
    ("Echo", "loud", True, r"Echo takes no such parameter"),
]


@pytest.mark.parametrize(("role", "name", "value", "told"), WRONG)
def test_a_parameter_that_cannot_be_taken_is_told(role: str, name: str, value: object, told: str) -> None:
    with pytest.raises(UnusableRole, match=told):
        Constructor(find(role)).checked(name, value, Path())
