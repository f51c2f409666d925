"""Verification: the rules of the lint, the holes that a syntax tree can close, and what it lets pass."""

import pytest

from callboard.actors.verification import DEFAULT_RULES, Rules, verify

IMPORTS = "import pandas\nfrom numpy import mean"


def count(code: str, **rules: frozenset[str]) -> int:
    """How many faults it has."""
    return len(verify(code, Rules(**rules)))


def test_without_rules_everything_passes() -> None:
    assert verify("import os; eval('1')", None) == []


@pytest.mark.parametrize(
    ("rules", "faults"),
    [
        ({"allowed_modules": frozenset({"pandas"})}, 1),
        ({"allowed_modules": frozenset()}, 2),
        ({"blocked_modules": frozenset({"pandas", "numpy"})}, 2),
        ({"blocked_modules": frozenset()}, 0),
        ({}, 0),
    ],
)
def test_modules_are_allowed_or_blocked(rules: dict[str, frozenset[str]], faults: int) -> None:
    assert count(IMPORTS, **rules) == faults


@pytest.mark.parametrize(
    ("rules", "faults"),
    [
        ({"allowed_functions": frozenset({"sorted"})}, 1),
        ({"allowed_functions": frozenset()}, 2),
        ({"blocked_functions": frozenset({"sorted", "len"})}, 2),
        ({"blocked_functions": frozenset()}, 0),
    ],
)
def test_functions_are_allowed_or_blocked(rules: dict[str, frozenset[str]], faults: int) -> None:
    assert count("a = sorted([2])\nb = len(a)", **rules) == faults


@pytest.mark.parametrize("kind", ["modules", "functions"])
def test_both_at_once_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=f"{kind} are either allowed or blocked"):
        Rules(**{f"allowed_{kind}": frozenset(), f"blocked_{kind}": frozenset()})


@pytest.mark.parametrize(
    "code",
    [
        "x: int = 1",
        "(x := 1)",
        "for x in (): pass",
        "with open('f') as x: pass",
        "[1 for x in ()]",
        "import x",
        "import y as x",
        "def x(): pass",
        "class x: pass",
        "try: pass\nexcept OSError as x: pass",
        "match 1:\n    case x: pass",
        "match []:\n    case [*x]: pass",
        "match {}:\n    case {**x}: pass",
        "x += 1",
        "a, (x, *a) = 1, (2, 3)",
        "del x",
    ],
)
def test_only_allowed_variables_are_bound_in_whatever_way(code: str) -> None:
    (fault,) = verify(code, Rules(allowed_variables=frozenset({"a"})))
    assert fault.endswith(": x must not be assigned.")


@pytest.mark.parametrize(
    "code",
    [
        "eval('1')",
        "e = eval; e('1')",
        "[eval][0]('1')",
        "@eval\ndef f(): pass",
        "from builtins import eval",
        "import pandas as pd; pd.io.common.os.system('ls')",
        "from pandas.io.common import os",
        "from . import os",
        "import numpy, os",
        "x.__init__.__globals__",
        "().__class__",
        "x['__builtins__']",
        "__builtins__",
        "(lambda: 1)()",
        "d['f']()",
        "'{0.__class__}'.format(1)",
        "match 1:\n    case object(__class__=c): pass",
        "getattr(1, 'real')",
        "vars()",
        "!ls; pip install x",
        "%matplotlib inline\nx = 1",
        "%%bash\nls",
        "x = = 1",
        "x = '\0'",
    ],
)
def test_what_is_not_allowed_is_found(code: str) -> None:
    assert len(verify(code, DEFAULT_RULES)) >= 1


@pytest.mark.parametrize(
    "code",
    [
        "import pandas as pd\ndf = pd.DataFrame({'a': [1]})\nprint(df.describe())",
        "text = '''\n!ls\n%run\n'''",
        "def f(): return f\nf()()",
        "# eval('1')\nx = 1 % 2",
        "import numpy\nprint(numpy.__version__)",
        "class A:\n    def __init__(self): super().__init__()",
    ],
)
def test_what_is_harmless_passes(code: str) -> None:
    assert verify(code, DEFAULT_RULES) == []


def test_a_fault_names_its_line_comments_counted() -> None:
    assert verify("# one\n\nimport os", DEFAULT_RULES) == ["Line 3: os must not be imported."]
