"""Attachments know their types, and keep what they were given."""

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.json_value import FrozenMapping
from callboard.runtime.markers import END, START
from callboard.runtime.shared_memory import SharedMemoryEntry
from callboard.runtime.text import Span, temporal

NAMES = [
    "init_plan",
    "plan",
    "current_plan_step",
    "plan_reasoning",
    "stop",
    "thought",
    "reply_type",
    "reply_content",
    "verification",
    "code_error",
    "execution_status",
    "execution_result",
    "artifact_paths",
    "revise_message",
    "function",
    "web_exploring_plan",
    "web_exploring_screenshot",
    "web_exploring_link",
    "invalid_response",
    "text",
    "shared_memory_entry",
    "image_url",
]

ENTRY = SharedMemoryEntry.create("plan", "1. think", "round", "sme-1")


def test_there_are_22_types_and_each_is_its_own_name() -> None:
    assert {type_.name: type_.value for type_ in AttachmentType} == {name: name for name in NAMES}
    assert len(NAMES) == 22


def test_a_type_may_be_given_by_name() -> None:
    attachment = Attachment.create("plan", "1. think")
    assert attachment.type is AttachmentType.plan
    assert attachment.id.startswith("atta-")


def test_an_attachment_keeps_the_id_it_is_given() -> None:
    assert Attachment.create(AttachmentType.plan, "", "mine").id == "mine"


def test_an_unknown_type_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="'board' is no attachment type; there are init_plan, plan"):
        Attachment.create("board", "")


@pytest.mark.parametrize("name", ["python", "sample", "text"])
def test_a_retired_type_is_refused_with_what_to_write(name: str) -> None:
    hint = "reply_type with the content (python|text) and reply_content"
    with pytest.raises(ValueError, match=hint):
        Attachment.create(name, "print(1)")
    with pytest.raises(ValueError, match=hint):
        Attachment.from_dict({"type": name, "content": "print(1)"})


def test_text_cannot_be_had_past_create_either() -> None:
    with pytest.raises(ValueError, match="'text' are not taken any more"):
        Attachment("atta-1", AttachmentType.text, "")


def test_a_file_holds_an_attachment_under_four_keys() -> None:
    attachment = Attachment.create("plan", "1. think", "atta-1", {"a": [1]})
    assert list(attachment.to_dict().items()) == [
        ("id", "atta-1"),
        ("type", "plan"),
        ("content", "1. think"),
        ("extra", {"a": [1]}),
    ]
    assert type(attachment.to_dict()["type"]) is str


@pytest.mark.parametrize("extra", [None, 0, "x", [1, [2]], {"a": {"b": None}}])
def test_an_attachment_comes_back_from_its_dict(extra: Any) -> None:
    attachment = Attachment.create("plan", "1. think", extra=extra)
    assert Attachment.from_dict(attachment.to_dict()) == attachment


def test_id_and_extra_may_be_missing() -> None:
    attachment = Attachment.from_dict({"type": "plan", "content": "1. think"})
    assert attachment.id.startswith("atta-")
    assert attachment.extra is None


@pytest.mark.parametrize("key", ["type", "content"])
def test_type_and_content_may_not_be_missing(key: str) -> None:
    entry = {"type": "plan", "content": ""}
    del entry[key]
    with pytest.raises(KeyError, match=key):
        Attachment.from_dict(entry)


def test_the_extra_is_frozen() -> None:
    extra = {"a": [1]}
    attachment = Attachment.create("plan", "", extra=extra)
    extra["a"].append(2)
    assert isinstance(attachment.extra, FrozenMapping)
    assert attachment.extra == {"a": [1]}


def test_an_extra_that_is_no_json_is_refused() -> None:
    unfit: Any = {"a": object()}
    with pytest.raises(ValueError, match=r"extra\.a is of type object"):
        Attachment.create("plan", "", extra=unfit)


def test_a_shared_memory_entry_comes_back_as_one() -> None:
    attachment = Attachment.create("shared_memory_entry", "a note", extra=ENTRY)
    assert attachment.to_dict()["extra"] == ENTRY.to_dict()
    assert Attachment.from_dict(attachment.to_dict()).extra == ENTRY


