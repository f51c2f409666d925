"""Summarizer: the lesson that a model draws from a saved conversation.

The rule to know: of the file only the rounds are shown, as JSON and without ids; what the user said in the middle of
the work stands before them too, since that is where the roles went wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from callboard.prompts.library import Library
from callboard.runtime.chat_model import ChatModel, ChatRequest, EndDelta, Message, TextDelta
from callboard.runtime.errors import InvalidFile, ModelError
from callboard.runtime.json_value import freeze, thaw
from callboard.runtime.transcript_file import line_of, parse

from .lesson_file import decode

NAME = "LessonSummarizer"
"""Under which the model is asked, such as for a ScriptedModel."""
TEMPLATE = "lesson_summarizer"

_CUT_OFF = "length"
_UNSAID = frozenset({"id", "in_reply_to", "words", "at"})
"""Keys that only tell posts apart."""


def read_conversation(data: bytes) -> str:
    """What a model is shown of a `raw_exp_{id}.yaml`. Raises InvalidFile, with line and key."""
    text = decode(data)
    content = parse(text)
    rounds = content.get("rounds") if isinstance(content, dict) else None
    if not isinstance(rounds, list) or not rounds:
        remedy = "save a conversation there, or remove the file"
        raise InvalidFile("there are no rounds of a conversation", line=1, key="rounds", remedy=remedy)
    try:
        frozen = thaw(freeze(_without_ids(rounds), "rounds"))
    except ValueError as error:
        line = line_of(text, ("rounds",))
        raise InvalidFile(str(error), line=line, key="rounds", remedy="write it as text") from error
    corrections = list(_corrections(frozen))
    shown = {"corrections": corrections, "rounds": frozen} if corrections else {"rounds": frozen}
    return json.dumps(shown, ensure_ascii=False)


async def summarize(model: ChatModel, library: Library, conversation: str) -> str:
    """The lesson of what `read_conversation` gave.

    Cancelled: the model's call is ended at once. Raises ModelError, also for a reply that is empty or was cut off.
    """
    messages = (Message("system", library.render(TEMPLATE)), Message("user", conversation))
    pieces: list[str] = []
    ended = ""
    async with model.stream(ChatRequest(NAME, messages)) as deltas:
        async for delta in deltas:
            match delta:
                case TextDelta(text):
                    pieces.append(text)
                case EndDelta(reason):
                    ended = reason
    lesson = "".join(pieces).strip()
    if not lesson or ended == _CUT_OFF:
        what = "is longer than its limit of tokens" if lesson else "is empty"
        raise ModelError(f"the lesson of {model.name} {what}", fault="caller", may_retry=False)
    return lesson


def _without_ids(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_ids(item) for key, item in value.items() if key not in _UNSAID}
    return [_without_ids(item) for item in value] if isinstance(value, list) else value


def _corrections(rounds: Iterable[object]) -> Iterable[Any]:
    """What the user said in the middle of the work."""
    for round_ in rounds:
        posts = round_.get("post_list") if isinstance(round_, Mapping) else None
        for post in posts if isinstance(posts, list) else ():
            if isinstance(post, Mapping) and post.get("kind") == "intervention":
                yield post.get("message")
