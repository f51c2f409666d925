"""TaskWeaver's own tests of memory, posts, attachments, rounds, conversations and temporal text, each as a line.

Where its code and its documents differ the line says what the documents promise; where both are at fault, what is
right, and the line says "not as there".
"""

from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio

from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import CallboardError, InvalidFile
from callboard.runtime.markers import END, START, marked, unmarked
from callboard.runtime.memory import get_role_rounds, get_shared_memory_entries
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Post
from callboard.runtime.round import Round
from callboard.runtime.shared_memory import EntryScope, SharedMemoryEntry
from callboard.runtime.text import Text, cut, temporal
from callboard.runtime.transcript import Transcript

from .test_conversation import Role

Step = Callable[[TurnContext], object]
EXAMPLE = """\
enabled: true
plugins: []
rounds:
  - user_query: count the rows
    state: finished
    post_list:
      - {message: count the rows, send_from: User, send_to: Planner, attachment_list: null}
      - message: 'hello {{DELIMITER_START_TEMPORAL}}big{{DELIMITER_END_TEMPORAL}}'
        send_from: Planner
        send_to: User
        attachment_list: [{type: plan, content: 1. count, extra: {note: kept}}]
"""


def rounds_of(reader: str) -> Sequence[Round]:
    """Three rounds in which a CodeInterpreter's posts end with a temporal part, as a role reads them in the third."""
    read: list[Sequence[Round]] = []

    async def code(post: Post, context: TurnContext) -> Post:
        return post.reply("result" + temporal(f" of {post.message}"))

    async def plan(post: Post, context: TurnContext) -> Post:
        await context.ask("CodeInterpreter", post.message)
        read.append(await get_role_rounds(context, reader))
        return post.reply()

    async def talk() -> None:
        async with open_conversation(Role("Planner", plan, Role("CodeInterpreter", code))) as conversation:
            for message in ("one", "two", "three"):
                await conversation.send(message)

    trio.run(talk)
    return read[-1]


def entries_after(*steps: Step | None, entry_type: Any = "plan", roles: Sequence[str] = ("P",) * 4) -> list[str]:
    """What is shared as the last of some rounds ends; each is a step, or None for one that shares and then fails."""
    read: list[list[str]] = []

    async def work(post: Post, context: TurnContext) -> Post:
        number = int(post.message)
        step = steps[number]
        if step is None:
            context.share("plan", "of a failed round", "conversation")
            raise ValueError
        if roles[number] == context.role:
            step(context)
        elif context.role == "P":
            await context.ask(roles[number], post.message)
        if context.role == "P":
            read.append([entry.content for entry in await get_shared_memory_entries(context, entry_type)])
        return post.reply()

    async def talk() -> None:
        async with open_conversation(Role("P", work, Role("Dummy", work))) as conversation:
            for number in range(len(steps)):
                try:
                    await conversation.send(str(number))
                except CallboardError:
                    assert steps[number] is None

    trio.run(talk)
    return read[-1]


def shares(content: str, scope: EntryScope = "conversation") -> Step:
    """The step in which a role shares a plan."""
    return lambda context: context.share("plan", content, scope)


def nothing(context: TurnContext) -> None:
    """The step in which a role shares nothing."""


def refused(make: Callable[[], object]) -> str:
    """What it is refused with."""
    with pytest.raises((ValueError, KeyError, TypeError, InvalidFile, FrozenInstanceError)) as caught:
        make()
    return type(caught.value).__name__


def loaded(text: str = EXAMPLE, *, again: bool = False) -> Transcript:
    """An example of TaskWeaver, from its file; `again`: saved and restored."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "example.yaml")
        path.write_text(text, encoding="utf-8")
        transcript = Transcript.from_yaml(path)
        if again:
            transcript.save(path)
            transcript = Transcript.restore_yaml(path)
        return transcript


def read(written: str) -> Text:
    """What a message of TaskWeaver's is here: < and > stand for its markers."""
    text = unmarked(written.replace("<", START).replace(">", END), {})
    return text if isinstance(text, Text) else Text(text)


def lasts(written: str) -> str:
    """What later rounds show of it."""
    text = read(written)
    return cut(text.string, text.spans).replace(START, "<").replace(END, ">")


def spoil(post: Any) -> None:
    post.message = "other"


