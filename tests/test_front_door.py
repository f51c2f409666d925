"""The front door of the runtime: short, complete, and listed here so that it changes on purpose only."""

import callboard
import callboard.runtime


def test_the_front_door_of_the_runtime_is_this() -> None:
    assert sorted(callboard.runtime.__all__) == [
        "Actor",
        "Attachment",
        "AttachmentType",
        "Board",
        "CallboardError",
        "ChatModel",
        "Conversation",
        "Limits",
        "Post",
        "Receipt",
        "RoleFailed",
        "Round",
        "SharedMemoryEntry",
        "Tool",
        "Transcript",
        "TurnContext",
        "UserMessage",
        "get_role_rounds",
        "get_shared_memory_entries",
        "open_conversation",
    ]


def test_everything_on_the_door_is_there_and_explained() -> None:
    for name in callboard.runtime.__all__:
        assert getattr(callboard.runtime, name).__doc__, name


def test_the_package_has_a_version() -> None:
    assert callboard.__version__.count(".") == 2
