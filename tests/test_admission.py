"""Admission: the limits hold, no place is lost, and whoever waits has a turn, for any order of coming and going."""

from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.runtime.admission import Admission, Place

TENANTS = "abc"
limits = st.sampled_from([1, 2, 3, None])
requests = st.sampled_from(TENANTS)
leavings = st.integers(0, 5)


class Door:
    """An admission, and what is known of it from outside: who asked, who was let in, who passed whom."""

    def __init__(self, limit: int | None, tenant_limit: int | None) -> None:
        self.admission = Admission(limit, tenant_limit)
        self.limit = limit
        self.tenant_limit = tenant_limit
        self.places: list[Place] = []
        self.passed: dict[str, Counter[str]] = {}
        """By a tenant that waits: how often each other was let in since, while it could have been."""

    def request(self, tenant: str) -> None:
        place = self.admission.request(tenant)
        place.on_settled = partial(self.let_in, place)
        self.places.append(place)
        if place.state == "held":
            self.let_in(place)
        else:
            self.passed.setdefault(tenant, Counter())

    def let_in(self, place: Place) -> None:
        assert place.state == "held"
        before = self.places[: self.places.index(place)] if place in self.places else self.places
        assert not [one for one in before if one.tenant == place.tenant and one.state == "waiting"], "not in order"
        for tenant, passed in self.passed.items():
            if tenant != place.tenant and not self.at_limit(tenant):
                passed[place.tenant] += 1
        self.passed.pop(place.tenant, None)
        if self.waiting(place.tenant):
            self.passed[place.tenant] = Counter()

    def give_up(self, number: int) -> None:
        """One that is held, for small numbers, or one that waits; without any, one that was given up."""
        held = [place for place in self.places if place.state == "held"]
        waiting = [place for place in self.places if place.state == "waiting"]
        choice = [*held, *waiting] or self.places
        place = choice[number % len(choice)]
        self.admission.give_up(place)
        if not self.waiting(place.tenant):
            self.passed.pop(place.tenant, None)

    def held(self, tenant: str = TENANTS) -> int:
        return sum(place.state == "held" and place.tenant in tenant for place in self.places)

    def waiting(self, tenant: str = TENANTS) -> int:
        return sum(place.state == "waiting" and place.tenant in tenant for place in self.places)

    def at_limit(self, tenant: str) -> bool:
        return self.tenant_limit is not None and self.held(tenant) >= self.tenant_limit

    def check(self) -> None:
        assert (self.admission.held, self.admission.waiting) == (self.held(), self.waiting())
        full = self.limit is not None and self.held() >= self.limit
        assert self.limit is None or self.held() <= self.limit
        for tenant in TENANTS:
            assert self.tenant_limit is None or self.held(tenant) <= self.tenant_limit
            assert not self.waiting(tenant) or full or self.at_limit(tenant), "a place is lost"
            assert (self.admission.obstacle(tenant) is None) == (not full and not self.at_limit(tenant))
        assert all(times <= 1 for passed in self.passed.values() for times in passed.values()), "passed twice"


@settings(max_examples=150)
@given(limits, limits, st.lists(requests | leavings, min_size=8, max_size=40))
def test_limits_hold_no_place_is_lost_and_nobody_is_passed_twice(
    limit: int | None, tenant_limit: int | None, steps: list[str | int]
) -> None:
    door = Door(limit, tenant_limit)
    for step in steps:
        if isinstance(step, str):
            door.request(step)
        elif door.places:
            door.give_up(step)
        door.check()
    for place in door.places:
        door.admission.give_up(place)
    assert (door.admission.held, door.admission.waiting) == (0, 0)


def let_in_order(asked: str, *, held: str, tenant_limit: int | None = None) -> str:
    """In which order tenants are let in on a board that is full, one leaving after the other."""
    admission = Admission(len(held), tenant_limit)
    inside = [admission.request(tenant) for tenant in held]
    order: list[Place] = []
    for tenant in asked:
        place = admission.request(tenant)
        place.on_settled = partial(order.append, place)
    for place in inside:
        admission.give_up(place)
    for place in order:  # grows meanwhile
        admission.give_up(place)
    return "".join(place.tenant for place in order)


def test_tenants_are_let_in_in_turn_whoever_came_first() -> None:
    assert let_in_order("aaaabbc", held="a") == "abcabaa"


def test_one_tenant_is_let_in_in_the_order_in_which_it_came() -> None:
    assert let_in_order("aaa", held="a") == "aaa"


def test_a_tenant_at_its_limit_is_passed_over_and_keeps_its_turn() -> None:
    admission = Admission(3, tenant_limit=2)
    first, second = admission.request("a"), admission.request("a")
    other = admission.request("b")
    waits, third = admission.request("a"), admission.request("c")
    admission.give_up(other)
    assert (waits.state, third.state) == ("waiting", "held")
    late = admission.request("b")
    admission.give_up(first)
    assert (waits.state, late.state) == ("held", "waiting")
    admission.give_up(second)
    assert late.state == "held"


def test_giving_up_twice_frees_one_place() -> None:
    admission = Admission(1)
    place, *others = [admission.request("a") for _ in range(3)]
    admission.give_up(place)
    admission.give_up(place)
    assert [one.state for one in others] == ["held", "waiting"]


def test_those_who_wait_when_it_closes_are_told() -> None:
    admission = Admission(1)
    held, *waiting = [admission.request(tenant) for tenant in "aab"]
    told: list[Place] = []
    for place in waiting:
        place.on_settled = partial(told.append, place)
    admission.close()
    admission.give_up(held)
    assert (told, [place.state for place in told]) == (waiting, ["given up"] * 2)
    assert repr(told[1]) == "<Place of 'b', given up>"


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3"])
@pytest.mark.parametrize("name", ["limit", "tenant_limit"])
def test_a_limit_is_a_whole_number_from_one_on(name: str, limit: Any) -> None:
    with pytest.raises(ValueError, match=f"^{name} is a whole number"):
        Admission(**{name: limit})
