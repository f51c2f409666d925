"""The picture: it is what its script makes, it shows what was cut and kept, and texts stand in it as texts."""

import runpy
from xml.etree import ElementTree

import pytest

from callboard.runtime import Post, UserMessage
from callboard.runtime.event import AttemptBegan, AttemptCut, DraftGrew, Event, PostRecorded, WordsAccepted
from callboard.runtime.post import Marks
from callboard.service.course import course_of
from callboard.service.timeline import draw_timeline

from .test_imports import ROOT

ASKED = Post.create("<q> & more", "User", "Writer")
CUT: list[tuple[float, Event]] = [
    (5.0, PostRecorded(ASKED, "r")),
    (5.0, AttemptBegan("Writer", ASKED.id, 1)),
    (6.0, DraftGrew("Writer", ASKED.id, "half")),
    (7.0, WordsAccepted(UserMessage("stop <b>", id="w"))),
    (7.0, AttemptCut("Writer", ASKED.id, 1, "w")),
    (7.0, PostRecorded(ASKED.reply("half", state="partial"), "r")),
    (7.0, PostRecorded(Post.create("stop <b>", "User", "Writer", marks=Marks(kind="intervention")), "r")),
    (7.0, AttemptBegan("Writer", ASKED.id, 2)),
    (9.0, PostRecorded(ASKED.reply("whole"), "r")),
]


def classes(picture: str) -> list[str]:
    """The classes of the elements of a picture."""
    return [element.get("class", "") for element in ElementTree.fromstring(picture).iter()]


def texts(picture: str) -> list[str]:
    """What can be read in a picture."""
    return [element.text or "" for element in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]


def test_the_file_is_what_its_script_makes() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_timeline.py"))["make"]()
    assert (ROOT / "docs" / "timeline.svg").read_text(encoding="utf-8") == made


def test_times_count_from_the_first_event() -> None:
    course = course_of(CUT)
    assert [(span.begin, span.end, span.cut) for span in course.spans] == [(0, 2, True), (2, 4, False)]
    assert course.end == 4


def test_what_was_cut_kept_and_said_is_shown() -> None:
    picture = draw_timeline(CUT, "a title")
    assert {"cut", "kept", "said", "piece", "works"} <= set(classes(picture))
    assert {"kept: 1 line", "attempt 2", "whole", "Writer"} <= set(texts(picture))


def test_texts_are_escaped() -> None:
    picture = draw_timeline(CUT, "<title> & \x1b")
    assert "<b>" not in picture
    assert "\u201cstop <b>\u201d" in texts(picture)


def test_nothing_is_loaded_from_elsewhere() -> None:
    picture = draw_timeline(CUT, "t").replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not any(word in picture for word in ("http", "url(", "@import", "<script", "href", "@font-face"))


def test_it_has_colours_for_light_and_dark() -> None:
    assert "prefers-color-scheme: dark" in draw_timeline(CUT, "t")


@pytest.mark.parametrize("count", range(len(CUT)))
def test_every_beginning_of_a_course_is_a_picture(count: int) -> None:
    assert classes(draw_timeline(CUT[:count], "t"))


def test_a_role_waits_from_its_ask_to_its_answer() -> None:
    ask = Post.create("rows", "Writer", "Reader")
    events: list[tuple[float, Event]] = [
        (0, AttemptBegan("Writer", ASKED.id, 1)),
        (1, PostRecorded(ask, "r")),
        (3, PostRecorded(ask.reply("these"), "r")),
    ]
    spans = course_of(events).spans
    assert [(span.begin, span.end, span.waits) for span in spans] == [(0, 1, False), (1, 3, True), (3, None, False)]


@pytest.mark.parametrize("seconds", [0.5, 12, 99, 100, 3600, 86_400])
def test_there_are_a_dozen_marks_of_time_at_most(seconds: float) -> None:
    events: list[tuple[float, Event]] = [(0, CUT[0][1]), (seconds, CUT[1][1])]
    assert 1 <= classes(draw_timeline(events, "t")).count("grid") <= 13
