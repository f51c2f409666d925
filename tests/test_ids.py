"""Ids and times stay in order, whatever the clock does."""

import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from callboard.runtime.ids import Ids, create_id, create_id_at, current_ids, now, system_clock

NOON = 1_706_687_122_123_456
"""2024-01-31 07:45:22.123456 in microseconds."""


def showing(times: Iterable[int]) -> Callable[[], int]:
    return iter(times).__next__


def test_an_id_holds_the_second_the_microseconds_and_a_count() -> None:
    ids = Ids(lambda: NOON)
    assert ids.create("post") == "post-20240131-074522-1e240000"
    assert ids.create("post") == "post-20240131-074522-1e240001"


def test_a_time_is_iso_8601_in_utc() -> None:
    assert Ids(lambda: NOON).now() == "2024-01-31T07:45:22.123456Z"
    assert Ids(lambda: 5).now() == "1970-01-01T00:00:00.000005Z"


def test_an_id_and_its_time_are_of_the_same_moment() -> None:
    ids = Ids(lambda: NOON)
    assert ids.create_at("post") == ("post-20240131-074522-1e240000", "2024-01-31T07:45:22.123456Z")
    assert ids.create("post") == "post-20240131-074522-1e240001"


def test_a_clock_that_stands_still_gives_growing_ids() -> None:
    ids = Ids(lambda: NOON)
    made = [ids.create("a") for _ in range(10_000)]
    assert all(one < other for one, other in pairwise(made))


def test_the_4097th_id_of_a_microsecond_moves_on_to_the_next() -> None:
    ids = Ids(lambda: NOON)
    made = [ids.create("a") for _ in range(4097)]
    assert made[-2:] == ["a-20240131-074522-1e240fff", "a-20240131-074522-1e241000"]


def test_moving_on_crosses_into_the_next_second() -> None:
    ids = Ids(lambda: 999_999)
    made = [ids.create("a") for _ in range(4097)]
    assert made[-1] == "a-19700101-000001-00000000"


def test_a_clock_that_goes_back_changes_nothing() -> None:
    ids = Ids(showing([NOON, NOON - 5_000_000, NOON - 1, NOON + 1]))
    made = [ids.create("a") for _ in range(4)]
    assert made == sorted(set(made))
    assert made[1].startswith("a-20240131-074522-1e240")


@pytest.mark.parametrize("step", [1, 999_999, 1_000_000, 86_400_000_000])
def test_ids_grow_with_the_clock(step: int) -> None:
    ids = Ids(showing(range(NOON, NOON + 50 * step, step)))
    made = [ids.create("a") for _ in range(50)]
    assert made == sorted(set(made))


def test_a_time_is_never_before_an_earlier_one() -> None:
    ids = Ids(showing([NOON, NOON - 10, NOON - 10]))
    assert ids.now() == ids.now()
    assert ids.create("a").endswith("1e240000")


def test_a_time_is_never_before_an_earlier_id() -> None:
    ids = Ids(showing([NOON, NOON - 1]))
    ids.create("a")
    assert ids.now() == "2024-01-31T07:45:22.123456Z"


def test_asking_for_the_time_uses_up_no_ids() -> None:
    ids = Ids(lambda: NOON)
    ids.create("a")
    assert {ids.now() for _ in range(5000)} == {"2024-01-31T07:45:22.123456Z"}
    assert ids.create("a").endswith("1e240001")


def test_the_same_clock_gives_the_same_ids() -> None:
    one, other = Ids(lambda: NOON), Ids(lambda: NOON)
    assert [one.create("a"), one.now()] == [other.create("a"), other.now()]


def test_threads_that_share_a_source_get_different_ids() -> None:
    ids = Ids(lambda: NOON)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(ids.create, ["a"] * 8000))
    assert len(set(made)) == 8000


def test_the_functions_use_the_source_of_the_context() -> None:
    token = current_ids.set(Ids(lambda: NOON))
    try:
        assert create_id("post") == "post-20240131-074522-1e240000"
        assert create_id_at("post") == ("post-20240131-074522-1e240001", now())
    finally:
        current_ids.reset(token)


def test_without_a_source_of_its_own_a_context_uses_that_of_the_process() -> None:
    assert re.fullmatch(r"post-\d{8}-\d{6}-[0-9a-f]{8}", create_id("post"))
    assert create_id("post") < create_id("post")


def test_the_system_clock_is_in_this_century() -> None:
    assert 1_700_000_000_000_000 < system_clock() < 4_000_000_000_000_000


def test_a_source_has_a_short_repr() -> None:
    ids = Ids(lambda: NOON)
    assert repr(ids) == "<Ids, last second none>"
    ids.now()
    assert repr(ids) == "<Ids, last second 20240131-074522>"