def replies(reader: str) -> list[str]:
    """What the CodeInterpreter says in each round, as a role reads it."""
    return [post.message for one in rounds_of(reader) for post in one.post_list if post.send_from == "CodeInterpreter"]


ENTRY = SharedMemoryEntry.create("plan", "1. count", "round")
POST = Post.create("hello", "User", "Planner", [Attachment.create("plan", "1"), Attachment.create("thought", "t")])
BARE: dict[str, Any] = {"message": "hello", "send_from": "User", "send_to": "Planner", "attachment_list": []}
BIG = temporal("big")

MEMORY: dict[str, tuple[Callable[[], object], object]] = {
    "get_rounds: three rounds for the Planner": (lambda: len(rounds_of("Planner")), 3),
    "get_rounds: the first two without the temporal part": (lambda: replies("Planner")[:2], ["result", "result"]),
    "get_rounds: the last with it, and no markers": (lambda: replies("Planner")[2], "result of three"),
    "get_rounds: a returned post cannot be edited": (
        lambda: refused(lambda: spoil(rounds_of("Planner")[0].post_list[0])),
        "FrozenInstanceError",
    ),
    "get_rounds: only posts from and to the role": (
        lambda: [len(one.post_list) for one in rounds_of("CodeInterpreter")],
        [2, 2, 2],
    ),
    "get_rounds: a role that never spoke has empty rounds": (
        lambda: [len(one.post_list) for one in rounds_of("Nobody")],
        [0, 0, 0],
    ),
    "get_shared1: of three conversation entries the last": (
        lambda: entries_after(shares("1"), shares("2"), shares("3")),
        ["3"],
    ),
    "get_shared2: of three round entries the last": (
        lambda: entries_after(shares("1", "round"), shares("2", "round"), shares("3", "round")),
        ["3"],
    ),
    "get_shared3: a round entry of another role beside the conversation entry": (
        lambda: entries_after(shares("1"), shares("2", "round"), shares("3", "round"), roles=["P", "P", "Dummy"]),
        ["1", "3"],
    ),
    "test_role: a sub path for the conversation is there in the next round": (
        lambda: entries_after(
            lambda context: context.share("experience_sub_path", "sub_path", "conversation"),
            nothing,
            entry_type="experience_sub_path",
        ),
        ["sub_path"],
    ),
    "test_role: nothing shared, nothing there": (lambda: entries_after(nothing), []),
    "documents: entries of a failed round are dropped": (lambda: entries_after(shares("1"), None, nothing), ["1"]),
    "a round entry is gone in the next round": (lambda: entries_after(shares("1", "round"), nothing), []),
    "two entries in one round: the later": (
        lambda: entries_after(lambda context: (shares("1")(context), shares("2")(context))),
        ["2"],
    ),
}

TEMPORAL: dict[str, tuple[Callable[[], object], object]] = {
    "wrap: the exact text": (lambda: marked(BIG.string, BIG.spans)[0], f"{START}big{END}"),
    "remove_delimiter: the inverse": (lambda: read("<big>"), BIG),
    "remove_parts: nothing is left": (lambda: lasts("<big>"), ""),
    "remove_parts: the spaces around stay": (lambda: lasts("hello <big> world"), "hello  world"),
    "remove_all_delimiters": (lambda: read("hello <big> world").string, "hello big world"),
    "unmatched start: remove_parts leaves it": (lambda: lasts("x<a"), "x<a"),
    "unmatched start: it is text, not as there": (lambda: read("x<a"), Text(f"x{START}a")),
    "two parts": (lambda: lasts("x<a>y<b>z"), "xyz"),
    "unmatched end": (lambda: lasts("x>y"), "x>y"),
    "the wrong way round": (lambda: lasts("><"), "><"),
    "an end before": (lambda: lasts(">x<a>y"), ">xy"),
    "nothing within": (lambda: lasts("<>"), ""),
    "nested, not as there": (lambda: lasts("x<a<b>c>y"), "xy"),
    "unclosed before another, not as there": (lambda: lasts("x<a<b>y"), "x<ay"),
    "a user's markers hide nothing, not as there": (
        lambda: Post.restore(Post.create(f"{START}a{END}", "User").to_dict()).without_temporal().message,
        f"{START}a{END}",
    ),
    "an execution result is cleaned too, not as there": (
        lambda: Attachment.create("execution_result", "a" + BIG).without_temporal().content,
        "a",
    ),
}

