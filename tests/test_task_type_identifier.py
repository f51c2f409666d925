"""TaskTypeIdentifier: how the type of a task is found, and what is published of it."""

import json
from collections.abc import Mapping

import pytest
import trio
from trio.testing import MockClock

from callboard.actors import TaskTypeIdentifier
from callboard.runtime.errors import RoleFailed
from callboard.runtime.json_value import thaw
from callboard.runtime.opening import open_conversation
from callboard.runtime.scripted_model import Reply, ScriptedModel
from callboard.runtime.shared_memory import SharedMemoryEntry
from callboard.runtime.transcript import Transcript

TYPES: Mapping[str, str] = {"plots": "drawing charts", "tables": "joining tables"}


def chosen(transcript: Transcript) -> list[tuple[str, str, str]]:
    """The types, scopes and contents of what was shared."""
    extras = (a.extra for r in transcript.rounds for post in r.post_list for a in post.attachment_list)
    return [(one.type, one.scope, one.content) for one in extras if isinstance(one, SharedMemoryEntry)]


def said(type: str) -> str:
    return json.dumps({"response": {"message": type}})


async def identified(role: TaskTypeIdentifier, message: str) -> tuple[str, str]:
    """The answer, and the sub path that was published for the conversation."""
    async with open_conversation(role) as conversation:
        answer = (await conversation.send(message)).message
        (lessons, examples) = chosen(conversation.transcript())
    assert lessons[:2] == ("experience_sub_path", "conversation")
    assert examples == ("example_sub_path", *lessons[1:])
    return answer, lessons[2]


@pytest.mark.parametrize(
    ("message", "type"),
    [
        ("Draw a chart.", "plots"),
        ("Draw a CHART of tables", "plots"),
        ("the chart table please", "tables"),
        ("charts", ""),
        ("uncharted", ""),
    ],
)
async def test_a_table_has_the_type_of_the_longest_phrase_that_stands_in_the_words(message: str, type: str) -> None:
    role = TaskTypeIdentifier(table={"chart": "plots", "chart table": "tables", "x.y": "x"})
    answer, sub_path = await identified(role, message)
    assert sub_path == type
    assert answer == (f"The task is of the type {type}." if type else "The task is of no type that is known.")


async def test_a_rule_is_asked_before_the_table_and_the_table_before_the_model() -> None:
    model = ScriptedModel({"TaskTypeIdentifier": [said("plots")]})
    rule = {"by rule": "a"}.get
    role = TaskTypeIdentifier(model, types=TYPES, table={"by rule": "b", "table": "b"}, rule=rule)
    assert [(await identified(role, words))[1] for words in ("by rule", "by table", "else")] == ["a", "b", "plots"]
    assert len(model.requests) == 1


async def test_a_model_chooses_among_the_types_and_is_asked_again_for_another() -> None:
    with ScriptedModel({"TaskTypeIdentifier": [said("charts"), said(" plots ")]}) as model:
        assert (await identified(TaskTypeIdentifier(model, types=TYPES), "Draw."))[1] == "plots"
    system, asked = model.requests[0].messages
    assert "- `plots`: drawing charts\n- `tables`: joining tables\n- `none`" in system.content
    assert asked.content == '{"user_message": "Draw."}'
    assert "must be one of plots, tables, none" in model.requests[1].messages[-1].content
    schema = model.requests[0].schema
    assert schema is not None
    assert '"enum": ["plots", "tables", "none"]' in json.dumps(thaw(schema.schema))


async def test_a_model_may_say_that_a_task_is_of_no_type() -> None:
    with ScriptedModel({"TaskTypeIdentifier": [said("none")]}) as model:
        assert (await identified(TaskTypeIdentifier(model, types=TYPES), "Sing."))[1] == ""


async def test_a_model_that_never_chooses_fails_the_role_and_nothing_is_published() -> None:
    model = ScriptedModel({"TaskTypeIdentifier": [said(str(number)) for number in range(4)]})
    async with open_conversation(TaskTypeIdentifier(model, types=TYPES)) as conversation:
        with pytest.raises(RoleFailed, match="must be one of"):
            await conversation.send("Draw.")
        assert not chosen(conversation.transcript())


async def test_the_users_words_in_the_middle_of_it_count(autojump_clock: MockClock) -> None:
    model = ScriptedModel({"TaskTypeIdentifier": [Reply(said("plots"), delay=2)]})
    role = TaskTypeIdentifier(model, types=TYPES, table={"join": "tables"})
    async with open_conversation(role) as conversation:
        started = conversation.communicate("Draw.")
        await trio.sleep(1)
        conversation.intervene("No, join them.")
        await started.reply()
        assert {content for _, _, content in chosen(conversation.transcript())} == {"tables"}


def test_an_identifier_that_could_find_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="give one of them"):
        TaskTypeIdentifier()
    with pytest.raises(ValueError, match="needs types"):
        TaskTypeIdentifier(ScriptedModel({}))
