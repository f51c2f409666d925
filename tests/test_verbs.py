"""The table of verbs, cell by cell: what each verb of a conversation does in each state, and under another verb."""

import re
from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.errors import CallboardError
from callboard.runtime.queued import Queued
from callboard.runtime.receipt import Receipt
from tests.situations import STATES, UNDER_WAY, Prepare, Scene, rounds, scene_of
from tests.test_imports import ROOT

VERBS: dict[str, Callable[[Scene], object]] = {
    "send": lambda scene: scene.wait_for("send", lambda: scene.conversation.send("x")),
    "communicate": lambda scene: scene.conversation.communicate("x"),
    "intervene": lambda scene: scene.conversation.intervene("x"),
    "nudge": lambda scene: scene.conversation.nudge(),
    "enqueue": lambda scene: scene.conversation.enqueue("x"),
    "pause": lambda scene: scene.conversation.pause(),
    "resume": lambda scene: scene.conversation.resume(),
    "stop": lambda scene: scene.conversation.stop("later"),
    "wait_idle": lambda scene: scene.wait_for("wait_idle", scene.conversation.wait_idle),
}


TABLE: dict[str, dict[str, tuple[str, str]]] = {
    "send": {
        "idle": ("its round begins", "waits, then gives x; rounds x"),
        "running": ("its round stands in line", "waits, then gives x; q gives q; rounds q, x"),
        "paused": ("goes on; its round stands in line", "waits, then gives x; resumes; q gives q; rounds q, x"),
        "stopping": ("its round follows the end", "waits, then gives x; q raises RoundStopped; rounds q stopped, x"),
        "closed": ("`ConversationClosed`", "raises ConversationClosed; rounds none"),
    },
    "communicate": {
        "idle": ("its round begins", "started; rounds x"),
        "running": ("interrupts", "intervened; q gives q+x; rounds q"),
        "paused": ("interrupts and goes on", "intervened; resumes; q gives q+x; rounds q"),
        "stopping": ("its round follows the end", "waiting, then started; q raises RoundStopped; rounds q stopped, x"),
        "closed": ("`ConversationClosed`", "raises ConversationClosed; rounds none"),
    },
    "intervene": {
        "idle": ("missed", "missed; rounds none"),
        "running": ("interrupts", "intervened; q gives q+x; rounds q"),
        "paused": ("interrupts and goes on", "intervened; resumes; q gives q+x; rounds q"),
        "stopping": ("missed", "missed; q raises RoundStopped; rounds q stopped"),
        "closed": ("missed", "missed; rounds none"),
    },
    "nudge": {
        "idle": ("missed", "missed; rounds none"),
        "running": ("interrupts", "intervened; q gives q+Go on.; rounds q"),
        "paused": ("interrupts and goes on", "intervened; resumes; q gives q+Go on.; rounds q"),
        "stopping": ("missed", "missed; q raises RoundStopped; rounds q stopped"),
        "closed": ("missed", "missed; rounds none"),
    },
    "enqueue": {
        "idle": ("its round begins", "begun, then over; rounds x"),
        "running": ("its round stands in line", "waiting, then over; q gives q; rounds q, x"),
        "paused": (
            "its round stands in line; stays paused",
            "waiting; stays paused; q waits; rounds q open; in line x",
        ),
        "stopping": ("its round follows the end", "waiting, then over; q raises RoundStopped; rounds q stopped, x"),
        "closed": ("`ConversationClosed`", "raises ConversationClosed; rounds none"),
    },
    "pause": {
        "idle": ("pauses", "pauses; rounds none"),
        "running": ("pauses", "pauses; q waits; rounds q open"),
        "paused": ("nothing", "stays paused; q waits; rounds q open"),
        "stopping": ("nothing", "q raises RoundStopped; rounds q stopped"),
        "closed": ("nothing", "rounds none"),
    },
    "resume": {
        "idle": ("nothing", "rounds none"),
        "running": ("nothing", "q gives q; rounds q"),
        "paused": ("goes on", "resumes; q gives q; rounds q"),
        "stopping": ("nothing", "q raises RoundStopped; rounds q stopped"),
        "closed": ("nothing", "rounds none"),
    },
    "stop": {
        "idle": ("nothing", "rounds none"),
        "running": ("ends the round", "q raises RoundStopped; rounds q stopped"),
        "paused": ("ends the round", "resumes; q raises RoundStopped; rounds q stopped"),
        "stopping": ("nothing: the first reason stays", "q raises RoundStopped; rounds q stopped"),
        "closed": ("nothing", "rounds none"),
    },
    "wait_idle": {
        "idle": ("returns", "returns; rounds none"),
        "running": ("waits", "waits, then returns; q gives q; rounds q"),
        "paused": ("waits", "waits; stays paused; q waits; rounds q open"),
        "stopping": ("waits", "waits, then returns; q raises RoundStopped; rounds q stopped"),
        "closed": ("returns", "returns; rounds none"),
    },
}
"""For each verb, by state: what the page says that it does, and what is seen of it."""

