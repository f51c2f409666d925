"""The course of a turn: what counts as a correction of it, and as the same reply again."""

from collections.abc import Sequence

import pytest

from callboard.actors.course import Course, correction
from callboard.prompts.reply_format import Reply
from callboard.runtime.attachment import Attachment
from callboard.runtime.post import Marks, Post
from callboard.runtime.round import Round

REQUEST = Post.create("q", "User", "Planner")
PLAN = Attachment.create("plan", "1. ask")
REPLY = Reply("do", "Echo", (PLAN,))
ASKED = Post.create("do", "Planner", "Echo", [PLAN])
ANSWER = Post.create("done", "Echo", "Planner", marks=Marks("a", "reply"))


def note(*attachments: Attachment, of: Post = REQUEST) -> Post:
    """A note of the role on a request."""
    return Post.create("", "Planner", "Planner", attachments, marks=Marks(of.id, "note"))


def again(post: Post) -> Post:
    """Another post that says the same."""
    return Post.create(post.message, post.send_from, post.send_to, post.attachment_list, marks=post.marks)


def course(*posts: Post) -> Course:
    """The turn in which these came, after a round in which all of them had come before."""
    return Course(
        [Round.create("p", post_list=map(again, posts)), Round.create("q", post_list=[REQUEST, *posts])],
        REQUEST,
        "Planner",
    )


def test_the_notes_of_this_request_that_put_a_reply_back_are_its_corrections() -> None:
    other = Post.create("other", "User", "Planner")
    told = Attachment.create("revise_message", "Echo has failed")
    bad = correction("bad", "why")
    assert course(note(*bad), note(told), note(*bad, of=other), ASKED, note(*bad)).corrections == 2


NEW = Post.create("go on", "User", "Planner", marks=Marks(kind="intervention"))
NUDGE = Post.create("", "User", "Planner", marks=Marks(kind="nudge"))
OTHER = Post.create("else", "Planner", "Echo")


@pytest.mark.parametrize(
    ("posts", "repeated"),
    [
        ([], False),
        ([ASKED], True),
        ([ASKED, ANSWER], False),
        ([ASKED, ANSWER, again(ASKED), again(ANSWER)], True),
        ([ASKED, ANSWER, again(ASKED), again(ANSWER), NEW], False),
        ([NEW, ASKED, ANSWER, again(ASKED), again(ANSWER), again(NEW)], False),
        ([NUDGE, ASKED, ANSWER, again(ASKED), again(ANSWER), again(NUDGE)], False),
        ([ASKED, OTHER], False),
        ([ASKED, OTHER, again(ASKED), again(OTHER)], True),
        ([note(PLAN)], False),
        ([note(*correction("said", "why"))], True),
        ([note(*correction("other", "why"))], False),
    ],
)
def test_the_same_reply_is_one_after_which_nothing_new_has_come(posts: Sequence[Post], repeated: bool) -> None:
    assert course(*posts).repeats("said", REPLY) is repeated


def test_a_malformed_reply_repeats_only_the_same_text() -> None:
    assert not course(ASKED).repeats("said", None)
    assert course(note(*correction("said", "why"))).repeats("said", None)


def test_what_was_cut_off_was_not_said() -> None:
    partial = Post.create("do", "Planner", "Planner", [PLAN], marks=Marks(REQUEST.id, "note", "partial"))
    assert not course(partial).repeats("said", REPLY)
