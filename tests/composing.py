"""Posts written in short, any posts there may be, and what it means that messages extend those of an earlier call."""

from collections.abc import Sequence

from hypothesis import strategies as st

from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.chat_model import Message
from callboard.runtime.post import Kind, Marks, Post, State


def at(type: str, content: str | Sequence[str]) -> Attachment:
    """An attachment."""
    return Attachment.create(type, content)


def post(route: str, message: str = "", *attachments: Attachment, **marks: object) -> Post:
    """A post whose route is written `from > to`."""
    sender, recipient = route.split(" > ")
    return Post.create(message, sender, recipient, attachments, marks=Marks(**marks))  # type: ignore[arg-type]  # short


ROUTES = st.sampled_from(["User > Planner", "Planner > Worker", "Worker > Planner", "Planner > Planner", "A > B"])
KINDS: st.SearchStrategy[Kind] = st.sampled_from(
    ["message", "question", "reply", "error", "note", "intervention", "nudge"]
)
STATES: st.SearchStrategy[State] = st.sampled_from(["whole", "partial", "not_started", "late"])
TYPES = st.sampled_from(sorted(set(AttachmentType) - {AttachmentType.text, AttachmentType.shared_memory_entry}))
CONTENTS = st.sampled_from(["", "x", "y\nz", "data:image/png;base64,iVBO"])
POSTS = st.builds(
    lambda route, message, attachments, kind, state, answers: post(
        route, message, *attachments, kind=kind, state=state, in_reply_to=answers
    ),
    ROUTES,
    st.sampled_from(["", "hi"]),
    st.lists(st.builds(at, TYPES, CONTENTS), max_size=3),
    KINDS,
    STATES,
    st.sampled_from([None, "post-1"]),
)


def extends(later: Sequence[Message], earlier: Sequence[Message]) -> bool:
    """Whether the later messages begin with the earlier ones."""
    return tuple(later[: len(earlier)]) == tuple(earlier)


def continues(later: Sequence[Message], earlier: Sequence[Message]) -> bool:
    """The same of merged messages: their flattened text begins with the earlier one, and so do their parts."""
    return _text(later).startswith(_text(earlier)) and _parts(later)[: len(_parts(earlier))] == _parts(earlier)


def _text(messages: Sequence[Message]) -> str:
    return "".join(f"\0{message.role}\0{message.content}" for message in messages)


def _parts(messages: Sequence[Message]) -> list[object]:
    return [part for message in messages for part in message.parts]
