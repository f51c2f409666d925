"""The demo: its answer is right whenever the user speaks, and the command line does what it says."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from callboard.__main__ import main, report
from callboard.demo import QUESTION, TABLE, WORDS, Collector, Editor, Outcome, Researcher, run_demo
from callboard.narrator import WIDTH, fit, lines_in, tree_of
from callboard.runtime import Conversation, Post, Round, Transcript, open_conversation
from callboard.runtime.errors import ConversationClosed
from callboard.runtime.testing import Watch, every_interrupt_point, run_seeded

from .test_imports import ROOT


def expected(*years: str) -> str:
    """The answer that the table gives for these years, worked out without the demo's own functions."""
    shares: dict[str, tuple[int, int]] = {}
    for row in TABLE:
        supplier, period, deliveries, _, late, _ = row.split()
        if period[:4] in years:
            before = shares.get(supplier, (0, 0))
            shares[supplier] = (before[0] + int(late), before[1] + int(deliveries))
    best = sorted(shares, key=lambda supplier: shares[supplier][0] / shares[supplier][1])[0]
    return f"Late least often is {best}: {shares[best][0]} late of {shares[best][1]} in {' and '.join(years)}."


def hold(seed: int = 0, words_after: int = 6) -> tuple[Outcome, list[str]]:
    """The demo on the virtual clock, and the lines it wrote."""
    lines: list[str] = []
    outcome = run_seeded(partial(run_demo, lines.append, words_after=words_after), seed)
    return outcome, lines


def run_command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """`python -m callboard` as a program of its own."""
    command: list[str | Path] = [sys.executable, "-m", "callboard", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_the_words_change_the_answer() -> None:
    assert hold()[0].answer.message == expected("2025") != expected("2024", "2025")


@pytest.mark.parametrize("words_after", range(len(TABLE) + 2))
def test_the_answer_holds_the_words_whenever_they_come(words_after: int) -> None:
    for seed in range(5):
        assert hold(seed, words_after)[0].answer.message == expected("2025")


def test_the_answer_holds_the_words_at_every_moment_and_the_invariants_hold() -> None:
    async def scenario(watch: Watch) -> None:
        async with open_conversation(Editor(Researcher(Collector(0.2)))) as conversation:
            await watch(conversation).send(QUESTION)
            await conversation.wait_idle()
            posts = conversation.transcript().rounds[-1].post_list
            said = any(post.message == WORDS for post in posts)
            answer = next(post.message for post in reversed(posts) if post.send_to == "User")
            assert answer == (expected("2025") if said else expected("2024", "2025"))

    def speak(conversation: Conversation) -> object:
        try:
            return conversation.communicate(WORDS, broadcast_level=2)
        except ConversationClosed:
            return None

    report = every_interrupt_point(scenario, speak, limit=60)
    assert report.outcomes["seen"] > report.runs / 2


def test_no_row_is_read_twice() -> None:
    _, lines = hold()
    read = [line for line in lines if "  + " in line]
    assert len(read) == len(set(read)) == len(TABLE) - 2


def test_the_receipt_tells_what_was_cut_and_kept() -> None:
    outcome, _ = hold()
    receipt = outcome.receipt
    assert (receipt.reached, receipt.interrupted, receipt.recalled) == (
        ("Collector", "Researcher"),
        ("Researcher",),
        ("Collector",),
    )
    assert [post.message.splitlines() for post in outcome.stopped.posts] == [TABLE[:6]]
    assert outcome.seen


def test_what_is_printed_fits_into_80_columns_and_is_ascii() -> None:
    outcome, lines = hold()
    printed = "\n".join([*lines, *report(outcome)])
    assert printed.isascii()
    assert max(map(len, printed.splitlines())) <= WIDTH


def test_the_tree_marks_what_was_cut() -> None:
    outcome, _ = hold()
    (cut,) = [line for line in report(outcome) if "CUT" in line]
    assert cut.startswith("        Collector > Researcher  [CUT, kept 6 lines]")


def test_words_that_come_before_any_work_cut_nothing() -> None:
    outcome, _ = hold(words_after=0)
    assert (outcome.receipt.recalled, outcome.stopped.posts) == ((), ())
    assert "  nothing: no work was under way" in list(report(outcome))


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


@pytest.mark.parametrize(("text", "fitted"), [("a", "a"), ("abcdef", "ab..."), ("", ""), ("a\n\nb", "a (+2 lines)")])
def test_a_text_is_cut_to_its_room(text: str, fitted: str) -> None:
    assert fit(text, 5 if text == "abcdef" else 20) == fitted


def test_one_line_is_not_called_lines() -> None:
    assert [lines_in(text) for text in ("", "a", "a\nb")] == ["nothing", "1 line", "2 lines"]


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["--version"], 0), (["nonsense"], 2), ([], 2)])
def test_the_command_line_exits_with(arguments: list[str], code: int) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == code


@pytest.mark.slow
def test_the_command_runs_and_saves_a_transcript_that_loads(tmp_path: Path) -> None:
    done = run_command("demo", "--save", tmp_path / "demo.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert expected("2025") in done.stdout
    assert done.stdout.splitlines()[-1].endswith(str(tmp_path / "demo.yaml"))
    posts = Transcript.restore_yaml(tmp_path / "demo.yaml").rounds[-1].post_list
    assert posts[-1].message == expected("2025")


@pytest.mark.slow
def test_the_command_takes_it_calmly_when_its_reader_goes() -> None:
    command = [sys.executable, "-m", "callboard", "demo"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None and started.stderr is not None
        started.stdout.readline()
        started.stdout.close()
        assert started.stderr.read() == ""


@pytest.mark.slow
def test_a_transcript_that_cannot_be_saved_is_an_error(tmp_path: Path) -> None:
    done = run_command("demo", "--save", tmp_path / "no" / "demo.yaml")
    assert done.returncode == 1
    assert "not saved" in done.stderr
