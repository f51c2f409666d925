"""Shared entries are gathered as they come: nothing is read twice, and nothing that came to nothing is kept."""

from callboard.runtime.post import Post
from callboard.runtime.shared_entries import SharedEntries

from .test_memory import entry_on, post_on


def shared(*posts: Post) -> SharedEntries:
    """Entries after a first round of these posts."""
    entries = SharedEntries()
    for post in posts:
        entries.add(post)
    return entries


def contents(entries: SharedEntries) -> list[str]:
    """What the plans say that hold."""
    return [entry.content for entry in entries.of("plan")]


def test_an_answer_is_the_same_tuple_until_an_entry_of_its_type_comes() -> None:
    entries = shared(entry_on("P", "one"))
    answer = entries.of("plan")
    entries.add(post_on("P>C"))
    entries.of("experience_sub_path")
    entries.end_round("finished")
    assert entries.of("plan") is answer
    entries.begin_round()
    entries.begin_round()
    assert entries.of("plan") == answer
    entries.add(entry_on("P", "two"))
    assert contents(entries) == ["two"]


def test_what_is_shared_after_a_round_was_stopped_is_dropped_too() -> None:
    entries = shared()
    entries.end_round("stopped")
    entries.add(entry_on("P", "late"))
    assert contents(entries) == []
    entries.begin_round()
    entries.add(entry_on("P", "in time"))
    assert contents(entries) == ["in time"]


def test_what_is_shared_after_a_round_has_finished_holds() -> None:
    entries = shared()
    entries.end_round("finished")
    entries.add(entry_on("P", "of background work", "round"))
    assert contents(entries) == ["of background work"]
    entries.begin_round()
    assert contents(entries) == []


def test_an_entry_that_a_failed_round_would_have_replaced_holds_again() -> None:
    entries = shared(entry_on("P", "good"))
    entries.begin_round()
    entries.add(entry_on("P", "bad"))
    assert contents(entries) == ["bad"]
    entries.end_round("failed")
    assert contents(entries) == ["good"]
