"""The demo: its answer is right whenever the user speaks, and what is printed tells what happened."""

import csv
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import trio

from callboard.runtime import Actor, Post, Receipt, Transcript, TurnContext, open_conversation
from callboard.runtime.chat_model import ChatRequest, Message
from callboard.runtime.errors import RoleFailed
from callboard.runtime.receipt import Stopped
from callboard.runtime.testing import run_seeded
from callboard.service.demo import Outcome, demo_roles, report, run_demo
from callboard.service.demo_script import QUESTION, WORDS, demo_model, interpreter_reply, planner_reply
from callboard.service.make_orders import PATH, orders
from callboard.service.plain_text import WIDTH


def finding(*years: str) -> str:
    """What the table gives for these years, worked out without the demo's own code."""
    late: Counter[str] = Counter()
    total: Counter[str] = Counter()
    with PATH.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["date"].startswith(years)]
    for row in rows:
        value = int(row["quantity"]) * int(row["price"].replace(".", ""))
        total[row["supplier"]] += value
        if row["late"] == "yes":
            late[row["supplier"]] += value
    worst = sorted(total, key=lambda supplier: late[supplier] / total[supplier])[-1]
    share = round(100 * late[worst] / total[worst], 1)
    return f"Late most often in {' and '.join(years)}: {worst}, {share} % late by value, {len(rows)} orders."


EXPECTED = f'{finding("2025")} (You said: "{WORDS}")'


def hold(words_after: int) -> tuple[Outcome, list[str]]:
    """The whole demo with its real code, which does not rest, and the lines it wrote."""
    lines: list[str] = []
    return trio.run(partial(run_demo, demo_roles(demo_model(0.02)), lines.append, words_after=words_after)), lines


class Counting(Actor):
    """Stands in for the roles of the demo: it prints lines, as running code does, and answers what it was told."""

    name = "Counting"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        heard = " ".join([post.message, *(words.message for words in context.user_words)])
        for number in range(3):
            await trio.sleep(1)
            context.draft.attach("execution_result", f"line {number}\n")
        return post.reply(heard)


class Failing(Actor):
    """Fails at once."""

    name = "Failing"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        raise OSError("no such server")


def play(root: Actor, words_after: int = 2) -> tuple[Outcome, list[str]]:
    """The demo's conversation with other roles, on the virtual clock."""
    lines: list[str] = []
    return run_seeded(partial(run_demo, root, lines.append, words_after=words_after)), lines


def asked(*contents: str) -> ChatRequest:
    """A request to a model, the last content being the newest."""
    return ChatRequest("Planner", (Message("system", WORDS), *(Message("user", content) for content in contents)))


def test_the_file_of_orders_is_what_its_script_makes() -> None:
    assert PATH.read_bytes() == orders().encode()


def test_the_words_change_the_answer() -> None:
    assert finding("2025").split(": ")[1][:5] != finding("2024", "2025").split(": ")[1][:5]


@pytest.mark.parametrize("words_after", [0, 2, 3, 99])
def test_the_words_are_said_whether_they_come_before_during_or_after_the_work(words_after: int) -> None:
    outcome, _ = play(Counting(), words_after)
    assert outcome.answer.message.endswith(WORDS)
    assert outcome.seen


def test_the_receipt_and_what_was_kept_are_reported() -> None:
    lines = list(report(play(Counting())[0]))
    assert "  interrupted  Counting" in lines
    assert "    line 1" in lines
    assert any("[CUT, kept 2 lines]" in line for line in lines)


def test_words_that_come_when_nothing_runs_keep_nothing() -> None:
    assert "  nothing: no work was under way" in list(report(play(Counting(), 99)[0]))


def test_a_long_answer_is_wrapped_and_not_cut() -> None:
    answer = "term " * 40
    outcome = Outcome(Post.create(answer, "A", "User"), _receipt(), Stopped((), (), ()), True, Transcript("c", ()))
    lines = list(report(outcome))
    assert max(map(len, lines)) <= WIDTH
    assert " ".join(lines).count("term") == 40


def _receipt() -> Receipt:
    return play(Counting())[0].receipt


def test_a_role_that_fails_fails_the_demo_before_anything_is_said() -> None:
    with pytest.raises(RoleFailed, match="no such server"):
        play(Failing())


def test_the_script_asks_for_the_years_that_the_user_wants() -> None:
    assert "Years 2024 and 2025" in planner_reply(asked(QUESTION)).text
    assert "Years 2025" in planner_reply(asked(QUESTION, WORDS)).text


def test_the_script_does_not_answer_with_what_was_found_for_other_years() -> None:
    assert "CodeInterpreter" in planner_reply(asked(QUESTION, "Finding for 2024 and 2025: Birch.", WORDS)).text
    assert "Birch" in planner_reply(asked(QUESTION, "Finding for 2024 and 2025: Birch.")).text


def test_the_code_of_the_script_is_for_the_newest_task() -> None:
    text = interpreter_reply(asked("Years 2024 and 2025: x", "Years 2025: x")).text
    assert "YEARS = ['2025']" in text


async def test_the_roles_of_the_demo_are_the_planner_and_its_interpreter() -> None:
    async with open_conversation(demo_roles(demo_model())) as conversation:
        assert set(conversation.statistics().mailboxes) == {"Planner", "CodeInterpreter"}


@pytest.mark.slow
@pytest.mark.parametrize("words_after", [0, 1, 5, 11, 99])
def test_the_real_code_computes_the_answer_whenever_the_words_come(words_after: int) -> None:
    outcome, lines = hold(words_after)
    assert outcome.answer.message == EXPECTED
    printed = "\n".join([*lines, *report(outcome)])
    assert printed.isascii()
    assert max(map(len, printed.splitlines())) <= WIDTH


@pytest.mark.slow
def test_the_running_code_is_stopped_and_what_it_had_printed_is_kept() -> None:
    outcome, _ = hold(4)
    assert outcome.receipt.reached == ("CodeInterpreter", "Planner")
    assert (outcome.receipt.interrupted, outcome.receipt.recalled) == (("Planner",), ("CodeInterpreter",))
    (kept,) = outcome.stopped.posts
    (result,) = kept.get_attachment("execution_result")
    assert "1200 rows read" in str(result.content)
    assert "3000 rows read" not in str(result.content)


@pytest.mark.slow
def test_the_transcript_of_the_demo_loads_and_ends_with_the_answer(tmp_path: Path) -> None:
    hold(4)[0].transcript.save(tmp_path / "demo.yaml")
    assert Transcript.restore_yaml(tmp_path / "demo.yaml").rounds[-1].post_list[-1].message == EXPECTED
