"""What a model is shown of a saved conversation, and what counts as its lesson."""

import json
from pathlib import Path
from typing import Any

import pytest

from callboard.experience.summarizer import NAME, TEMPLATE, read_conversation, summarize
from callboard.prompts.library import Library, packaged
from callboard.runtime.errors import InvalidFile, ModelError
from callboard.runtime.scripted_model import Reply, ScriptedModel

from .lessons import write_raw


def shown(path: Path) -> dict[str, Any]:
    """What is shown of a file."""
    read: dict[str, Any] = json.loads(read_conversation(path.read_bytes()))
    return read


def test_rounds_are_shown_without_ids(tmp_path: Path) -> None:
    read = shown(write_raw(tmp_path, "a", "Sell tea."))
    assert list(read) == ["rounds"]
    (round_,) = read["rounds"]
    assert list(round_) == ["user_query", "state", "post_list"]
    assert list(round_["post_list"][0]) == ["message", "send_from", "send_to", "attachment_list"]


def test_what_the_user_corrected_stands_before_the_rounds(tmp_path: Path) -> None:
    read = shown(write_raw(tmp_path, "a", correction="Only of 2025!"))
    assert list(read) == ["corrections", "rounds"]
    assert read["corrections"] == ["Only of 2025!"]
    assert read["rounds"][0]["post_list"][1]["kind"] == "intervention"


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no rounds"), ("rounds: []", "no rounds"), ("- 1", "no rounds"), ("rounds: [2024-01-31]", "of type date")],
)
def test_what_is_no_conversation_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidFile, match=message):
        read_conversation(text.encode())


def test_the_packaged_prompt_asks_for_what_a_later_task_needs() -> None:
    text = packaged.render(TEMPLATE)
    for word in ("Errors and how they were resolved", "Preferences", "What the user corrected", "which role made it"):
        assert word in text
    assert packaged.find(TEMPLATE).slots == frozenset()


async def test_a_model_is_asked_once_and_its_text_is_the_lesson() -> None:
    model = ScriptedModel({NAME: [Reply(" Task: tea.\n", reasoning="hm")]})
    assert await summarize(model, packaged, '{"rounds": []}') == "Task: tea."
    (request,) = model.requests
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[1].content == '{"rounds": []}'


async def test_a_template_of_ones_own_replaces_the_prompt(tmp_path: Path) -> None:
    (tmp_path / f"{TEMPLATE}.md").write_text("Be brief.")
    model = ScriptedModel({NAME: ["Tea."]})
    await summarize(model, Library(tmp_path), "{}")
    assert model.requests[0].messages[0].content == "Be brief."


@pytest.mark.parametrize("reply", [Reply(" \n"), Reply("Task: te", reason="length")])
async def test_a_reply_that_is_empty_or_cut_off_is_no_lesson(reply: Reply) -> None:
    with pytest.raises(ModelError, match="the lesson of scripted is"):
        await summarize(ScriptedModel({NAME: [reply]}), packaged, "{}")