@pytest.mark.parametrize("extra", [None, {}, "plan"])
def test_a_shared_memory_entry_without_its_entry_is_refused(extra: Any) -> None:
    with pytest.raises(ValueError, match="must be a SharedMemoryEntry"):
        Attachment.create("shared_memory_entry", "", extra=extra)


def test_an_entry_on_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match="extra is of type SharedMemoryEntry"):
        Attachment.create("plan", "", extra=ENTRY)


def test_artifact_paths_are_a_tuple_here_and_a_list_in_a_file() -> None:
    attachment = Attachment.create("artifact_paths", ["a.csv", "b.png"])
    assert attachment.content == ("a.csv", "b.png")
    assert attachment.to_dict()["content"] == ["a.csv", "b.png"]
    assert Attachment.from_dict(attachment.to_dict()) == attachment


def test_one_artifact_path_is_a_tuple_of_one() -> None:
    assert Attachment.create("artifact_paths", "a.csv").content == ("a.csv",)


@pytest.mark.parametrize("content", [["a"], 5, None])
def test_other_content_than_text_is_refused(content: Any) -> None:
    with pytest.raises(TypeError):
        Attachment.from_dict({"type": "plan", "content": content})


@pytest.mark.parametrize(("type_", "content"), [("plan", "\ud800"), ("artifact_paths", ["a", "\ud800"])])
def test_half_a_surrogate_pair_is_refused(type_: str, content: Any) -> None:
    with pytest.raises(ValueError, match="half a surrogate pair"):
        Attachment.create(type_, content)


def test_an_attachment_reads_as_its_type_and_content() -> None:
    assert str(Attachment.create("plan", "1. think")) == "PLAN: 1. think"
    assert str(Attachment.create("artifact_paths", ["a", "b"])) == "ARTIFACT_PATHS: a, b"


def test_an_attachment_cannot_be_changed() -> None:
    attachment: Any = Attachment.create("plan", "")
    with pytest.raises(FrozenInstanceError):
        attachment.content = "other"


BIG = "keep " + temporal("big")


def test_content_is_plain_and_its_temporal_parts_stand_beside() -> None:
    attachment = Attachment.create("plan", BIG, "atta-1")
    assert (attachment.content, attachment.temporal) == ("keep big", (Span(5, 8),))
    assert attachment.without_temporal() == Attachment.create("plan", "keep ", "atta-1")


def test_an_attachment_without_temporal_parts_is_shown_as_it_is() -> None:
    for attachment in (Attachment.create("plan", "big"), Attachment.create("artifact_paths", ["big"])):
        assert attachment.without_temporal() is attachment


def test_temporal_content_comes_back_from_its_dict_with_the_markers_round_it() -> None:
    attachment = Attachment.create("plan", BIG)
    entry = attachment.to_dict()
    assert entry["content"] == f"keep {START}big{END}"
    assert Attachment.from_dict(entry) == attachment
    del entry["temporal"]
    assert Attachment.from_dict(entry) == attachment


def test_markers_in_content_are_text_unless_a_file_of_others_holds_them() -> None:
    attachment = Attachment.create("plan", f"{START}big{END}")
    assert attachment.temporal == ()
    assert Attachment.from_dict(attachment.to_dict()) == attachment


@pytest.mark.parametrize("content", [[f"{START}a{END}"], f"{START}a{END}"])
def test_paths_have_no_temporal_parts_whatever_they_are_called(content: Any) -> None:
    attachment = Attachment.from_dict({"type": "artifact_paths", "content": content})
    assert (attachment.content, attachment.temporal) == ((f"{START}a{END}",), ())
    assert Attachment.from_dict(attachment.to_dict()) == attachment
    with pytest.raises(ValueError, match="temporal"):
        Attachment.from_dict({"type": "artifact_paths", "content": content, "temporal": [{"start": 0, "end": 63}]})
    with pytest.raises(ValueError, match="artifact_paths have no temporal parts"):
        Attachment.create("artifact_paths", BIG)


def test_temporal_parts_beyond_the_content_are_refused() -> None:
    with pytest.raises(ValueError, match="temporal parts of plan reach to 8, beyond the 4"):
        replace(Attachment.create("plan", BIG), content="keep")
