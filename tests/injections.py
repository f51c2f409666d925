"""What is injected at a moment: one entry for each way to interrupt."""

from collections.abc import Callable

from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import ConversationClosed, UnknownRole
from callboard.runtime.receipt import Delivery, Receipt
from callboard.runtime.testing import Inject, interrupt
from callboard.runtime.user_message import UserMessage

LEAVES = ("background", "worker", "w", "clerk", "outside", "started", "a")


def communicate(conversation: Conversation) -> list[Receipt]:
    """The verb that opens a round where it meets nobody."""
    try:
        return [conversation.communicate("x", broadcast_level=2)]
    except ConversationClosed:
        return []


def to_role(level: int) -> Inject:
    """An intervention at one role, wherever it stands, idle or not."""

    def inject(conversation: Conversation) -> list[Receipt]:
        for name in LEAVES:
            try:
                return [conversation.intervene("x", role=name, broadcast_level=level)]
            except UnknownRole:
                continue
        return []

    return inject


def one_id_twice(conversation: Conversation) -> list[Receipt]:
    """A host that tries again after a lost connection."""
    first = conversation.intervene(UserMessage("x", id="same"))
    again = conversation.intervene(UserMessage("y", id="same"))
    assert again is first
    return [first]


def refused_levels(conversation: Conversation) -> list[Receipt]:
    """Levels that are none change nothing."""
    for level in (0, True, 1.0, "1", None):
        try:
            conversation.intervene("x", broadcast_level=level)  # type: ignore[arg-type]  # what is refused here
        except ValueError:
            continue
        raise AssertionError(f"level {level!r} was taken")
    return []


def in_a_row(*levels: int) -> Callable[[Conversation], list[Receipt]]:
    """Several interventions in one step."""
    return lambda conversation: [conversation.intervene("x", broadcast_level=level) for level in levels]


def stop(conversation: Conversation) -> list[Receipt]:
    """The round ends."""
    conversation.stop("enough")
    return []


def interrupted_then_stopped(conversation: Conversation) -> list[Receipt]:
    """Words that are in a round which ends."""
    receipts = in_a_row(2)(conversation)
    conversation.stop("enough")
    return receipts


def stopped_then_spoken_to(conversation: Conversation) -> list[Receipt]:
    """Words that come while everything is being ended."""
    conversation.stop("enough")
    return [conversation.intervene("x", broadcast_level=-1), *communicate(conversation)]


def nudge(conversation: Conversation) -> list[Receipt]:
    """The active turns start again."""
    return [conversation.nudge()]


def pause(conversation: Conversation) -> list[Receipt]:
    """Everything stops at its boundary; the scenario goes on later."""
    conversation.pause()
    return []


def paused_and_spoken_to(conversation: Conversation) -> list[Receipt]:
    """Words end a pause."""
    conversation.pause()
    receipts = in_a_row(2)(conversation)
    conversation.resume()
    return receipts


def paused_and_stopped(conversation: Conversation) -> list[Receipt]:
    """So does a stop."""
    conversation.pause()
    conversation.stop("enough")
    return []


def delivered(*deliveries: Delivery, level: int = 1) -> Callable[[Conversation], list[Receipt]]:
    """Interventions in a row, each with its delivery."""
    return lambda conversation: [
        conversation.intervene(f"words {number}", broadcast_level=level, delivery=delivery)
        for number, delivery in enumerate(deliveries)
    ]


def waiting_then_stopped(conversation: Conversation) -> list[Receipt]:
    """Words that wait when the round is stopped."""
    receipts = delivered("after_step", "after_turn", level=2)(conversation)
    conversation.stop("enough")
    return receipts


def enqueue(conversation: Conversation) -> list[Receipt]:
    """A round more, for later."""
    conversation.enqueue("later")
    return []


INJECTIONS: dict[str, Inject] = {
    "level 1": interrupt(1),
    "level 2": interrupt(2),
    "level 3": interrupt(3),
    "level 10": interrupt(10),
    "level -1": interrupt(-1),
    "levels that are none": refused_levels,
    "1, 1": in_a_row(1, 1),
    "1, 2": in_a_row(1, 2),
    "2, 1": in_a_row(2, 1),
    "2, 3": in_a_row(2, 3),
    "communicate": communicate,
    "role": to_role(1),
    "role and above": to_role(2),
    "one id twice": one_id_twice,
    "after step": delivered("after_step"),
    "after step, 2": delivered("after_step", level=2),
    "after turn": delivered("after_turn"),
    "after turn, 2": delivered("after_turn", level=2),
    "after step, then now": delivered("after_step", "now", level=2),
    "after turn, then now": delivered("after_turn", "now"),
    "nudge": nudge,
    "pause": pause,
    "pause, then speak": paused_and_spoken_to,
    "pause, then stop": paused_and_stopped,
    "waiting, then stop": waiting_then_stopped,
    "enqueue": enqueue,
    "stop": stop,
    "2, then stop": interrupted_then_stopped,
    "stop, then speak": stopped_then_spoken_to,
}
