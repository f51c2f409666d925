"""The role view: each kind of post as the role that sent or got it is shown it."""

import json

import pytest

from callboard.prompts.composer import compose
from callboard.prompts.library import packaged
from callboard.prompts.material import Material
from callboard.runtime.attachment import Attachment
from callboard.runtime.chat_model import ImagePart, Message
from callboard.runtime.json_value import FrozenMapping
from callboard.runtime.post import Post
from callboard.runtime.round import Round
from callboard.runtime.shared_memory import SharedMemoryEntry
from tests.roles import template

from .composing import at, post

CANCELLED = template("fw.plan_cancelled")
LATE = "[this came after the interruption]"


def note(message: str = "", *attachments: Attachment, **marks: object) -> Post:
    """A note of the Planner."""
    return post("Planner > Planner", message, *attachments, **{"kind": "note", **marks})


def said(*posts: Post) -> list[tuple[str, str]]:
    """What the Planner's model is sent behind the system message, in one round."""
    first, *rest = compose(Material("You are Planner.", "Planner", (Round.create("", post_list=posts),)))
    assert first == Message("system", "You are Planner.")
    return [(message.role, message.content) for message in rest]


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
    assert said(post("User > Planner", kind="nudge")) == [("user", packaged.render("fw.msg_nudge"))]


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


@pytest.mark.parametrize("type", ["execution_result", "execution_status", "code_error", "function", "verification"])
def test_what_came_of_something_is_said_to_the_role(type: str) -> None:
    assert said(note("", at(type, "x"))) == [("user", f"{type}: x")]
    assert [author for author, _ in said(post("Planner > User", "m", at(type, "x")))] == ["assistant", "user"]


def test_a_refused_reply_is_shown_as_it_was_written() -> None:
    refused = note("", at("invalid_response", "{oops"), at("revise_message", "Send JSON."))
    assert said(refused) == [("assistant", "{oops"), ("user", "Send JSON.")]


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


@pytest.mark.parametrize(
    ("limit", "size", "expected"),
    [
        ("replies", 10, "[Worker failed]\n" + template("fw.msg_limit").replace("{{limit}}", "10 replies")),
        ("model_calls", 3, "[Worker failed]\n" + template("fw.msg_limit").replace("{{limit}}", "3 model calls")),
        ("seconds", 0.5, "[Worker took too long and was stopped: it had 0.5 seconds. What it did up to then stands. "),
    ],
)
def test_a_limit_that_was_reached_is_told_by_what_it_allowed(limit: str, size: float, expected: str) -> None:
    extra = FrozenMapping({"limit": limit, "size": size})
    ((author, text),) = said(post("Worker > Planner", "Worker failed: set Limits(...)", kind="error", extra=extra))
    assert author == "user"
    assert text.startswith(expected)


def test_posts_between_others_are_left_out() -> None:
    assert said(post("User > Worker", "x"), post("Worker > Tester", "y")) == []


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
        ("assistant", '{"response": {"plan": "1. search"}}'),
        ("assistant", '{"response": {"plan": "1. search", "send_to": "Worker", "message": "Search."}}'),
        ("user", "From: Worker\nFound A\n[Worker was interrupted here]"),
        ("assistant", "Then I"),
        ("user", "[Planner was interrupted here]"),
        ("user", json.dumps({"user_intervention": "Only B.", "standing_plan": CANCELLED})),
    ]


def test_a_reply_repeats_nothing_that_a_note_on_the_same_request_has_shown() -> None:
    code, result = at("reply_content", "print(1)"), at("execution_result", "1")
    reply = post("Planner > User", "It printed 1.", code, result, kind="reply", in_reply_to="post-1")
    messages = said(note("", code, in_reply_to="post-1"), note("", result, in_reply_to="post-1"), reply)
    assert [content.count("print(1)") for _, content in messages] == [1, 0, 0]
    assert messages[-1] == ("assistant", '{"response": {"send_to": "User", "message": "It printed 1."}}')


def test_a_reply_to_another_request_shows_all_it_has() -> None:
    code = at("reply_content", "print(1)")
    reply = post("Planner > User", "Again.", code, kind="reply", in_reply_to="post-2")
    assert [text.count("print(1)") for _, text in said(note("", code, in_reply_to="post-1"), reply)] == [1, 1]


def told(*posts: Post) -> dict[str, object]:
    """The last of what the Planner is shown of these posts, words of the user."""
    words: dict[str, object] = json.loads(said(*posts)[-1][1])
    return words


ASK = post("Planner > Worker", "Do 1.", at("plan", "1. do"))
QUESTION = post("Worker > Planner", "Which?", kind="question")
WORDS = post("User > Planner", "Only 2025.", kind="intervention", words="words-2", system_message=("Be brief.",))


