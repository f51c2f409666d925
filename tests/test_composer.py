"""The composer: each kind of post as messages, and whole conversations as a model sees them."""

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.prompts.composer import compose
from callboard.prompts.library import fill_json
from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.chat_model import Message
from callboard.runtime.json_value import FrozenMapping
from callboard.runtime.post import Kind, Marks, Post, State
from callboard.runtime.round import Round
from callboard.runtime.shared_memory import SharedMemoryEntry

SYSTEM = Message("system", "You are Planner.")


def at(type: str, content: str | Sequence[str]) -> Attachment:
    """An attachment."""
    return Attachment.create(type, content)


def post(route: str, message: str = "", *attachments: Attachment, **marks: object) -> Post:
    """A post whose route is written `from > to`."""
    sender, recipient = route.split(" > ")
    return Post.create(message, sender, recipient, attachments, marks=Marks(**marks))  # type: ignore[arg-type]  # short


def note(message: str = "", *attachments: Attachment, **marks: object) -> Post:
    """A note of the Planner."""
    return post("Planner > Planner", message, *attachments, **{"kind": "note", **marks})


def said(*posts: Post) -> list[tuple[str, str]]:
    """What the Planner's model is sent behind the system message, in one round."""
    first, *rest = compose(SYSTEM.content, "Planner", [Round.create("q", post_list=posts)])
    assert first == SYSTEM
    return [(message.role, message.content) for message in rest]


def test_without_rounds_there_is_the_system_message() -> None:
    assert compose("You are Planner.", "Planner", []) == (SYSTEM,)


def test_the_users_words_stand_in_their_template() -> None:
    words = post("User > Planner", 'Say "hi".', words="words-1")
    assert said(words) == [("user", '{"user_message": "Say \\"hi\\"."}')]


def test_what_comes_with_the_users_words_is_listed() -> None:
    entry = SharedMemoryEntry.create("plan", "p", "round")
    hidden = Attachment.create("shared_memory_entry", "p", extra=entry)
    attached = [at("artifact_paths", ["a.csv", "b.csv"]), at("thought", "see"), hidden]
    words = post("User > Planner", "Go.", *attached, system_message=("Be brief.",))
    expected = '{"system_message": ["Be brief."], "user_message": "Go.", "attachments": ["a.csv", "b.csv", "see"]}'
    assert said(words) == [("user", expected)]


def test_words_that_look_like_a_template_stay_as_they_are() -> None:
    ((_, content),) = said(post("User > Planner", "{{attachments}}"))
    assert json.loads(content) == {"user_message": "{{attachments}}"}


def test_an_intervention_stands_where_it_came_in_its_own_template() -> None:
    messages = said(
        post("User > Planner", "Compare."),
        post("Planner > Worker", "Compare all."),
        post("User > Planner", "Only 2025.", kind="intervention", words="words-2"),
        post("Planner > Worker", "Compare 2025."),
    )
    assert messages == [
        ("user", '{"user_message": "Compare."}'),
        ("assistant", '{"response": {"send_to": "Worker", "message": "Compare all."}}'),
        ("user", '{"user_intervention": "Only 2025."}'),
        ("assistant", '{"response": {"send_to": "Worker", "message": "Compare 2025."}}'),
    ]


def test_words_of_a_role_are_not_taken_for_the_users() -> None:
    words = post("Editor > Planner", "Only 2025.", kind="intervention", words="words-2")
    assert said(words) == [("user", "From: Editor\n[says this in the middle of your work]\nOnly 2025.")]


def test_a_nudge_is_the_template() -> None:
    assert said(post("User > Planner", kind="nudge")) == [("user", fill_json("fw.msg_nudge"))]


def test_what_another_role_says_begins_with_its_name() -> None:
    assert said(post("Worker > Planner", "It is 3.", at("thought", "mine"))) == [("user", "From: Worker\nIt is 3.")]


def test_files_that_another_role_made_are_named() -> None:
    reply = post("Worker > Planner", "Done.", at("artifact_paths", ["a.png"]))
    assert said(reply) == [("user", "From: Worker\nDone.\nartifact_paths: a.png")]


def test_what_the_role_says_is_a_reply_with_its_attachments() -> None:
    ask = post("Planner > Worker", "Do 1.", at("plan", "1. do"), at("stop", "InProcess"))
    expected = '{"response": {"plan": "1. do", "stop": "InProcess", "send_to": "Worker", "message": "Do 1."}}'
    assert said(ask) == [("assistant", expected)]


