"""Plugin: functions are read off the source, which the host does not run."""

import sys
from pathlib import Path

import pytest

from callboard.actors.plugin import Plugin

SOURCE = '''\
"""Prices."""
raise SystemExit("the host must not run it")


async def price(item: str, *, count: int = 1) -> "list[float]":
    """What so many cost,
    each.

    More of it.
    """


def _hidden(x): ...
'''


def plugin(tmp_path: Path, source: str) -> Plugin:
    """One from a file with that source."""
    file = tmp_path / "prices.py"
    file.write_text(source, encoding="utf-8")
    return Plugin(file)


def test_a_file_is_read_and_not_run(tmp_path: Path) -> None:
    made = plugin(tmp_path, SOURCE)
    assert made.signatures == (
        "async def price(item: str, *, count: int=1) -> 'list[float]':\n    What so many cost,\n    each.",
    )
    assert made.shipment == {"module": "plugin_prices", "source": SOURCE, "functions": ["price"]}


def test_a_module_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prices_here.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    assert Plugin("prices_here").shipment == {"module": "prices_here", "source": "", "functions": ["price"]}
    assert "prices_here" not in sys.modules


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("def f(x) -> int: ...", "f has no type for x"),
        ("def f(*x: int, **y): ...", "f has no type for y, its result"),
        ("def _f() -> int: ...", "no public function"),
    ],
)
def test_what_cannot_be_shown_to_a_model_is_refused(source: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=fault):
        plugin(tmp_path, source)


@pytest.mark.parametrize("where", ["no_such_module_here", "no_such.module", "math", Path("missing.py")])
def test_what_is_not_there_is_refused(where: str | Path) -> None:
    with pytest.raises(ValueError, match=r"plugin .*: there is no"):
        Plugin(where)
