"""The composer: what stands where, what of it goes with its round, and that nothing moves that was sent."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.prompts.composer import Layout, compose
from callboard.prompts.library import Library
from callboard.prompts.material import Aside, Material, Summary
from callboard.runtime.chat_model import ImagePart, Message
from callboard.runtime.post import Post
from callboard.runtime.round import Round
from tests.roles import template

from .composing import POSTS, at, continues, extends, post

ASKED = post("User > Planner", "1", words="words-1")
REPLY = post("Planner > User", "one", kind="reply", in_reply_to=ASKED.id)
AGAIN = post("User > Planner", "2", words="words-2")
ROUNDS = (Round.create("1", "round-1", "finished", [ASKED, REPLY]), Round.create("2", "round-2", post_list=[AGAIN]))
EXAMPLE = (Round.create("e", post_list=[post("User > Planner", "e"), post("Planner > User", "E")]),)


def texts(material: Material, layout: Layout = "cached") -> list[str]:
    """The messages, the system's apart, in short."""
    return [message.content for message in compose(material, layout=layout)[1:]]


def user(text: str) -> str:
    """The user's words, as a model is shown them."""
    return f'{{"user_message": "{text}"}}'


def reply(text: str) -> str:
    """The Planner's reply to the user."""
    return f'{{"response": {{"send_to": "User", "message": "{text}"}}}}'


BEGINS, ENDS, OPENING = map(template, ("fw.example_begins", "fw.example_ends", "fw.conversation_begins"))


def test_without_rounds_there_is_the_system_message() -> None:
    assert compose(Material("You are Planner.", "Planner")) == (Message("system", "You are Planner."),)


def test_what_changes_stands_behind_what_does_not() -> None:
    material = Material(
        "s",
        "Planner",
        ROUNDS,
        lessons=(Aside("Be exact."), Aside("Be quick.", AGAIN.id)),
        examples=(EXAMPLE,),
        temporal=(Aside("All is well."), Aside("The plan is old.", AGAIN.id)),
        now="noon",
    )
    assert texts(material) == [
        *(user("1"), reply("one")),
        *(BEGINS, user("e"), reply("E"), ENDS),
        *("Be exact.", "[The time is noon.]", "All is well."),
        *(user("2"), "The plan is old.", "Be quick."),
    ]


def test_in_the_next_round_nothing_of_an_older_one_has_changed_and_what_was_temporal_is_gone() -> None:
    asides = (Aside("Be exact.", ASKED.id),)
    before = compose(Material("s", "Planner", ROUNDS[:1], lessons=asides, temporal=asides))
    after = compose(Material("s", "Planner", ROUNDS, lessons=asides, temporal=asides))
    assert [message.content for message in before].count("Be exact.") == 2
    assert after == compose(Material("s", "Planner", ROUNDS))
    assert extends(after, [message for message in before if message.content != "Be exact."])


def test_a_summary_stands_in_the_place_of_its_rounds_and_the_next_behind_it() -> None:
    rounds = [Round.create(name, name, post_list=[post("User > Planner", name)]) for name in "abcd"]
    first, second = Summary("A.", "a"), Summary("B, C.", "c")
    told = [template("fw.msg_summary").replace("{{summary}}", text) for text in ("A.", "B, C.")]
    once = Material("s", "Planner", tuple(rounds), summaries=(first,))
    twice = Material("s", "Planner", tuple(rounds), summaries=(first, second))
    assert texts(once) == [told[0], user("b"), user("c"), user("d")]
    assert texts(twice) == [*told, user("d")]
    assert texts(Material("s", "Planner", tuple(rounds[3:]), summaries=(first, second))) == [*told, user("d")]


@pytest.mark.parametrize("layout", ["cached", "taskweaver"])
def test_a_summary_of_the_present_round_is_refused(layout: Layout) -> None:
    with pytest.raises(ValueError, match="present round"):
        compose(Material("s", "Planner", ROUNDS, summaries=(Summary("x", "round-2"),)), layout=layout)


def test_rounds_that_a_summary_covers_still_say_what_a_reply_has_shown() -> None:
    code = at("reply_content", "print(1)")
    note = post("Planner > Planner", "", code, kind="note", in_reply_to="post-1")
    late = post("Planner > User", "1", code, kind="reply", in_reply_to="post-1")
    rounds = (Round.create("a", "a", post_list=[note]), Round.create("b", "b", post_list=[late]))
    assert texts(Material("s", "Planner", rounds, summaries=(Summary("A.", "a"),)))[-1] == reply("1")


def test_requirements_end_the_system_message() -> None:
    assert compose(Material("s", "Planner", requirements="Reply in JSON."))[0].content == "s\n\nReply in JSON."


def test_a_role_that_others_gave_a_part_is_told_what_the_user_asked_for() -> None:
    part = post("Boss > Planner", "Do 1.")
    rounds = (Round.create("all", post_list=[part]), Round.create("it all", post_list=[part]))
    query = template("fw.user_query").replace("{{query}}", "it all")
    assert texts(Material("s", "Planner", rounds)) == ["From: Boss\nDo 1.", query, "From: Boss\nDo 1."]


def test_words_of_the_user_in_the_midst_leave_what_was_told_of_the_users_wish() -> None:
    part = post("Boss > Planner", "Do 1.")
    words = post("User > Planner", "Only 2025.", kind="intervention", words="words-1")
    before, after = (
        compose(Material("s", "Planner", (Round.create("it all", post_list=posts),)))
        for posts in ([part], [part, words])
    )
    assert extends(after, before)