def test_a_note_is_what_the_role_wrote_and_then_what_came_of_it() -> None:
    attached = [
        at("thought", "count"),
        at("reply_type", "python"),
        at("execution_status", "FAILURE"),
        at("reply_content", "f()"),
        at("code_error", "line 1:\nno f"),
        at("artifact_paths", ["a", "b"]),
    ]
    assert said(note("", *attached)) == [
        ("assistant", '{"response": {"thought": "count", "reply_type": "python", "reply_content": "f()"}}'),
        ("user", "execution_status: FAILURE\ncode_error:\nline 1:\nno f\nartifact_paths:\na\nb"),
    ]


@pytest.mark.parametrize(
    "type", ["execution_result", "execution_status", "code_error", "function", "verification", "revise_message"]
)
def test_what_came_of_something_is_said_to_the_role(type: str) -> None:
    assert said(note("", at(type, "x"))) == [("user", f"{type}: x")]
    assert [author for author, _ in said(post("Planner > User", "m", at(type, "x")))] == ["assistant", "user"]


def test_a_refused_reply_is_shown_as_it_was_written() -> None:
    refused = note("", at("invalid_response", "{oops"), at("revise_message", "Send JSON."))
    assert said(refused) == [("assistant", "{oops"), ("user", "revise_message: Send JSON.")]


def test_a_note_of_words_alone_is_the_words() -> None:
    assert said(note("I am at 2.")) == [("assistant", "I am at 2.")]


def test_a_note_for_shared_memory_is_not_shown() -> None:
    entry = SharedMemoryEntry.create("plan", "p", "round")
    assert said(note("", Attachment.create("shared_memory_entry", "p", extra=entry))) == []


def test_what_the_role_had_begun_is_marked_as_interrupted() -> None:
    assert said(note('{"response": {"pl', state="partial")) == [
        ("assistant", '{"response": {"pl'),
        ("user", "[Planner was interrupted here]"),
    ]


def test_attachments_that_the_role_had_begun_stand_in_a_reply() -> None:
    assert said(note("so f", at("thought", "sum"), state="partial"))[0] == (
        "assistant",
        '{"response": {"thought": "sum", "message": "so f"}}',
    )


def test_an_account_of_the_role_to_its_asker_is_marked_too() -> None:
    assert said(post("Planner > User", "so far", kind="reply", state="partial")) == [
        ("assistant", "so far"),
        ("user", "[Planner was interrupted here]"),
    ]


def test_a_recalled_subordinate_says_how_far_it_came() -> None:
    extra = {"user_words": ({"id": "words-2", "message": "Only 2025."},)}
    account = post(
        "Worker > Planner", "0.1.", at("thought", "count"), kind="reply", state="partial", extra=FrozenMapping(extra)
    )
    assert said(account) == [
        (
            "user",
            "From: Worker\n0.1.\nthought: count\n[the user had told Worker: Only 2025.]\n[Worker was interrupted here]",
        )
    ]


def test_a_recalled_subordinate_says_what_it_had_done_and_where_it_was_cut() -> None:
    extra = {
        "asked": "Compare.",
        "steps": (
            {"note": 'page "1"'},
            {"note": "half", "outcome": "interrupted"},
            {"tool": "search", "outcome": "done"},
            {"role": "Clerk", "outcome": "not_started"},
        ),
        "left_out": 3,
        "cut": ("Clerk",),
    }
    assert said(post("Worker > Planner", "So f", kind="reply", state="partial", extra=FrozenMapping(extra))) == [
        (
            "user",
            "From: Worker\n[Worker had been asked: Compare.]\n"
            '[Worker had done: 3 steps; noted "page \\"1\\""; noted "half" (interrupted); called search (done); '
            "asked Clerk (not started)]\nSo f\n[Worker was interrupted here, in Clerk]",
        )
    ]


def test_a_subordinate_that_had_not_begun_says_so() -> None:
    account = post("Worker > Planner", kind="reply", state="not_started")
    assert said(account) == [("user", "From: Worker\n[Worker was called off before it had begun]")]


def test_a_request_to_the_role_that_was_called_off_is_marked() -> None:
    assert said(post("Planner > User", kind="reply", state="not_started")) == [
        ("user", "[Planner was called off before it had begun]")
    ]


@pytest.mark.parametrize("route", ["Worker > Planner", "Worker > Worker", "Worker > User"])
@pytest.mark.parametrize("why", ["Worker failed: OSError: no disk", "OSError: no disk"])
def test_a_failure_is_told_to_the_role_that_it_concerns(route: str, why: str) -> None:
    failure = post(route, why, kind="error")
    expected = [("user", "[Worker failed: OSError: no disk]")] if route.endswith("Planner") else []
    assert said(failure) == expected


