"""Frozen values equal what they were made from, and refuse what JSON cannot hold."""

import copy
import math
import pickle
from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from callboard.runtime.json_value import EMPTY, MAX_DEPTH, FrozenMapping, check_text, freeze, thaw

NESTED: dict[str, Any] = {"b": [1, {"c": [None, True]}], "a": "text", "f": 1.5}


class Color(StrEnum):
    RED = "red"


class Size(IntEnum):
    SMALL = 1


class Share(float):
    """A float with another name."""


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def test_freezing_and_thawing_gives_equal_plain_data() -> None:
    thawed = thaw(freeze(NESTED))
    assert thawed == NESTED
    assert type(thawed["b"]) is list
    assert type(thawed["b"][1]) is dict


def test_freezing_makes_mappings_and_tuples_all_the_way_down() -> None:
    assert freeze([{"a": [1]}]) == (FrozenMapping({"a": (1,)}),)
    assert type(FrozenMapping({"a": [1]})["a"]) is tuple


def test_a_frozen_mapping_does_not_see_later_changes_of_its_source() -> None:
    source = {"a": [1]}
    frozen = FrozenMapping(source)
    source["a"].append(2)
    source["b"] = []
    assert frozen == {"a": [1]}


def test_thawing_gives_new_data_each_time() -> None:
    frozen = FrozenMapping({"a": [1]})
    thaw(frozen)["a"].append(2)
    assert thaw(frozen) == {"a": [1]}


def test_what_is_frozen_is_not_copied_again() -> None:
    frozen = FrozenMapping(NESTED)
    assert freeze(frozen) is frozen


def test_a_frozen_mapping_cannot_be_written_to() -> None:
    frozen: Any = FrozenMapping(NESTED)
    with pytest.raises(TypeError):
        frozen["a"] = 1
    with pytest.raises(AttributeError):
        frozen.a = 1


def test_a_frozen_mapping_equals_mappings_of_equal_content() -> None:
    frozen, same = FrozenMapping(NESTED), FrozenMapping(NESTED)
    assert frozen == NESTED
    plain = dict(NESTED)
    assert plain == frozen
    assert frozen == same


@pytest.mark.parametrize("other", [{}, {"a": 2}, {"a": object()}, {1: 1}, [("a", 1)], None])
def test_a_frozen_mapping_differs_from_all_else(other: object) -> None:
    assert FrozenMapping({"a": 1}) != other


def test_equal_frozen_mappings_have_one_hash_whatever_their_order() -> None:
    one, other = FrozenMapping({"a": 1, "b": [2]}), FrozenMapping({"b": [2], "a": 1})
    assert {one: "found"}[other] == "found"
    assert hash(one) == hash(one)


def test_a_frozen_mapping_keeps_its_order() -> None:
    assert list(FrozenMapping(NESTED)) == ["b", "a", "f"]
    assert list(thaw(FrozenMapping(NESTED))) == ["b", "a", "f"]
    assert len(FrozenMapping(NESTED)) == 3


def test_a_frozen_mapping_survives_pickle() -> None:
    found = pickle.loads(pickle.dumps(FrozenMapping(NESTED)))
    assert found == FrozenMapping(NESTED)
    assert type(found) is FrozenMapping


def test_copies_of_a_frozen_mapping_are_itself() -> None:
    frozen = FrozenMapping(NESTED)
    assert copy.copy(frozen) is frozen
    assert copy.deepcopy([frozen])[0] is frozen


def test_the_repr_of_a_large_mapping_is_short() -> None:
    assert repr(FrozenMapping({"a": 1})) == "FrozenMapping({'a': 1})"
    assert len(repr(FrozenMapping({str(i): "x" * 1000 for i in range(1000)}))) < 300


def test_the_empty_mapping_is_empty() -> None:
    assert EMPTY == {} == FrozenMapping()


def test_subclasses_become_what_they_stand_for() -> None:
    frozen = freeze([Color.RED, Size.SMALL, Share(0.5)])
    assert isinstance(frozen, tuple)
    assert [type(item) for item in frozen] == [str, int, float]
    assert frozen == ("red", 1, 0.5)


REFUSED: list[tuple[object, str]] = [
    (object(), "value is of type object"),
    ({"a": [1, {2}]}, r"value\.a\[1\] is of type set"),
    ({"a": {3: 4}}, r"value\.a has the key 3"),
    ([math.nan], r"value\[0\] is nan"),
    ({"a": -math.inf}, r"value\.a is -inf"),
    ({"a": "\ud800"}, r"value\.a has half a surrogate pair at character 0"),
    ({"\udfff": 1}, "a key of value has half a surrogate pair"),
    (b"bytes", "value is of type bytes"),
]


@pytest.mark.parametrize(("value", "said"), REFUSED)
def test_what_json_cannot_hold_is_refused_with_its_place(value: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        freeze(value)


def test_the_place_begins_with_the_name_that_is_given() -> None:
    with pytest.raises(ValueError, match=r"extra\.a is of type"):
        freeze({"a": object()}, "extra")


def test_nesting_has_a_limit_and_no_crash() -> None:
    assert thaw(freeze(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    with pytest.raises(ValueError, match="nested deeper than 100"):
        freeze(nested(MAX_DEPTH + 1))


def test_a_value_that_holds_itself_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["a"] = [circle]
    with pytest.raises(ValueError, match="nested deeper"):
        FrozenMapping(circle)


@pytest.mark.parametrize("text", ["", "plain", "grüße", "\U0001f600", "\x00\x85\u2028\ufeff\uffff"])
def test_text_that_utf_8_can_hold_passes(text: str) -> None:
    check_text(text, "message")


@pytest.mark.parametrize(
    ("text", "error"), [("a\ud83d", ValueError), ("\ude00\ud83d", ValueError), (5, TypeError), (None, TypeError)]
)
def test_text_that_utf_8_cannot_hold_is_refused(text: object, error: type[Exception]) -> None:
    check: Callable[[object, str], None] = check_text
    with pytest.raises(error, match="message"):
        check(text, "message")
