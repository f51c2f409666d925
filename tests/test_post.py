"""Posts: made, answered, handed on, written down and read again."""

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.json_value import FrozenMapping
from callboard.runtime.markers import END, START
from callboard.runtime.post import Marks, Post
from callboard.runtime.text import Span, Text, temporal

PLAN = Attachment.create("plan", "1. think", "atta-1")
THOUGHT = Attachment.create("thought", "hm", "atta-2")
OTHER_PLAN = Attachment.create("plan", "2. act", "atta-3")
MARKED = Marks(
    "post-0", "error", "late", "2024-01-31T07:45:22.123456Z", "words-1", ("be brief",), FrozenMapping({"a": [1]})
)
POST = Post("post-1", "User", "Planner", "hello", (PLAN, THOUGHT, OTHER_PLAN), MARKED)
BARE = {"message": "hello", "send_from": "User", "send_to": "Planner", "attachment_list": []}


def test_a_new_post_has_an_id_and_a_time_that_belong_together() -> None:
    post = Post.create("hello", "User", "Planner")
    digits = post.marks.at.replace("-", "").replace(":", "").replace("T", "-")
    assert post.id.startswith(f"post-{digits[:15]}-")
    assert post.marks == Marks(at=post.marks.at)


def test_a_new_post_without_recipient_is_undecided() -> None:
    assert Post.create("hello", "User").send_to == "Unknown"


def test_no_message_is_an_empty_one() -> None:
    assert Post.create(None, "User").message == ""


def test_given_marks_keep_their_time_and_get_one_if_they_have_none() -> None:
    assert Post.create("", "User", marks=MARKED).marks == MARKED
    marks = Post.create("", "User", marks=replace(MARKED, at="")).marks
    assert marks.at
    assert replace(marks, at=MARKED.at) == MARKED


def test_a_list_of_attachments_becomes_a_tuple() -> None:
    assert Post.create("", "User", "Planner", [PLAN, THOUGHT]).attachment_list == (PLAN, THOUGHT)


@pytest.mark.parametrize(("message", "error"), [("\ud800", ValueError), (5, TypeError)])
def test_a_message_that_no_file_could_hold_is_refused(message: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="message"):
        Post.create(message, "User")
    with pytest.raises(error, match="message"):
        Post("post-1", "User", "Planner", message)


def test_a_reply_goes_back_and_says_to_what() -> None:
    reply = POST.reply("done", [THOUGHT])
    assert (reply.send_from, reply.send_to, reply.message) == ("Planner", "User", "done")
    assert reply.attachment_list == (THOUGHT,)
    assert reply.marks == Marks("post-1", "reply", at=reply.marks.at)
    assert reply.id != POST.id
    assert reply.marks.at


def test_a_reply_may_be_of_another_kind_and_state() -> None:
    reply = POST.reply(kind="error", state="partial", extra={"a": [1]})
    assert (reply.message, reply.marks.kind, reply.marks.state) == ("", "error", "partial")
    assert reply.marks.extra == {"a": [1]}
    assert isinstance(reply.marks.extra, FrozenMapping)


def test_a_reply_without_a_message_has_an_empty_one() -> None:
    assert POST.reply(None).message == ""


def test_a_forward_hands_the_same_content_to_a_third_role() -> None:
    post = POST.forward("Writer")
    assert (post.send_from, post.send_to, post.message) == ("Planner", "Writer", "hello")
    assert post.attachment_list == POST.attachment_list
    assert post.marks == Marks("post-1", at=post.marks.at)
    assert post.id != POST.id


def test_a_forward_may_say_something_else() -> None:
    post = POST.forward("Writer", "", [])
    assert (post.message, post.attachment_list) == ("", ())


@pytest.mark.parametrize("type_", ["plan", AttachmentType.plan])
def test_attachments_of_a_type_come_in_order(type_: str) -> None:
    assert POST.get_attachment(type_) == (PLAN, OTHER_PLAN)
    assert POST.get_attachment("stop") == ()


def test_asking_for_a_type_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match="plans"):
        POST.get_attachment("plans")
    with pytest.raises(ValueError, match="plans"):
        POST.without_attachments("plans")


def test_one_attachment_more_makes_a_copy_with_the_same_id() -> None:
    longer = POST.with_attachment(THOUGHT)
    assert longer == replace(POST, attachment_list=(PLAN, THOUGHT, OTHER_PLAN, THOUGHT))
    assert len(POST.attachment_list) == 3


def test_attachments_of_several_types_can_be_left_out() -> None:
    assert POST.without_attachments("plan") == replace(POST, attachment_list=(THOUGHT,))
    assert POST.without_attachments("plan", AttachmentType.thought).attachment_list == ()
    assert POST.without_attachments() == POST