def test_the_roles_own_failure_is_told_to_it() -> None:
    assert said(post("Planner > User", "Planner failed", kind="error")) == [("user", "[Planner failed]")]


def test_posts_between_others_are_left_out() -> None:
    assert said(post("User > Worker", "x"), post("Worker > Tester", "y")) == []


def test_neighbours_of_one_author_are_one_message_over_rounds_too() -> None:
    first = Round.create("a", post_list=[post("Worker > Planner", "1"), post("Tester > Planner", "2")])
    second = Round.create("b", post_list=[post("User > Planner", "3")])
    assert compose("You are Planner.", "Planner", [first, second]) == (
        SYSTEM,
        Message("user", 'From: Worker\n1\n\nFrom: Tester\n2\n\n{"user_message": "3"}'),
    )


def test_a_chain_interrupted_at_level_two_reads_in_order() -> None:
    messages = said(
        post("User > Planner", "Write a report.", words="words-1"),
        note("", at("plan", "1. search")),
        post("Planner > Worker", "Search.", at("plan", "1. search")),
        post("Worker > Planner", "Found A", kind="reply", state="partial"),
        note("Then I", state="partial"),
        post("User > Planner", "Only B.", kind="intervention", words="words-2"),
    )
    assert messages == [
        ("user", '{"user_message": "Write a report."}'),
        (
            "assistant",
            '{"response": {"plan": "1. search"}}\n\n'
            '{"response": {"plan": "1. search", "send_to": "Worker", "message": "Search."}}',
        ),
        ("user", "From: Worker\nFound A\n[Worker was interrupted here]"),
        ("assistant", "Then I"),
        ("user", '[Planner was interrupted here]\n\n{"user_intervention": "Only B."}'),
    ]


ROUTES = st.sampled_from(["User > Planner", "Planner > Worker", "Worker > Planner", "Planner > Planner", "A > B"])
KINDS: st.SearchStrategy[Kind] = st.sampled_from(["message", "reply", "error", "note", "intervention", "nudge"])
STATES: st.SearchStrategy[State] = st.sampled_from(["whole", "partial", "not_started", "late"])
TYPES = st.sampled_from(sorted(set(AttachmentType) - {AttachmentType.text, AttachmentType.shared_memory_entry}))
ATTACHMENTS = st.lists(st.builds(at, TYPES, st.sampled_from(["", "x", "y\nz"])), max_size=3)
POSTS = st.builds(
    lambda route, message, attachments, kind, state: post(route, message, *attachments, kind=kind, state=state),
    ROUTES,
    st.sampled_from(["", "hi"]),
    ATTACHMENTS,
    KINDS,
    STATES,
)


@given(st.lists(POSTS, max_size=6), st.integers(0, 6))
def test_messages_alternate_and_hold_words(posts: list[Post], cut: int) -> None:
    rounds = [Round.create("a", post_list=posts[:cut]), Round.create("b", post_list=posts[cut:])]
    system, *messages = compose(SYSTEM.content, "Planner", rounds)
    assert system == SYSTEM
    assert all(one.role != next_one.role for one, next_one in pairwise(messages))
    assert all(one.content for one in messages)
    assert compose(SYSTEM.content, "Planner", rounds) == (system, *messages)


@given(
    st.lists(POSTS, max_size=3), POSTS.filter(lambda last: last.send_from != "Planner" and last.send_to == "Planner")
)
def test_what_was_said_to_the_role_last_is_a_users_message(posts: list[Post], last: Post) -> None:
    assert said(*posts, last)[-1][0] == "user"


def test_a_reply_repeats_nothing_that_a_note_on_the_same_request_has_shown() -> None:
    code, result = at("reply_content", "print(1)"), at("execution_result", "1")
    reply = post("Planner > User", "It printed 1.", code, result, kind="reply", in_reply_to="post-1")
    messages = said(note("", code, in_reply_to="post-1"), note("", result, in_reply_to="post-1"), reply)
    assert [content.count("print(1)") for _, content in messages] == [1, 0, 0]
    assert messages[-1] == ("assistant", '{"response": {"send_to": "User", "message": "It printed 1."}}')


def test_a_reply_to_another_request_shows_all_it_has() -> None:
    code = at("reply_content", "print(1)")
    reply = post("Planner > User", "Again.", code, kind="reply", in_reply_to="post-2")
    assert said(note("", code, in_reply_to="post-1"), reply)[-1][1].count("print(1)") == 2