UNDER_WAY_TABLE: dict[str, dict[str, str]] = {
    "paused and idle": {
        "send": "waits, then gives x; resumes; rounds x",
        "communicate": "started; resumes; rounds x",
        "intervene": "missed; stays paused; rounds none",
        "nudge": "missed; stays paused; rounds none",
        "enqueue": "begun; stays paused; rounds x open",
        "pause": "stays paused; rounds none",
        "resume": "resumes; rounds none",
        "stop": "stays paused; rounds none",
        "wait_idle": "returns; stays paused; rounds none",
    },
    "words wait for a step": {
        "send": "waits, then gives x; q gives q+w; w intervened; rounds q, x",
        "communicate": "intervened; q gives q+w+x; w intervened; rounds q",
        "intervene": "intervened; q gives q+w+x; w intervened; rounds q",
        "nudge": "intervened; q gives q+w+Go on.; w intervened; rounds q",
        "enqueue": "waiting, then over; q gives q+w; w intervened; rounds q, x",
        "pause": "pauses; q waits; w intervened; rounds q open",
        "resume": "q gives q+w; w intervened; rounds q",
        "stop": "q raises RoundStopped; w missed; rounds q stopped",
        "wait_idle": "waits, then returns; q gives q+w; w intervened; rounds q",
    },
    "words wait for a step, paused": {
        "send": "waits, then gives x; resumes; q gives q+w; w intervened; rounds q, x",
        "communicate": "intervened; resumes; q gives q+w+x; w intervened; rounds q",
        "intervene": "intervened; resumes; q gives q+w+x; w intervened; rounds q",
        "nudge": "intervened; resumes; q gives q+w+Go on.; w intervened; rounds q",
        "enqueue": "waiting; stays paused; q waits; w intervened; rounds q open; in line x",
        "pause": "stays paused; q waits; w intervened; rounds q open",
        "resume": "resumes; q gives q+w; w intervened; rounds q",
        "stop": "resumes; q raises RoundStopped; w missed; rounds q stopped",
        "wait_idle": "waits; stays paused; q waits; w intervened; rounds q open",
    },
    "words wait for a turn": {
        "send": "waits, then gives x; q gives q+w@boss; w intervened; rounds q, x",
        "communicate": "intervened; q gives q+x+w@boss; w intervened; rounds q",
        "intervene": "intervened; q gives q+x+w@boss; w intervened; rounds q",
        "nudge": "intervened; q gives q+Go on.+w@boss; w intervened; rounds q",
        "enqueue": "waiting, then over; q gives q+w@boss; w intervened; rounds q, x",
        "pause": "pauses; q waits; w waiting; rounds q open",
        "resume": "q gives q+w@boss; w intervened; rounds q",
        "stop": "q raises RoundStopped; w missed; rounds q stopped",
        "wait_idle": "waits, then returns; q gives q+w@boss; w intervened; rounds q",
    },
    "a paused round is stopped": {
        "send": "waits, then gives x; q raises RoundStopped; rounds q stopped, x",
        "communicate": "waiting, then started; q raises RoundStopped; rounds q stopped, x",
        "intervene": "missed; q raises RoundStopped; rounds q stopped",
        "nudge": "missed; q raises RoundStopped; rounds q stopped",
        "enqueue": "waiting, then over; q raises RoundStopped; rounds q stopped, x",
        "pause": "q raises RoundStopped; rounds q stopped",
        "resume": "q raises RoundStopped; rounds q stopped",
        "stop": "q raises RoundStopped; rounds q stopped",
        "wait_idle": "waits, then returns; q raises RoundStopped; rounds q stopped",
    },
    "a send in line": {
        "send": "waits, then gives x; q gives q; s gives s; rounds q, s, x",
        "communicate": "intervened; q gives q+x; s gives s; rounds q, s",
        "intervene": "intervened; q gives q+x; s gives s; rounds q, s",
        "nudge": "intervened; q gives q+Go on.; s gives s; rounds q, s",
        "enqueue": "waiting, then over; q gives q; s gives s; rounds q, s, x",
        "pause": "pauses; q waits; s waits; rounds q open",
        "resume": "q gives q; s gives s; rounds q, s",
        "stop": "q raises RoundStopped; s raises RoundStopped; rounds q stopped",
        "wait_idle": "waits, then returns; q gives q; s gives s; rounds q, s",
    },
    "an enqueue in line": {
        "send": "waits, then gives x; q gives q; rounds q, e, x",
        "communicate": "intervened; q gives q+x; rounds q, e",
        "intervene": "intervened; q gives q+x; rounds q, e",
        "nudge": "intervened; q gives q+Go on.; rounds q, e",
        "enqueue": "waiting, then over; q gives q; rounds q, e, x",
        "pause": "pauses; q waits; rounds q open; in line e",
        "resume": "q gives q; rounds q, e",
        "stop": "q raises RoundStopped; rounds q stopped; in line e",
        "wait_idle": "waits, then returns; q gives q; rounds q, e",
    },
    "an enqueue in line, stopping": {
        "send": "waits, then gives x; q raises RoundStopped; rounds q stopped, e, x",
        "communicate": "waiting, then started; q raises RoundStopped; rounds q stopped, e, x",
        "intervene": "missed; q raises RoundStopped; rounds q stopped; in line e",
        "nudge": "missed; q raises RoundStopped; rounds q stopped; in line e",
        "enqueue": "waiting, then over; q raises RoundStopped; rounds q stopped, e, x",
        "pause": "q raises RoundStopped; rounds q stopped; in line e",
        "resume": "q raises RoundStopped; rounds q stopped; in line e",
        "stop": "q raises RoundStopped; rounds q stopped; in line e",
        "wait_idle": "waits, then returns; q raises RoundStopped; rounds q stopped; in line e",
    },
    "an enqueue held": {
        "send": "waits, then gives x; q raises RoundStopped; rounds q stopped, e, x",
        "communicate": "waiting, then started; q raises RoundStopped; rounds q stopped, e, x",
        "intervene": "missed; q raises RoundStopped; rounds q stopped; in line e",
        "nudge": "missed; q raises RoundStopped; rounds q stopped; in line e",
        "enqueue": "waiting, then over; q raises RoundStopped; rounds q stopped, e, x",
        "pause": "pauses; q raises RoundStopped; rounds q stopped; in line e",
        "resume": "q raises RoundStopped; rounds q stopped, e",
        "stop": "q raises RoundStopped; rounds q stopped; in line e",
        "wait_idle": "returns; q raises RoundStopped; rounds q stopped; in line e",
    },
}
"""For each situation in which another verb's work is not done yet, by verb: what is seen."""


