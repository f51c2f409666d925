"""A role's rounds read as a tuple of them does, whatever memory adds later."""

import copy
import pickle
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.runtime.memory import Memory
from callboard.runtime.role_rounds import RoleRounds
from callboard.runtime.round import Round

from .test_memory import memory_of, post_on, routes_of

ROUNDS = tuple(Round(f"round-{number}", "q", "finished", ()) for number in range(4))
numbers = st.none() | st.integers(-6, 6)


def shared(count: int, *, with_last: bool = True) -> tuple[RoleRounds, tuple[Round, ...]]:
    """The first rounds as memory would give them, after which its list has grown; and as a tuple."""
    before = list(ROUNDS[:count])
    rounds = RoleRounds(before, ROUNDS[3] if with_last else None)
    before.append(ROUNDS[0])
    return rounds, (*ROUNDS[:count], *([ROUNDS[3]] if with_last else []))


@given(st.integers(0, 3), st.booleans(), st.slices(6) | st.builds(slice, numbers, numbers), st.integers(-6, 6))
def test_it_reads_as_a_tuple_does(count: int, with_last: bool, part: slice, index: int) -> None:
    rounds, expected = shared(count, with_last=with_last)
    assert (len(rounds), list(rounds), rounds[part]) == (len(expected), list(expected), expected[part])
    assert isinstance(rounds[part], tuple)
    if -len(expected) <= index < len(expected):
        assert rounds[index] is expected[index]
    else:
        with pytest.raises(IndexError):
            rounds[index]


def test_it_equals_a_tuple_of_the_same_rounds_and_no_other() -> None:
    rounds, expected = shared(2)
    assert rounds == expected and expected == rounds and hash(rounds) == hash(expected)
    assert rounds == shared(2)[0]
    assert rounds != expected[:-1]
    assert rounds != list(expected)


def test_it_travels_without_what_came_later() -> None:
    rounds, expected = shared(2)
    for copied in (pickle.loads(pickle.dumps(rounds)), copy.deepcopy(rounds)):
        assert (type(copied), copied) == (tuple, expected)
    assert repr(rounds) == repr(expected)


def test_the_round_that_goes_on_is_built_again_only_for_roles_that_have_something_new() -> None:
    memory = memory_of(("a", "created", ("User>P", "P>C")))
    first, other = memory.role_rounds("P")[0], memory.role_rounds("C")[0]
    assert memory.role_rounds("P")[0] is first
    memory.record(post_on("P>P"))
    assert memory.role_rounds("C")[0] is other
    assert routes_of(memory.role_rounds("P")) == [["User>P", "P>C", "P>P"]]


def room_of_an_answer(memory: Memory) -> int:
    """The bytes that are taken, at most, while a role that asked before asks again, with one post more."""
    memory._rounds_of("P", False)
    memory.record(post_on("P>C"))
    tracemalloc.start()
    memory._rounds_of("P", False)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_an_answer_takes_no_more_room_after_a_thousand_rounds_than_after_ten() -> None:
    few, many = (
        memory_of(*((str(number), "finished", ("User>P", "P>User")) for number in range(count)), ("b", "created", ()))
        for count in (10, 1000)
    )
    assert room_of_an_answer(many) < room_of_an_answer(few) + 500
