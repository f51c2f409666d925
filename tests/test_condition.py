"""Conditions: what the grammar takes, what it says, and what it refuses."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.prompts.condition import MOST_TOKENS, Condition
from callboard.runtime.json_value import JsonValue, freeze

VALUES: dict[str, JsonValue] = {
    "a": 1,
    "b": 2,
    "word": "x",
    "empty": "",
    "none": None,
    "list": ["i"],
    "yes": True,
    "extra": {"k": {"l": 3}},
}

TRUE = [
    "a",
    "list",
    "not empty",
    "not none",
    "not not a",
    "a < b",
    "a <= 1 and b >= 2",
    "a > 0.5",
    "a == 1",
    "a != -1",
    'word == "x"',
    "word == 'x'",
    'word < "y"',
    "none == null",
    "none == None",
    "yes == true",
    "yes != a",
    "empty or word",
    "empty and word or a",
    "a or empty and none",
    "not (a and empty)",
    "(((a)))",
    "extra.k.l == 3",
    "extra.other == null",
    "word.k == null",
    "not empty and a",
]

MALFORMED = {
    "": "half a condition",
    "a and": "half a condition",
    "and a": "needs a name or a value where 'and' stands",
    "a b": "cannot go on with 'b'",
    "a < b < 3": "cannot go on with '<'",
    "(a": "parenthesis that does not close",
    "a)": r"cannot go on with '\)'",
    "a = b": "cannot have '= b'",
    "a == 'x": "cannot have",
    "f(a)": r"cannot go on with '\('",
    "a[0]": "cannot have",
    "a.__class__()": r"cannot go on with '\('",
    "lambda: 1": "cannot have ': 1'",
    "include": "needs a name or a value where 'include' stands",
    " ".join(["not"] * MOST_TOKENS + ["a"]): "at most 50",
}


def holds(source: str, **values: JsonValue) -> bool:
    return Condition.parse(source).holds({name: freeze(value) for name, value in (VALUES | values).items()})


@pytest.mark.parametrize("source", TRUE)
def test_it_holds(source: str) -> None:
    assert holds(source)
    assert not holds(f"not ({source})")


@pytest.mark.parametrize("source", MALFORMED)
def test_what_is_no_condition_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match=MALFORMED[source]):
        Condition.parse(source)


@pytest.mark.parametrize("source", ["a < word", "word >= 1", "list < list", "yes < 2", "none < 1"])
def test_what_has_no_order_is_not_ordered(source: str) -> None:
    with pytest.raises(ValueError, match="only two numbers or two texts have an order"):
        holds(source)


def test_it_names_its_slots() -> None:
    assert Condition.parse("a and (b.c == 1 or not true) and a").slots == {"a", "b"}


def test_as_deep_as_it_may_be_it_is_read() -> None:
    assert holds("(" * 24 + "a" + ")" * 24)


def conditions() -> st.SearchStrategy[str]:
    """Conditions that Python reads in the same way."""
    numbers = st.one_of(st.integers(-3, 3).map(str), st.sampled_from("ab"))
    texts = st.sampled_from(["word", "empty", "'x'", '""'])
    signs = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    compared = st.one_of(st.tuples(numbers, signs, numbers), st.tuples(texts, signs, texts)).map(" ".join)
    atoms = st.one_of(compared, numbers, texts, st.sampled_from(["True", "None", "list"]))
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            inner.map("not {}".format),
            inner.map("({})".format),
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
        ),
        max_leaves=8,
    )


@settings(max_examples=40)
@given(conditions(), st.integers(-3, 3), st.sampled_from(["", "x", "yy"]))
def test_it_says_what_python_says(source: str, a: int, word: str) -> None:
    values: dict[str, JsonValue] = {**VALUES, "a": a, "word": word}
    assert holds(source, a=a, word=word) == bool(eval(source, {"__builtins__": {}}, values))