@pytest.mark.parametrize(("verb", "state"), [(verb, state) for verb in TABLE for state in STATES])
async def test_a_verb_does_in_a_state_what_the_table_says(verb: str, state: str, autojump_clock: MockClock) -> None:
    assert await observe(verb, STATES[state]) == TABLE[verb][state][1]


@pytest.mark.parametrize(("verb", "situation"), [(verb, situation) for situation in UNDER_WAY for verb in TABLE])
async def test_a_verb_under_another_does_what_the_table_says(
    verb: str, situation: str, autojump_clock: MockClock
) -> None:
    assert await observe(verb, UNDER_WAY[situation]) == UNDER_WAY_TABLE[situation][verb]


def test_the_page_has_this_table() -> None:
    page = (ROOT / "docs" / "interruption.md").read_text(encoding="utf-8")
    header, _, *rows = re.findall(r"(?:^\|.*\|\n)+", page[page.index("## The verbs") :], re.MULTILINE)[0].splitlines()
    assert cells(header)[1:] == list(STATES)
    said = {re.findall(r"\w+(?=\()", verb)[0]: says for verb, *says in map(cells, rows)}
    assert said == {verb: [says for says, _ in by_state.values()] for verb, by_state in TABLE.items()}


def cells(row: str) -> list[str]:
    """The cells of a row of a table."""
    return [cell.strip() for cell in row.strip("|").split("|")]


async def observe(verb: str, prepare: Prepare) -> str:
    """Calls the verb in the situation; tells what it gave, and what has become of everything half a minute later."""
    async with scene_of(prepare) as scene:
        was_paused = scene.conversation.paused
        given: object = None
        try:
            given = VERBS[verb](scene)
        except CallboardError as error:
            scene.outcomes[verb] = f"raises {type(error).__name__}"
        await trio.sleep(0.01)
        parts = [waited(scene, verb), handle(given), gate(was_paused, scene.conversation.paused)]
        await trio.sleep(30)
        for place, later in enumerate([waited(scene, verb), handle(given)]):
            parts[place] += f", then {later}" if later != parts[place] else ""
        parts += [f"{name} {outcome}" for name, outcome in scene.outcomes.items() if name in ("q", "s")]
        parts += [f"w {scene.waiting.action}"] if scene.waiting is not None else []
        parts += [f"rounds {rounds(scene.conversation)}"]
        queue = " ".join(queued.message.message for queued in scene.conversation.queued())
        parts += [f"in line {queue}"] if queue else []
        scene.nursery.cancel_scope.cancel()
    return "; ".join(part for part in parts if part)


def waited(scene: Scene, verb: str) -> str:
    """What an async verb has come to by now, or a sync one if it raised."""
    return scene.outcomes.get(verb, "")


def gate(before: bool, after: bool) -> str:
    """What the call has done to the gate."""
    if before:
        return "stays paused" if after else "resumes"
    return "pauses" if after else ""


def handle(given: object) -> str:
    """How the handle that a verb gave looks now."""
    if isinstance(given, Receipt):
        return given.action
    return given.state if isinstance(given, Queued) else ""
