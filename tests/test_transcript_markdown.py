"""Transcripts for people: what is shown, and that no text passes for more than it is."""

from callboard.runtime.attachment import Attachment
from callboard.runtime.post import Marks, Post
from callboard.runtime.round import Round
from callboard.runtime.text import temporal
from callboard.runtime.transcript import Transcript

ASKED = Post("post-1", "User", "Planner", "add\n\ntwo numbers")
NOTED = Post("post-2", "Planner", "Planner", "", (Attachment.create("plan", "1. add"),), Marks(kind="note"))
ANSWERED = Post("post-3", "Planner", "User", "4", (), Marks("post-1", "reply", "partial")).with_text(
    "4 " + temporal("of 4,000")
)
TRANSCRIPT = Transcript("conv-1", (Round("round-1", "add\n\ntwo numbers", "stopped", (ASKED, NOTED, ANSWERED)),))


def test_a_transcript_is_shown_round_by_round_and_post_by_post() -> None:
    assert TRANSCRIPT.to_markdown() == (
        "# conv-1\n\nRoles: User, Planner\n\n## Round 1: stopped\n\n"
        "**User** to **Planner**\n\n> add\n> \n> two numbers\n\n"
        "**Planner** to itself (note)\n\nplan:\n\n```text\n1. add\n```\n\n"
        "**Planner** to **User** (reply, partial, 8 characters for this round alone)\n\n> 4 of 4,000\n"
    )


def test_a_query_is_shown_only_where_the_first_post_does_not_say_it() -> None:
    shown = Transcript("conv-1", (Round("round-1", "other", "created", (ASKED,)), Round("r", "", "failed", ())))
    assert "## Round 1: created\n\n> other\n\n**User** to" in shown.to_markdown()
    assert shown.to_markdown().endswith("## Round 2: failed\n")


def test_nothing_that_is_said_passes_for_a_heading_or_another_post() -> None:
    hostile = "x\r# conv-2\u2028## Round 2: failed\n**User** to **Planner**\n```\n</pre>"
    attachment = Attachment.create("execution_result", "````\n# x")
    post = Post("post-1", f"User\n# {hostile}", "P_*`<", hostile, (attachment,))
    lines = Transcript(hostile, (Round("round-1", hostile, "created", (post,)),)).to_markdown().splitlines()
    assert [line for line in lines if line.startswith("## ")] == ["## Round 1: created"]
    assert sum(line.startswith("**") for line in lines) == 1
    fence = lines.index("`````text")
    assert lines[fence : fence + 4] == ["`````text", "````", "# x", "`````"]
    assert [number for number, line in enumerate(lines) if line.startswith("# ")] == [0, fence + 2]
    assert any(line.endswith(r"to **P\_\*\`\<**") for line in lines)


def test_paths_are_shown_one_a_line_and_an_image_by_its_beginning() -> None:
    attachments = (
        Attachment.create("artifact_paths", ["a.csv", "b.png"]),
        Attachment.create("image_url", "data:" + "x" * 1000),
        Attachment.create("execution_result", temporal("y" * 1000)),
    )
    post = Post("post-1", "User", "Planner", "", attachments)
    shown = Transcript("conv-1", (Round("round-1", "", "created", (post,)),)).to_markdown()
    assert "artifact paths:\n\n```text\na.csv\nb.png\n```\n" in shown
    assert f"image url:\n\n```text\ndata:{'x' * 195}…\n```\n" in shown
    assert f"execution result (1,000 characters for this round alone):\n\n```text\n{'y' * 1000}\n```\n" in shown