def test_the_order_of_taskweaver_has_lessons_and_time_in_the_system_message_and_opens_each_conversation() -> None:
    material = Material(
        "s",
        "Planner",
        (Round.create("0", "round-0", "finished", [post("User > Planner", "0")]), *ROUNDS),
        lessons=(Aside("Be exact."), Aside("Be quick.", AGAIN.id), Aside("Gone.", ASKED.id)),
        examples=(EXAMPLE,),
        summaries=(Summary("Nought.", "round-0"),),
        temporal=(Aside("The plan is old.", AGAIN.id),),
        requirements="Reply in JSON.",
        now="noon",
    )
    told = template("fw.msg_summary").replace("{{summary}}", "Nought.")
    assert compose(material, layout="taskweaver")[0].content == "s\n[The time is noon.]\nBe exact.\nBe quick."
    assert texts(material, "taskweaver") == [
        *(f"{OPENING}\n{user('e')}", reply("E")),
        *(f"{OPENING}\n{told}\n{user('1')}", reply("one")),
        *(user("2"), "The plan is old.\n\nReply in JSON."),
    ]


def test_the_opening_line_keeps_the_images_of_the_message_that_it_opens() -> None:
    shown = post("User > Planner", "See.", at("image_url", "data:image/png;base64,iVBO"))
    (_, opened) = compose(Material("s", "Planner", (Round.create("", post_list=[shown]),)), layout="taskweaver")
    assert opened.parts == (ImagePart("data:image/png;base64,iVBO"),)


def test_requirements_without_a_message_of_the_user_are_one() -> None:
    assert texts(Material("s", "Planner", requirements="Reply in JSON."), "taskweaver") == ["Reply in JSON."]


def test_templates_may_be_ones_own(tmp_path: Path) -> None:
    (tmp_path / "fw.user_message.md").write_text("{{message}}!", encoding="utf-8")
    words = post("User > Planner", "hi", words="words-1")
    rounds = (Round.create("", post_list=[words]),)
    assert compose(Material("s", "Planner", rounds), templates=Library(tmp_path))[1].content == "hi!"


def grown(posts: Sequence[Post], past: int, calls: Sequence[int]) -> list[Material]:
    """What calls of one round are made with, the earlier with fewer posts; each found a lesson before it was made."""
    before = Round.create("a", post_list=posts[:past])
    present = Round.create("b")
    materials: list[Material] = []
    lessons: tuple[Aside, ...] = (Aside("lesson"),)
    for upto in sorted(calls):
        held = tuple(posts[past : past + upto])
        lessons = (*lessons, *(Aside(f"lesson {len(lessons)}", one.id) for one in held[-1:]))
        rounds = (before, Round(present.id, "b", "created", held))
        temporal = tuple(Aside(f"state of {one.id}", one.id) for one in posts[::2])
        materials.append(Material("s", "Planner", rounds, lessons, (EXAMPLE,), temporal, (), "Reply in JSON.", "noon"))
    return materials


GROWN = st.builds(
    grown, st.lists(POSTS, max_size=8), st.integers(0, 4), st.lists(st.integers(0, 8), min_size=2, max_size=4)
)


quick = settings(max_examples=50)


@quick
@given(GROWN)
def test_each_call_of_a_round_extends_the_one_before(materials: list[Material]) -> None:
    for earlier, later in pairwise(materials):
        assert extends(compose(later), compose(earlier))
        assert continues(compose(later, alternate=True), compose(earlier, alternate=True))


@quick
@given(GROWN, st.sampled_from(["cached", "taskweaver"]))
def test_the_same_material_gives_the_same_messages_and_authors_alternate_if_they_must(
    materials: list[Material], layout: Layout
) -> None:
    for material in materials:
        messages = compose(material, layout=layout)
        assert compose(material, layout=layout) == messages
        assert all(message.content or message.parts for message in messages)
        merged = compose(material, layout=layout, alternate=True)
        assert all(one.role != after.role for one, after in pairwise(merged))


@quick
@given(st.lists(POSTS, max_size=6), st.integers(0, 6), st.sampled_from(["cached", "taskweaver"]), st.booleans())
def test_no_message_is_lost(posts: list[Post], past: int, layout: Layout, alternate: bool) -> None:
    named = [
        Post(one.id, one.send_from, one.send_to, f"<{number}>", one.attachment_list, one.marks)
        for number, one in enumerate(posts)
    ]
    rounds = (Round.create("a", post_list=named[:past]), Round.create("b", post_list=named[past:]))
    shown = compose(Material("s", "Planner", rounds), layout=layout, alternate=alternate)
    said = [one for one in named if "Planner" in (one.send_from, one.send_to) and not told_by_a_template_alone(one)]
    places = ["".join(message.content for message in shown).find(one.message) for one in said]
    assert -1 not in places
    assert places == sorted(places)


def told_by_a_template_alone(one: Post) -> bool:
    """A nudge says what its template says."""
    return one.marks.kind == "nudge" and one.send_from != "Planner"


@quick
@given(st.lists(POSTS, max_size=3), POSTS.filter(lambda one: one.send_from != "Planner" and one.send_to == "Planner"))
def test_what_was_said_to_the_role_last_is_a_users_message(posts: list[Post], last: Post) -> None:
    assert compose(Material("s", "Planner", (Round.create("q", post_list=[*posts, last]),)))[-1].role == "user"
