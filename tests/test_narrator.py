"""What is printed of a conversation: lines that fit, in which no control character stands, and a tree of posts."""

import pytest
import trio

from callboard.runtime import Attachment, Post, Round
from callboard.runtime.event import AttemptCut, DraftGrew, Event, PostRecorded
from callboard.runtime.model_event import ModelRetried
from callboard.runtime.post import Marks
from callboard.service.narrator import Narrator, code_in
from callboard.service.plain_text import WIDTH, fit, fit_lines, lines_in, plain
from callboard.service.post_tree import tree_of


def narrated(*events: Event) -> list[str]:
    """What a narrator says of these events."""

    async def main() -> list[str]:
        narrator = Narrator(print)
        return [line for event in events for line in narrator.say(event)]

    return trio.run(main)


def code(*types: str) -> Post:
    """A note with a piece of content for each reply type."""
    pieces = [(name, text) for type in types for name, text in (("reply_type", type), ("reply_content", f"{type}!"))]
    attachments = [Attachment.create(name, text) for name, text in pieces]
    return Post.create("", "Coder", "Coder", attachments, marks=Marks(kind="note"))


def test_the_tree_marks_requests_that_left_nothing() -> None:
    asked = Post.create("q", "Editor", "Researcher")
    also = Post.create("r", "Researcher", "Collector")
    posts = [asked, also, also.reply("", state="not_started"), asked.reply("", state="partial")]
    assert list(tree_of(Round.create("q", post_list=posts), WIDTH)) == [
        "Editor > Researcher: q",
        "  Researcher > Collector: r",
        "    Collector > Researcher  [CUT before it began]",
        "  Researcher > Editor  [CUT, kept nothing]",
    ]


def test_running_code_is_told_in_whole_lines() -> None:
    said = narrated(*(DraftGrew("Coder", "p", text, "execution_result") for text in ("on", "e\ntw", "o\n")))
    assert [line.split("|")[1] for line in said] == [" one", " two"]


def test_a_line_that_was_cut_is_not_joined_to_the_next_attempts() -> None:
    cut = AttemptCut("Coder", "p", 1, None)
    said = narrated(DraftGrew("Coder", "p", "ha", "code"), cut, DraftGrew("Coder", "p", "whole\n", "code"))
    assert [line.split()[-1] for line in said] == ["recalled", "whole"]


def test_that_a_model_writes_is_told_once_a_reply_and_not_what() -> None:
    grew = DraftGrew("Planner", "p", '{"response"\n')
    said = narrated(grew, grew, AttemptCut("Planner", "p", 1, "w"), grew)
    assert [line.split(maxsplit=1)[1] for line in said] == ["is writing", "is interrupted", "is writing"]


def test_that_a_reply_is_put_back_to_a_model_is_told_with_the_reason() -> None:
    pieces = [Attachment.create("invalid_response", "{"), Attachment.create("revise_message", "no: it breaks off")]
    note = Post.create("", "Planner", "Planner", pieces, marks=Marks(kind="note"))
    assert narrated(PostRecorded(note, "r")) == ["Planner         is to reply again: no: it breaks off"]


def test_code_that_was_not_written_to_its_end_is_told_as_unfinished_alone() -> None:
    partial = Post.create("", "Coder", "Coder", code("python").attachment_list, marks=Marks(None, "note", "partial"))
    assert narrated(PostRecorded(partial, "r")) == ["Coder           leaves 2 lines unfinished, which is kept"]


def test_a_retry_of_a_model_is_told() -> None:
    assert "busy" in narrated(ModelRetried("Planner", "m", "busy", 1.0))[0]


def test_code_is_the_content_whose_type_is_python() -> None:
    assert code_in(code("text", "python")) == ["python!"]
    assert "1 line of Python" in narrated(PostRecorded(code("python"), "r"))[0]


@pytest.mark.parametrize(
    ("text", "fitted"), [("a", "a"), ("abcdef", "ab..."), ("", ""), ("a\n\nb", "a (+2 lines)"), ("a\nb", "a (+1 line)")]
)
def test_a_text_is_cut_to_its_room(text: str, fitted: str) -> None:
    assert fit(text, 5 if text == "abcdef" else 20) == fitted


def test_lines_keep_their_indentation() -> None:
    assert list(fit_lines("if a:\n\tb\n", 20)) == ["if a:", "    b"]


@pytest.mark.parametrize("sign", ["\x1b[2J", "\r", "\x00", "\x9b", "\u202e"])
def test_no_control_character_comes_through(sign: str) -> None:
    assert plain(f"a{sign}b\n").replace("\n", "").isprintable()


def test_one_line_is_not_called_lines() -> None:
    assert [lines_in(lines) for lines in ([], ["a"], ["a", "b"])] == ["nothing", "1 line", "2 lines"]
