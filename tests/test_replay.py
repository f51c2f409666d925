"""A recorded conversation is played as it was recorded, or refused with the place in its file."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio

from callboard.runtime import Post, Transcript, open_conversation
from callboard.runtime.errors import InvalidFile
from callboard.runtime.markers import END, START
from callboard.runtime.testing import run_seeded
from callboard.runtime.text import temporal
from callboard.service.recorded_play import read_play
from callboard.service.replay import Execution, RecordedRole, run_play

HEAD = """\
enabled: true
rounds:
  - user_query: add
    state: created
    post_list:
"""

CODED = """\
      - {message: add, send_from: User, send_to: Planner, attachment_list: []}
      - message: compute
        send_from: Planner
        send_to: Coder
        attachment_list: [{type: plan, content: 1. compute}]
      - message: ""
        send_from: Coder
        send_to: Coder
        attachment_list: [{type: thought, content: easy}]
      - message: done
        send_from: Coder
        send_to: Planner
        attachment_list:
          - {type: reply_type, content: python}
          - {type: reply_content, content: 'print("made:", 2 + 2); open("made.txt", "w").close()'}
          - {type: execution_status, content: SUCCESS}
          - {type: execution_result, content: recorded}
      - {message: it is 4, send_from: Planner, send_to: User, attachment_list: []}