def test_a_file_holds_a_plain_post_under_five_keys() -> None:
    post = Post("post-1", "User", "Planner", "hello")
    assert list(post.to_dict().items()) == [("id", "post-1"), *BARE.items()]


def test_a_file_holds_marks_as_further_keys_in_their_order() -> None:
    assert list(POST.to_dict().items())[5:] == [
        ("in_reply_to", "post-0"),
        ("kind", "error"),
        ("state", "late"),
        ("at", "2024-01-31T07:45:22.123456Z"),
        ("words", "words-1"),
        ("system_message", ["be brief"]),
        ("extra", {"a": [1]}),
    ]


@pytest.mark.parametrize("post", [POST, Post("post-1", "User", "Planner", ""), Post.create("x", "User")])
def test_a_restored_post_is_the_same(post: Post) -> None:
    assert Post.restore(post.to_dict()) == post


def test_a_post_from_a_dict_is_new_and_holds_the_same() -> None:
    post = Post.from_dict(POST.to_dict())
    assert post.id != POST.id
    assert replace(post, id=POST.id) == POST


def test_a_post_from_a_dict_needs_no_id_and_no_marks() -> None:
    post = Post.from_dict(BARE)
    assert post.id.startswith("post-")
    assert post.marks == Marks()


@pytest.mark.parametrize("key", BARE)
def test_a_post_from_a_dict_needs_every_other_key(key: str) -> None:
    entry = {name: value for name, value in BARE.items() if name != key}
    with pytest.raises(KeyError, match=key):
        Post.from_dict(entry)


def test_restoring_needs_the_id() -> None:
    with pytest.raises(KeyError, match="id"):
        Post.restore(BARE)


def test_null_stands_for_an_empty_message_and_no_attachments() -> None:
    post = Post.from_dict({**BARE, "message": None, "attachment_list": None})
    assert (post.message, post.attachment_list) == ("", ())


def test_null_marks_are_the_defaults() -> None:
    nulls = dict.fromkeys(["in_reply_to", "at", "words", "system_message", "extra"])
    assert Post.from_dict({**BARE, **nulls}).marks == Marks()


@pytest.mark.parametrize("unfit", [{"kind": "shout"}, {"state": "half"}, {"extra": {"a": object()}}])
def test_marks_that_cannot_be_are_refused(unfit: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"shout|half|value\.a"):
        Post.from_dict({**BARE, **unfit})


def test_a_post_cannot_be_changed_and_survives_a_journey() -> None:
    post: Any = POST
    with pytest.raises(FrozenInstanceError):
        post.message = "other"
    assert pickle.loads(pickle.dumps(POST)) == POST == copy.deepcopy(POST)
    assert hash(POST) == hash(Post.restore(POST.to_dict()))


BIG = "keep " + temporal("big") + "."
SHOWN = Post.create(BIG, "User", "Planner", [Attachment.create("plan", BIG), THOUGHT])


def test_a_message_is_plain_and_its_temporal_parts_stand_beside() -> None:
    assert (SHOWN.message, SHOWN.temporal, SHOWN.text) == ("keep big.", (Span(5, 8),), BIG)
    assert Post.create("big", "User").temporal == ()


def test_a_reply_and_a_forward_take_temporal_text() -> None:
    assert POST.reply(BIG).text == POST.forward("Writer", BIG).text == SHOWN.forward("Writer").text == BIG
    assert SHOWN.reply("done").temporal == ()


def test_later_rounds_show_a_post_without_what_is_temporal() -> None:
    later = SHOWN.without_temporal()
    assert (later.message, later.temporal, later.id) == ("keep .", (), SHOWN.id)
    assert [one.content for one in later.attachment_list] == ["keep .", "hm"]
    assert later.attachment_list[1] is THOUGHT
    assert later.without_temporal() is later
    assert POST.without_temporal() is POST


def test_another_message_brings_its_own_temporal_parts() -> None:
    assert SHOWN.with_text("no").text == Text("no")
    assert replace(POST.with_text(BIG), message=POST.message, temporal=()) == POST
    with pytest.raises(ValueError, match="temporal parts of a message reach to 8, beyond the 2"):
        replace(SHOWN, message="no")


def test_markers_in_a_message_are_text_unless_a_file_of_others_holds_them() -> None:
    written = f"{START}big{END}"
    post = Post.create(written, "User")
    assert (post.temporal, post.without_temporal()) == ((), post)
    assert Post.restore(post.to_dict()) == post
    assert Post.from_dict({**BARE, "message": written}).text == temporal("big")


def test_a_file_holds_temporal_parts_under_a_further_key() -> None:
    entry = SHOWN.to_dict()
    assert (entry["message"], entry["temporal"][0]["start"]) == (f"keep {START}big{END}.", 5)
    assert Post.restore(entry) == SHOWN
    assert hash(Post.restore(entry)) == hash(SHOWN)