POSTS: dict[str, tuple[Callable[[], object], object]] = {
    "there are 22 types": (lambda: len(AttachmentType), 22),
    "board is none of them": (lambda: refused(lambda: Attachment.create("board", "")), "ValueError"),
    "python is not loaded": (
        lambda: refused(lambda: Attachment.from_dict({"type": "python", "content": ""})),
        "ValueError",
    ),
    "an attachment keeps its id": (lambda: Attachment.from_dict({"type": "plan", "content": "", "id": "a"}).id, "a"),
    "an attachment gets an id": (lambda: Attachment.from_dict({"type": "plan", "content": ""}).id[:5], "atta-"),
    "an attachment reads as its type": (lambda: str(Attachment.create("plan", "1. count")), "PLAN: 1. count"),
    "the keys of an attachment": (
        lambda: list(Attachment.create("plan", "").to_dict()),
        ["id", "type", "content", "extra"],
    ),
    "an attachment needs its type": (lambda: refused(lambda: Attachment.from_dict({"content": ""})), "KeyError"),
    "a recipient not yet decided": (lambda: Post.create(None, "User").send_to, "Unknown"),
    "no message": (lambda: Post.create(None, "User").message, ""),
    "the first keys of a post": (
        lambda: list(POST.to_dict())[:5],
        ["id", "message", "send_from", "send_to", "attachment_list"],
    ),
    "a post from a dict is new": (lambda: Post.from_dict(POST.to_dict()).id == POST.id, False),
    "get_attachment": (lambda: [one.content for one in POST.get_attachment("plan")], ["1"]),
    "add_attachment": (lambda: len(POST.with_attachment(Attachment.create("plan", "2")).get_attachment("plan")), 2),
    "del_attachment": (
        lambda: [one.type.value for one in POST.without_attachments("plan").attachment_list],
        ["thought"],
    ),
    **{
        f"a post needs {key}": (
            partial(refused, partial(Post.from_dict, {name: BARE[name] for name in BARE if name != key})),
            "KeyError",
        )
        for key in BARE
    },
    "the keys of a round": (lambda: list(Round.create("").to_dict()), ["id", "user_query", "state", "post_list"]),
    "a new round is created": (lambda: Round.create("").state, "created"),
    "a state of one's own, not as there": (
        lambda: refused(lambda: Round.from_dict({"user_query": "", "state": "done", "post_list": []})),
        "ValueError",
    ),
    "a shared entry comes back as one, not as there": (
        lambda: Attachment.from_dict(Attachment.create("shared_memory_entry", "", extra=ENTRY).to_dict()).extra,
        ENTRY,
    ),
}

CONVERSATIONS: dict[str, tuple[Callable[[], object], object]] = {
    "an example loads": (lambda: [one.user_query for one in loaded().rounds], ["count the rows"]),
    "test_example: its roles are those of its posts": (lambda: set(loaded().roles), {"Planner", "User"}),
    "roles of the file do not count": (lambda: loaded(f"roles: [Other]\n{EXAMPLE}").roles, ("User", "Planner")),
    "not enabled": (lambda: loaded(EXAMPLE.replace("true", "false")).enabled, False),
    "enabled is needed": (lambda: refused(lambda: loaded(EXAMPLE.replace("enabled: true\n", ""))), "InvalidFile"),
    "rounds are needed": (lambda: refused(lambda: loaded("enabled: true")), "InvalidFile"),
    "User_query is none": (lambda: refused(lambda: loaded(EXAMPLE.replace("user_", "User_"))), "InvalidFile"),
    "the keys of a file": (lambda: list(loaded().to_dict()), ["id", "plugins", "roles", "enabled", "rounds"]),
    "an unknown key is kept, not as there": (
        lambda: loaded(f"version: 3\n{EXAMPLE}", again=True).extra,
        {"version": 3},
    ),
    "its markers are temporal text": (lambda: loaded().rounds[0].post_list[1].text, "hello " + BIG),
    "they still are when it is saved": (lambda: loaded(again=True).rounds[0].post_list[1].text, "hello " + BIG),
    "an extra is kept": (
        lambda: loaded(again=True).rounds[0].post_list[1].attachment_list[0].extra,
        {"note": "kept"},
    ),
}

LINES = {**MEMORY, **TEMPORAL, **POSTS, **CONVERSATIONS}


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_original_holds(line: str) -> None:
    find, wanted = LINES[line]
    assert find() == wanted
