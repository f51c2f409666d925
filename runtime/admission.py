"""Admission: who may hold a conversation on a board, and whose turn it is when a place is free.

The rule to know: all of it is sync, and no place is free while somebody waits who could have it. So who comes anew
never passes one who waits.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Literal

from .errors import BoardFull

PlaceState = Literal["waiting", "held", "given up"]


class Place:
    """One conversation's place, from the request on. Made by `Admission`."""

    __slots__ = ("on_settled", "state", "tenant")

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.state: PlaceState = "waiting"
        self.on_settled: Callable[[], None] = _nothing
        """Called, in the step in which it happens, when one that waited is held, or all are given up. May not raise."""

    def __repr__(self) -> str:
        return f"<Place of {self.tenant!r}, {self.state}>"


class Admission:
    """At most `limit` places are held, at most `tenant_limit` of them by one tenant; None is no limit.

    Those who wait are let in tenant by tenant, in turn; of one tenant in the order in which they came. A tenant at its
    limit is passed over and keeps its turn.
    """

    def __init__(self, limit: int | None = None, tenant_limit: int | None = None) -> None:
        self._limit = _checked("limit", limit)
        self._tenant_limit = _checked("tenant_limit", tenant_limit)
        self._held: Counter[str] = Counter()
        """By tenant."""
        self._count = 0
        self._waiting: dict[str, deque[Place]] = {}
        """By tenant, whose turn is first at the front."""

    @property
    def held(self) -> int:
        """How many places are held."""
        return self._count

    @property
    def waiting(self) -> int:
        """How many wait for one."""
        return sum(map(len, self._waiting.values()))

    def obstacle(self, tenant: str) -> BoardFull | None:
        """The limit that would make another place of that tenant wait, as an error to raise."""
        if self._limit is not None and self._count >= self._limit:
            return BoardFull(self._limit)
        if self._tenant_limit is not None and self._held[tenant] >= self._tenant_limit:
            return BoardFull(self._tenant_limit, tenant)
        return None

    def request(self, tenant: str) -> Place:
        """A place: held if there is one, else waiting, as the last of its tenant."""
        place = Place(tenant)
        if self.obstacle(tenant) is None:
            self._hold(place)
        else:
            self._waiting.setdefault(tenant, deque()).append(place)
        return place

    def give_up(self, place: Place) -> None:
        """It is not needed any more, whether it was held or waited; who comes next holds it. Safe to repeat."""
        state, place.state = place.state, "given up"
        if state == "waiting":
            self._take_out(place)
        elif state == "held":
            self._release(place.tenant)
            self._let_in()

    def close(self) -> None:
        """Gives up all places that wait, and tells them."""
        waiting = [place for places in self._waiting.values() for place in places]
        self._waiting.clear()
        for place in waiting:
            place.state = "given up"
            place.on_settled()

    def _let_in(self) -> None:
        # One place that becomes free lets in one at most: all who wait, but for it, had been kept out before.
        tenant = next((one for one in self._waiting if self.obstacle(one) is None), None)
        if tenant is not None:
            places = self._waiting.pop(tenant)
            place = places.popleft()
            if places:
                self._waiting[tenant] = places  # at the back
            self._hold(place)
            place.on_settled()

    def _hold(self, place: Place) -> None:
        place.state = "held"
        self._held[place.tenant] += 1
        self._count += 1

    def _release(self, tenant: str) -> None:
        self._held[tenant] -= 1
        self._count -= 1
        if not self._held[tenant]:
            del self._held[tenant]

    def _take_out(self, place: Place) -> None:
        places = self._waiting[place.tenant]
        places.remove(place)
        if not places:
            del self._waiting[place.tenant]


def _checked(name: str, limit: int | None) -> int | None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise ValueError(f"{name} is a whole number from 1 on, not {limit!r}")
    return limit


def _nothing() -> None:
    return None