@pytest.mark.parametrize(
    "before",
    [
        [ASK],
        [note("", at("init_plan", "1. do"))],
        [note("", at("plan", "1. d"), state="partial")],
        [ASK, QUESTION, post("Planner > Worker", "This.", kind="reply", in_reply_to=QUESTION.id)],
        [ASK, post("Planner > Boss", "1", kind="reply", state="partial", in_reply_to="post-1")],
    ],
    ids=["asked", "noted", "begun", "a question answered", "recalled"],
)
def test_words_in_the_middle_of_a_plan_say_that_it_is_cancelled(before: list[Post]) -> None:
    assert told(*before, WORDS)["standing_plan"] == CANCELLED


@pytest.mark.parametrize(
    "before",
    [
        [],
        [note("", at("plan", " "))],
        [post("Worker > Planner", "", at("plan", "mine"), kind="reply", state="partial")],
        [ASK, post("Planner > User", "It is 3.", at("plan", "1. do"), kind="reply", in_reply_to="post-1")],
        [ASK, post("Planner > User", "Planner failed", kind="error", in_reply_to="post-1")],
        [ASK, WORDS],
    ],
    ids=["none", "an empty one", "another's", "done", "failed", "cancelled before"],
)
def test_words_say_nothing_of_a_plan_where_none_stands(before: list[Post]) -> None:
    assert told(*before, WORDS) == {"system_message": ["Be brief."], "user_intervention": "Only 2025."}


def test_a_plan_that_was_made_after_words_is_cancelled_by_the_next() -> None:
    assert CANCELLED in str(told(ASK, WORDS, ASK, WORDS))


def test_another_roles_words_cancel_the_plan_too() -> None:
    words = post("Editor > Planner", "Only 2025.", kind="intervention", words="words-2")
    assert said(ASK, words)[-1][1].endswith(f"Only 2025.\n[{CANCELLED}]")


def test_a_nudge_leaves_the_plan_as_it_is() -> None:
    nudge = post("User > Planner", kind="nudge", words="words-1")
    assert said(ASK, nudge)[-1][1] == packaged.render("fw.msg_nudge")
    assert CANCELLED in str(told(ASK, nudge, WORDS))


def called(state: str = "whole", **content: object) -> Post:
    """A note about a call of the tool `search`."""
    return note("", at("function", json.dumps({"call": "call-1", "tool": "search", **content})), state=state)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (called(arguments={"q": "é"}), '[Planner called search with {"q": "é"}]'),
        (called(outcome="done", result="tea"), "[search returned:]\ntea"),
        (called(outcome="done", result=[1, None]), "[search returned:]\n[1, null]"),
        (called(outcome="failed", error="OSError: no disk"), "[search failed: OSError: no disk]"),
        (called("partial", outcome="interrupted"), "[search was interrupted]"),
        (
            called("partial", outcome="interrupted", progress="page 1"),
            "[search was interrupted; it had said:]\npage 1",
        ),
        (called(outcome="not_started"), "[search was called off before it had begun]"),
        (called("late", result="tea"), f"[search returned:]\ntea\n\n{LATE}"),
        (called("late", error="OSError"), f"[search failed: OSError]\n\n{LATE}"),
        (called(), 'function:\n{"call": "call-1", "tool": "search"}'.replace("\n", " ")),
        (note("", at("function", "f(x)")), "function: f(x)"),
        (note("", at("function", "[1]")), "function: [1]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_tool_is_told_by_its_call_and_its_outcome(call: Post, expected: str) -> None:
    assert said(call) == [("user", expected)]


def test_a_call_of_another_role_is_told_by_its_name() -> None:
    (call,) = called(arguments={"q": "tea"}).attachment_list
    account = post("Worker > Planner", "", call, kind="reply", state="partial")
    assert '[Worker called search with {"q": "tea"}]' in said(account)[0][1]


def test_a_host_that_answers_a_question_speaks_as_the_user() -> None:
    asked = post("Planner > User", "Which?", kind="question")
    assert told(asked, post("User > Planner", "B.", kind="reply", in_reply_to=asked.id)) == {"user_message": "B."}


IMAGE = Attachment.create("image_url", "the chart", extra={"image_url": "data:image/png;base64,iVBO"})


@pytest.mark.parametrize(
    "route, named",
    [
        ("User > Planner", '{"user_message": "See.", "attachments": ["the chart"]}'),
        ("Worker > Planner", "From: Worker\nSee.\nimage_url: the chart"),
    ],
)
def test_an_image_that_comes_with_a_post_is_shown_behind_its_text(route: str, named: str) -> None:
    (_, shown) = compose(Material("s", "Planner", (Round.create("", post_list=[post(route, "See.", IMAGE)]),)))
    assert shown == Message("user", named, (ImagePart("data:image/png;base64,iVBO"),))


def test_an_image_that_came_of_the_roles_own_work_is_shown_to_it_by_the_user() -> None:
    own = note("", at("thought", "draw"), IMAGE)
    (_, *shown) = compose(Material("s", "Planner", (Round.create("", post_list=[own]),)))
    assert [(message.role, len(message.parts)) for message in shown] == [("assistant", 0), ("user", 1)]
