"""What is shown of posts and events: who speaks, what a post carries, and what went wrong."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from callboard.actors.given import Given
from callboard.runtime import Attachment, Post
from callboard.runtime.event import (
    ActorEnded,
    ActorStarted,
    AttemptBegan,
    AttemptCut,
    DeadLetter,
    DraftGrew,
    Event,
    EventsDropped,
    PostRecorded,
    RoundEnded,
    ToolBegan,
    ToolEnded,
    WordsSettled,
    WorkAbandoned,
)
from callboard.runtime.json_value import FrozenMapping
from callboard.runtime.model_event import ModelRetried
from callboard.runtime.post import Marks
from callboard.service.chat_post import MOST_ROWS, lines_of
from callboard.service.chat_screen import Draft
from callboard.service.chat_view import ChatView, said_of
from callboard.service.working_roles import WorkingRoles

from .test_chat import Foreman, ScriptedConsole

CODE = [Attachment.create("reply_type", "python"), Attachment.create("reply_content", "print(1)\n")]
NOTE = Marks(kind="note")
ASKED = Post.create("q", "Boss", "Coder")


def shown(post: Post) -> list[str]:
    return [line.margin + line.text for line in lines_of(post)]


def test_code_and_its_output_are_set_apart() -> None:
    assert shown(Post.create("", "Coder", "Coder", CODE, marks=NOTE)) == ["Coder", "  code", "  │ print(1)"]


def test_what_was_shown_as_a_note_is_not_shown_again_with_the_reply() -> None:
    assert shown(ASKED.reply("done", CODE)) == ["Coder → Boss", "  done"]


def test_the_answer_to_the_user_is_whole_however_long() -> None:
    text = "\n".join(["line"] * 99)
    assert shown(Post.create("q", "User", "Boss").reply(text)) == ["Boss", "  " + text]


@pytest.mark.parametrize(("type", "end"), [("reply_content", "(+"), ("execution_result", "99")])
def test_of_much_code_the_beginning_is_shown_and_of_much_output_the_end(type: str, end: str) -> None:
    piece = Attachment.create(type, "\n".join(map(str, range(100))))
    rows = shown(Post.create("", "Coder", "Coder", [piece], marks=NOTE))[-1].split("\n")
    assert len(rows) == MOST_ROWS + 1 and rows[-1].startswith(end)


@pytest.mark.parametrize(
    ("post", "line"),
    [
        (ASKED.reply("", state="partial"), "Coder was cut with nothing written"),
        (ASKED.reply("", state="not_started"), "Coder had not started"),
        (ASKED.reply("no room", kind="error"), "Coder failed"),
    ],
)
def test_what_came_to_no_answer_is_told(post: Post, line: str) -> None:
    assert shown(post)[0] == line


def test_the_users_words_are_not_shown_twice() -> None:
    assert shown(Post.create("q", "User", "Boss")) == []
    assert shown(Post.create("q", "User", "Boss", marks=Marks(kind="intervention"))) == []


EVENTS: list[tuple[Event, str]] = [
    (ModelRetried("Boss", "m", "busy", 1.5), "Boss asks m again in 1.5 s: busy"),
    (ToolBegan("Boss", "p", "search", "c"), "Boss calls search"),
    (ToolEnded("Boss", "p", "search", "c", "not_started"), "Boss: search is not started"),
    (WorkAbandoned("Boss", "p", "a thread"), "Boss left work behind that may still run: a thread"),
    (ActorEnded("Boss", "broken"), "Boss has left: broken"),
    (DeadLetter(ASKED, "nobody"), "A post to Coder is taken by nobody: nobody"),
    (EventsDropped(7), "(7 events came too fast to be shown)"),
    (WordsSettled("w", "told"), "Nobody read your words before the round ended; they are in its record."),
    (AttemptBegan("Boss", "p", 2), "Boss begins again: attempt 2"),
    (RoundEnded("r", "stopped"), "The round is stopped."),
]


@pytest.mark.parametrize(("event", "text"), EVENTS, ids=lambda value: type(value).__name__)
def test_an_event_is_told(event: Event, text: str) -> None:
    assert [line.text for line in said_of(event)] == [text]


@pytest.mark.parametrize(
    "event", [AttemptBegan("Boss", "p", 1), RoundEnded("r", "finished"), WordsSettled("w", "seen")]
)
def test_what_says_nothing_new_is_not_told(event: Event) -> None:
    assert list(said_of(event)) == []


class Drafts(ScriptedConsole):
    """Keeps the drafts that stand on the screen."""

    now: list[str]

    def draft(self, drafts: Iterable[Draft]) -> None:
        self.now = [draft.text for draft in drafts]


GREW = [DraftGrew("Coder", "p", text, type) for text, type in [("a", "message"), ("b", "message"), ("1\n", "thought")]]


@pytest.mark.parametrize(
    "end", [AttemptCut("Coder", "p", 1, None), RoundEnded("r", "finished"), PostRecorded(ASKED.reply("ab"), "r")]
)
def test_a_draft_grows_by_its_types_and_goes_at_its_end(end: Event) -> None:
    view = ChatView(screen := Drafts([]))
    for event in GREW:
        view.show(event)
    assert screen.now == ["ab\n[thought] 1\n"]
    view.show(end)
    assert screen.now == []
    view.show(GREW[0])
    assert screen.now == ["a"]


def test_a_role_that_was_answered_waits_no_more() -> None:
    roles = WorkingRoles(Foreman())
    asked = Post.create("dig", "Foreman", "Digger")
    for event in (AttemptBegan("Foreman", "p", 1), PostRecorded(asked, "r"), AttemptBegan("Digger", asked.id, 1)):
        roles.note(event)
    assert list(roles.lines(40)) == ["Foreman: works, waits for Digger", "  Digger: works: dig"]
    roles.note(PostRecorded(asked.reply("dug"), "r"))
    assert list(roles.lines(40)) == ["Foreman: works", "  Digger: at rest"]


def test_roles_that_are_started_on_the_way_stand_below_their_superior() -> None:
    roles = WorkingRoles(Foreman())
    roles.note(ActorStarted("Mate", "Digger"))
    roles.note(AttemptCut("Digger", "p", 1, None))
    assert list(roles.lines(40)) == ["Foreman: at rest", "  Digger: is being recalled", "    Mate: at rest"]
    roles.note(ActorEnded("Mate", ""))
    roles.note(RoundEnded("r", "finished"))
    assert list(roles.lines(40)) == ["Foreman: at rest", "  Digger: at rest"]


def test_the_lessons_that_a_role_is_given_are_told_with_their_scores() -> None:
    given = Given("post-1", "tea", "", (("year", 0.714), ("price", 0.5)), "text")
    marks = Marks("post-1", "note", extra=FrozenMapping(given.to_extra()))
    note = Post.create("", "Writer", "Writer", marks=marks)
    assert [line.text for line in lines_of(note)] == ["Writer is given lessons: year 0.71, price 0.50"]
    assert not list(lines_of(replace(note, marks=replace(marks, extra=FrozenMapping(Given().to_extra())))))
