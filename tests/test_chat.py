"""A chat on the virtual clock: what lines and Ctrl-C do to the work, what is told of it, and how it ends."""

import signal
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import pytest
import trio

from callboard.runtime import Actor, Post, Transcript, TurnContext
from callboard.runtime.testing import run_seeded
from callboard.service.chat import Chat, hold_chat
from callboard.service.chat_screen import Draft, Line, PlainScreen, Screen


class Digger(Actor):
    """Digs for three seconds."""

    name = "Digger"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        for number in range(3):
            await trio.sleep(1)
            async with context.step() as draft:
                draft.write(f"hole {number} ")
        words = [said.message for said in context.user_words]
        return post.reply(" ".join([context.draft.take(), *words]))


class Foreman(Actor):
    """Has the digger dig; fails if told to."""

    name = "Foreman"
    subordinates = (Digger(),)

    async def receive(self, post: Post, context: TurnContext) -> Post:
        if "fail" in post.message:
            raise ValueError("no shovel")
        words = [said.message for said in context.user_words]
        dug = await context.ask("Digger", "Dig.")
        return post.reply(" ".join(["Dug:", dug.message, *words]))


class Wait:
    """A second in which nobody says anything."""


WAIT = Wait()
Act = str | signal.Signals | Wait
"""A line, or a signal."""


class ScriptedConsole:
    """Does something each second of the virtual clock; then its lines are at an end."""

    def __init__(self, acts: Sequence[Act], *, asks: bool = True) -> None:
        self.written: list[str] = []
        self.prompts: list[str] = []
        self.asks = asks
        self.width = 78
        self._plain = PlainScreen(self.written.append)
        self.drafts: list[str] = []
        self.changes: list[int] = []
        self._acts = acts

    @property
    def screen(self) -> Screen:
        return self

    def say(self, *lines: Line) -> None:
        self._plain.say(*lines)

    def draft(self, drafts: Iterable[Draft]) -> None:
        self.drafts += [draft.text for draft in drafts]

    def ask(self, prompt: str) -> None:
        if prompt not in self.prompts[-1:]:
            self.prompts.append(prompt)

    def changed(self, number: int) -> None:
        self.changes.append(number)

    async def read(self, chat: Chat) -> None:
        for act in self._acts:
            match act:
                case str():
                    chat.hear(act)
                case signal.Signals():
                    chat.signalled(act)
            await trio.sleep(1)
        await chat.wait_idle()


class BrokenConsole(ScriptedConsole):
    """Fails in the middle."""

    def changed(self, number: int) -> None:
        raise ZeroDivisionError


class Held:
    """A chat that was held."""

    def __init__(self, *acts: Act, asks: bool = True, level: int = 1) -> None:
        self.console = ScriptedConsole(acts, asks=asks)
        self.transcripts: list[Transcript] = []
        self.code = run_seeded(partial(hold_chat, Foreman(), self.console, self.transcripts.append, level=level))
        self.text = "\n".join(self.console.written)


def answers(held: Held) -> list[str]:
    """What the user was answered, round by round."""
    (transcript,) = held.transcripts
    return [round_.post_list[-1].message for round_ in transcript.rounds]


CTRL_C = signal.SIGINT
DUG = "Dug: hole 0 hole 1 hole 2 "


def test_a_line_begins_a_round_whose_answer_is_shown() -> None:
    held = Held("Dig!")
    assert (held.code, answers(held)) == (0, [DUG])
    assert held.console.written[:2] == ["You", "  Dig!"]
    assert "Foreman → Digger\n  Dig." in held.text and held.text.endswith(f"Foreman\n  {DUG.strip()}")


def test_a_line_in_the_middle_interrupts_and_what_became_of_it_is_told() -> None:
    held = Held("Dig!", WAIT, "deeper")
    assert answers(held) == [f"{DUG} deeper"]
    assert "You\n  deeper\nreached Digger; interrupted Digger\nDigger was cut; this is kept\n  hole 0" in held.text
    assert "Digger begins again: attempt 2" in held.text


@pytest.mark.parametrize(("line", "level"), [("/level 2 deeper", 1), ("deeper", 2), ("/level -1 deeper", 1)])
def test_words_reach_as_far_as_the_level_says(line: str, level: int) -> None:
    held = Held("Dig!", WAIT, line, level=level)
    assert "reached Digger, Foreman; interrupted Foreman; recalled Digger" in held.text
    assert answers(held) == [f"{DUG} deeper"]


def test_queued_words_wait_for_a_round_of_their_own() -> None:
    held = Held("Dig!", "/queue And again.", "/queue", WAIT)
    assert answers(held) == [DUG, DUG]
    assert "In line, 1 of 1: And again.\n1. And again." in held.text


def test_a_pause_lasts_until_an_empty_line() -> None:
    held = Held("Dig!", "/pause", *[WAIT] * 9, "", WAIT)
    assert answers(held) == [DUG]
    assert held.console.prompts[:3] == ["interrupt> ", "paused> ", "interrupt> "]
    assert "Going on." in held.text