"""


def post(way: str, message: str = "m") -> str:
    """A line of a file for a post, such as `post("A>B")`."""
    source, target = way.split(">")
    return f"      - {{message: {message}, send_from: {source}, send_to: {target}, attachment_list: []}}\n"


def written(folder: Path, posts: str) -> Path:
    """A file with one round of these posts."""
    path = folder / "old.yaml"
    path.write_text(HEAD + posts, encoding="utf-8")
    return path


def ways(transcript: Transcript) -> list[str]:
    """Who wrote to whom in the last round."""
    return [f"{post.send_from}>{post.send_to}" for post in transcript.rounds[-1].post_list]


def played(path: Path) -> tuple[Transcript, list[str]]:
    """The transcript of the play, on the virtual clock, and the lines it wrote."""
    lines: list[str] = []

    async def main() -> Transcript:
        return await run_play(read_play(path), lines.append)

    return run_seeded(main), lines


def test_each_role_says_what_it_said(tmp_path: Path) -> None:
    transcript, _ = played(written(tmp_path, CODED))
    posts = transcript.rounds[-1].post_list
    assert ways(transcript) == ["User>Planner", "Planner>Coder", "Coder>Coder", "Coder>Planner", "Planner>User"]
    assert [post.message for post in posts] == ["add", "compute", "", "done", "it is 4"]
    assert str(posts[1].attachment_list[0].content) == "1. compute"


def test_what_was_temporal_is_said_so_again(tmp_path: Path) -> None:
    script = "".join(
        [post("User>A"), *(post(way, f"'keep {START}big{END}'") for way in ("A>A", "A>B", "B>A", "A>User"))]
    )
    transcript, _ = played(written(tmp_path, script))
    assert [one.text for one in transcript.rounds[-1].post_list[1:]] == ["keep " + temporal("big")] * 4


def test_what_was_played_can_be_played_again(tmp_path: Path) -> None:
    first, _ = played(written(tmp_path, CODED))
    first.save(tmp_path / "new.yaml")
    assert ways(played(tmp_path / "new.yaml")[0]) == ways(first)


def test_recorded_code_is_shown_whole_and_not_run(tmp_path: Path) -> None:
    transcript, lines = played(written(tmp_path, CODED))
    assert '    print("made:", 2 + 2); open("made.txt", "w").close()' in lines
    assert not any("made: 4" in line for line in lines)
    (result,) = transcript.rounds[-1].post_list[3].get_attachment("execution_result")
    assert result.content == "recorded"


def test_code_cannot_write_to_the_terminal_but_text(tmp_path: Path) -> None:
    path = written(tmp_path, CODED.replace('print("made:", 2 + 2)', "x = 1  # \x9b2J").replace("'x", '"x', 1))
    with pytest.raises(InvalidFile):
        read_play(path)
    posts = CODED.replace("done", '"\\e[2J done"')
    assert "\x1b" not in "".join(played(written(tmp_path, posts))[1])


def test_a_role_that_is_asked_twice_goes_on_in_its_script(tmp_path: Path) -> None:
    script = ["User>A", "A>B", "B>A", "A>B", "B>B", "B>A", "A>User"]
    assert ways(played(written(tmp_path, "".join(map(post, script))))[0]) == script


def test_a_recorded_intervention_is_left_out(tmp_path: Path) -> None:
    script = ["User>A", "A>B", "B>A", "User>B", "User>A", "A>B", "B>A", "A>User"]
    transcript, _ = played(written(tmp_path, "".join(map(post, script))))
    assert ways(transcript) == ["User>A", "A>B", "B>A", "A>B", "B>A", "A>User"]


def test_posts_that_nobody_comes_to_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "".join(map(post, ["User>A", "A>User", "A>User", "B>A"])))
    assert read_play(path).left_over == 2


def test_a_round_without_a_question_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(HEAD + post("A>B") + HEAD.split("rounds:\n")[1] + post("User>A", "go") + post("A>User"))
    assert read_play(path).query == "go"


def test_an_empty_message_is_the_rounds_query(tmp_path: Path) -> None:
    assert read_play(written(tmp_path, post("User>A", '""') + post("A>User"))).query == "add"


UNPLAYABLE = {
    "nobody asks anything": ([], 5, "rounds[0].post_list"),
    "A never answers User": (["User>A"], 6, "rounds[0].post_list[0].send_to"),
    "B never answers A": (["User>A", "A>B", "A>User"], 7, "rounds[0].post_list[1].send_to"),
    "A writes to User while B waits": (["User>B", "B>A", "A>User"], 8, "rounds[0].post_list[2].send_to"),
    "'memory' cannot be the name of a role": (["User>memory"], 6, "rounds[0].post_list[0].send_to"),
    "'a b' cannot be the name of a role": (["User>a b"], 6, "rounds[0].post_list[0].send_to"),
}


@pytest.mark.parametrize("fault", UNPLAYABLE)
def test_what_cannot_be_played_is_refused_with_its_place(tmp_path: Path, fault: str) -> None:
    script, line, key = UNPLAYABLE[fault]
    with pytest.raises(InvalidFile) as refused:
        read_play(written(tmp_path, "".join(map(post, script)) or "      []\n"))
    error = refused.value
    assert error.message.startswith(fault)
    assert (error.line, error.key) == (line, key)
    assert error.remedy and str(tmp_path) in str(error)


def test_a_file_without_rounds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("enabled: true\nrounds: []\n")
    with pytest.raises(InvalidFile, match="nobody asks anything"):
        read_play(path)


@pytest.mark.slow
def test_code_that_is_run_leaves_its_new_result(tmp_path: Path) -> None:
    lines: list[str] = []
    path = written(tmp_path, CODED)

    async def main() -> Transcript:
        return await run_play(read_play(path), lines.append, execute=True)

    reply = trio.run(main).rounds[-1].post_list[3]
    assert [one.content for one in reply.get_attachment("execution_result")] == ["made: 4\n"]
    assert any("made: 4" in line for line in lines)
    assert not Path("made.txt").exists()


@pytest.mark.slow
def test_code_that_a_reply_repeats_is_run_once(tmp_path: Path) -> None:
    reply = CODED.index("      - message: done")
    note = CODED[reply:].replace("send_to: Planner", "send_to: Coder").partition("      - {message: it is 4")[0]
    path = written(tmp_path, CODED[:reply] + note + CODED[reply:])
    lines: list[str] = []

    async def main() -> Transcript:
        return await run_play(read_play(path), lines.append, execute=True)

    posts = trio.run(main).rounds[-1].post_list[3:5]
    assert [one.content for post in posts for one in post.get_attachment("execution_result")] == ["made: 4\n"] * 2
    assert len([line for line in lines if line.endswith("| made: 4")]) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("code", "told"), [("import time; time.sleep(60)", "too long"), ("1 / 0", "exit code 1")])
def test_code_that_fails_or_takes_too_long_is_a_failure(tmp_path: Path, code: str, told: str) -> None:
    reply = read_play(written(tmp_path, CODED)).scripts["Coder"][1]
    pieces = [replace(one, content=code) if one.type == "reply_content" else one for one in reply.attachment_list]
    asked = Post.create("compute", "User", "Coder")
    script = [replace(reply, send_to="User", attachment_list=tuple(pieces))]

    async def main() -> Post:
        from_now = RecordedRole("Coder", script, Execution(tmp_path, time_limit=0.5))
        async with open_conversation(from_now) as conversation:
            return await conversation.send(asked.message)

    answer = trio.run(main)
    assert [one.content for one in answer.get_attachment("execution_status")] == ["FAILURE"]
    assert told in str(answer.get_attachment("execution_result")[0].content)