def test_nothing_is_dug_in_a_pause() -> None:
    held = Held("Dig!", "/pause", *[WAIT] * 9, signal.SIGTERM)
    assert "hole 1" not in str(held.transcripts[0].rounds)


def test_a_nudge_starts_the_active_role_again() -> None:
    assert "interrupted Digger" in Held("Dig!", "/nudge").text


def test_a_stop_ends_the_round() -> None:
    held = Held("Dig!", WAIT, "/stop", "Dig again!")
    assert held.transcripts[0].rounds[0].state == "stopped"
    assert "The round is stopped." in held.text and answers(held)[1] == DUG


@pytest.mark.parametrize("line", ["/stop", "/nudge"])
def test_a_verb_that_meets_nobody_says_so(line: str) -> None:
    assert "Nothing runs." in Held(line).text


def test_the_tree_tells_who_works_for_whom_and_what_is_kept() -> None:
    held = Held("Dig!", WAIT, "deeper", "/tree")
    assert "Foreman: works, waits for Digger: Dig!\n  Digger: works, attempt 2: Dig.\n" in held.text
    assert "Digger > Digger  [CUT, kept 1 line]: hole 0" in held.text


def test_a_line_that_asks_for_nothing_is_told_and_nobody_hears_it() -> None:
    held = Held("/stpo")
    assert "the nearest is /stop" in held.text and not held.transcripts[0].rounds


def test_ctrl_c_pauses_and_asks_and_words_then_interrupt() -> None:
    held = Held("Dig!", CTRL_C, *[WAIT] * 5, "deeper", WAIT)
    assert "Paused." in held.text and "Ctrl-C again leaves" in held.text
    assert (held.code, answers(held)) == (0, [f"{DUG} deeper"])


def test_ctrl_c_twice_leaves_and_what_was_written_is_in_the_transcript() -> None:
    held = Held("Dig!", WAIT, CTRL_C, CTRL_C)
    assert held.code == 130
    assert [post.message for post in held.transcripts[0].rounds[0].post_list if post.marks.state == "partial"]


def test_a_line_between_makes_the_next_ctrl_c_a_first_one() -> None:
    assert Held("Dig!", CTRL_C, "", CTRL_C, "", WAIT).code == 0


def test_ctrl_c_with_nothing_running_asks_before_it_leaves() -> None:
    held = Held(CTRL_C, CTRL_C)
    assert held.code == 130 and "Nothing runs. Ctrl-C again leaves" in held.text


def test_where_nobody_can_be_asked_the_first_ctrl_c_leaves() -> None:
    assert Held("Dig!", CTRL_C, asks=False).code == 130


@pytest.mark.parametrize(("act", "code"), [("/exit", 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_who_leaves_in_the_middle_keeps_the_transcript(act: Act, code: int) -> None:
    held = Held("Dig!", WAIT, act, "not heard")
    assert held.code == code and "not heard" not in held.text
    assert held.transcripts[0].rounds[0].state == "stopped"


def test_a_round_that_fails_is_told_and_is_the_exit_code_of_a_pipe() -> None:
    held = Held("fail")
    assert held.code == 1 and "no shovel" in held.text and "The round is failed." in held.text


def test_a_failed_round_before_the_last_is_forgiven() -> None:
    assert Held("fail", "Dig!").code == 0


def test_a_pause_at_the_end_of_the_lines_does_not_last_for_ever() -> None:
    assert answers(Held("Dig!", "/pause")) == [DUG]


def test_drafts_grow_on_the_screen_and_go_when_they_are_recorded() -> None:
    drafts = Held("Dig!").console.drafts
    assert "hole 0 hole 1 " in drafts


def test_an_error_of_the_console_still_keeps_the_transcript() -> None:
    console, kept = BrokenConsole(["Dig!", WAIT, signal.SIGWINCH]), list[Transcript]()
    with pytest.raises(ZeroDivisionError):
        run_seeded(partial(hold_chat, Foreman(), console, kept.append))
    assert kept[0].rounds[0].state == "stopped"


def test_a_conversation_is_saved_for_lessons_and_the_folder_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    held = Held("Dig!", WAIT, "deeper", WAIT, WAIT, WAIT, WAIT, "/save")
    (transcript,) = held.transcripts
    path = tmp_path / "experience" / f"raw_exp_{transcript.id}.yaml"
    assert f"Saved, for callboard experience refresh to make lessons of it: {path}" in held.text
    kinds = [post.marks.kind for post in Transcript.restore_yaml(path).rounds[0].post_list]
    assert "intervention" in kinds


def test_a_conversation_that_cannot_be_saved_is_told_of_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experience").write_text("a file")
    held = Held("Dig!", "/save")
    assert "It was not saved:" in held.text
    assert (held.code, answers(held)) == (0, [DUG])
