"""Leaks to plant: for each channel by which conversations might see each other, a structure that they come to share."""

import os
import pickle
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any

import pytest
import trio

from callboard.actors import CodeInterpreter, code_interpreter, kernel, role
from callboard.runtime import inspection, opening, receive_loop
from callboard.runtime.attempt_view import AttemptView
from callboard.runtime.background import Background
from callboard.runtime.board import Board
from callboard.runtime.conversation_life import ConversationLife
from callboard.runtime.dead_letters import DeadLetters
from callboard.runtime.directory import ConversationStatistics, Directory
from callboard.runtime.draft import Draft, Unfinished
from callboard.runtime.facilities import Facilities
from callboard.runtime.hosts import job
from callboard.runtime.ids import Ids
from callboard.runtime.inspection import Hook
from callboard.runtime.limits import Budget
from callboard.runtime.memory import Memory
from callboard.runtime.post import Post
from callboard.runtime.receipt import Words
from callboard.runtime.request import Request
from callboard.runtime.routes import Routes
from callboard.runtime.spoken import Spoken
from callboard.runtime.subscription import Publisher
from callboard.runtime.text import Text
from callboard.runtime.transcript import Transcript
from callboard.runtime.usage import Ledger
from callboard.runtime.user_message import UserMessage
from callboard.runtime.worker_process import WorkerCall

from . import in_worker, marks

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


def shares(owner: type, name: str) -> Plant:
    """An attribute that all instances share, with what the first of them made."""

    def plant(patch: Patch) -> None:
        made: Any = vars(owner)["__init__"]
        shared: list[Any] = []

        def init(self: Any, *arguments: Any, **options: Any) -> None:
            made(self, *arguments, **options)
            if not shared and getattr(self, name) is not None:
                shared.append(getattr(self, name))
            setattr(self, name, shared[0])

        patch.setattr(owner, "__init__", init)

    return plant


def joins(owner: type, name: str, join: Callable[[Any, list[Any]], Any]) -> Plant:
    """A method, or a property, that gives what it would for every instance there ever was, joined to its own."""

    def plant(patch: Patch) -> None:
        made: Any = vars(owner)["__init__"]
        instances: list[Any] = []
        member = getattr(owner, name)
        read: Any = member.fget if isinstance(member, property) else member

        def init(self: Any, *arguments: Any, **options: Any) -> None:
            made(self, *arguments, **options)
            instances.append(self)

        def joined(self: Any, *arguments: Any) -> Any:
            return join(read(self, *arguments), [read(one, *arguments) for one in instances if one is not self])

        patch.setattr(owner, "__init__", init)
        patch.setattr(owner, name, property(joined) if isinstance(member, property) else joined)

    return plant


def gathers(owner: Any, name: str, change: Callable[[Any, list[Any]], Any], place: int = 1) -> Plant:
    """A function, one of whose arguments becomes another, made of all that were given for it up to now."""

    def plant(patch: Patch) -> None:
        original = getattr(owner, name)
        given: list[Any] = []

        def gathered(*arguments: Any, **options: Any) -> Any:
            given.append(arguments[place])
            changed = change(arguments[place], given)
            return original(*arguments[:place], changed, *arguments[place + 1 :], **options)

        patch.setattr(owner, name, gathered)

    return plant


def with_messages(own: Any, given: list[Any]) -> Any:
    """A post, or the user's words, with what all of them say."""
    return replace(own, message=" ".join(one.message for one in given))


def with_all_rounds(own: Any, given: list[Any]) -> Any:
    """What a prompt is composed of, with the rounds of all of it."""
    return replace(own, rounds=tuple(chain.from_iterable(one.rounds for one in given)))


def with_system_messages(own: Any, given: list[Any]) -> Any:
    """The user's words, with what all that were given say, as if it were system messages."""
    said = tuple(one.message for one in given if isinstance(one, UserMessage))
    return replace(own, system_message=said) if isinstance(own, UserMessage) else own


def added(own: Any, others: list[Any]) -> Any:
    """All that it would give."""
    return reduce(add, others, own)


def with_rounds(own: Transcript, others: list[Transcript]) -> Transcript:
    """A transcript with the rounds of others."""
    return replace(own, rounds=(*own.rounds, *chain.from_iterable(other.rounds for other in others)))


def with_mailboxes(own: ConversationStatistics, others: list[ConversationStatistics]) -> ConversationStatistics:
    """Statistics with the mailboxes of others."""
    every = [own, *others]
    return replace(own, mailboxes={name: one for each in every for name, one in each.mailboxes.items()})


def with_text(own: Unfinished, others: list[Unfinished]) -> Unfinished:
    """What is left of a draft, with that of others."""
    return replace(own, text=Text("").join([own.text, *(other.text for other in others)]))


def one_context_for_turns(patch: Patch) -> None:
    """Turns run in the context variables of the first of them."""
    first: list[Context] = []
    original = receive_loop._enter

    async def enter(variables: Context) -> None:
        first.append(variables)
        await original(first[0])

    patch.setattr(receive_loop, "_enter", enter)


def one_context_for_threads(patch: Patch) -> None:
    """Threads run in one copy of the context variables."""
    original = trio.to_thread.run_sync
    first: list[Context] = []
    lock = threading.Lock()

    def run(function: Callable[..., Any], *arguments: Any) -> Any:
        first.append(copy_context())
        with lock:
            return first[0].run(function, *arguments)

    async def run_sync(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        return await original(run, function, *arguments, **options)

    patch.setattr(trio.to_thread, "run_sync", run_sync)


def one_context_for_hooks(patch: Patch) -> None:
    """The host's hook runs in the context variables of the first call."""
    first: list[Context] = []

    def inspected(hook: Hook | None) -> Callable[[Post], Post]:
        def inspect(post: Post) -> Post | None:
            first.append(copy_context())
            return first[0].run(hook, post) if hook is not None else None

        return inspection.inspection(inspect)

    patch.setattr(opening, "inspection", inspected)


def one_context_for_hosts(patch: Patch) -> None:
    """What hosts call in trio's thread runs with the context variables of the first call."""
    first: list[Context] = []

    def copy_first() -> Context:
        first.append(copy_context())
        return first[0].copy()

    patch.setattr(job, "copy_context", copy_first)


def one_state_for_lifetimes(patch: Patch) -> None:
    """What `live` gives is one list."""
    state: list[str] = []

    @asynccontextmanager
    async def live(self: object, context: object) -> AsyncIterator[list[str]]:
        yield state

    patch.setattr(marks.Root, "live", live)


def an_actor_that_keeps_what_it_hears(patch: Patch) -> None:
    """A role has it on the instance, which is everybody's."""
    heard: list[str] = []
    original = marks.Says.receive

    async def receive(self: Any, post: Post, context: Any) -> Post:
        heard.append(post.message)
        reply = await original(self, post, context)
        return replace(reply, message=" ".join([reply.message, *heard]))

    patch.setattr(marks.Says, "receive", receive)


def one_audience(patch: Patch) -> None:
    """What is published reaches the readers of every conversation."""
    original = Publisher.publish
    publishers: list[Publisher[Any]] = []
    made = Publisher.__init__

    def init(self: Publisher[Any]) -> None:
        made(self)
        publishers.append(self)

    def publish(self: Publisher[Any], item: Any) -> None:
        for one in publishers:
            original(one, item)

    patch.setattr(Publisher, "__init__", init)
    patch.setattr(Publisher, "publish", publish)


def one_stream(patch: Patch) -> None:
    """A draft's growth is that of all drafts."""
    gathers(AttemptView, "_draft_grew", lambda _, given: "".join(given))(patch)


def one_text_for_what_is_left(patch: Patch) -> None:
    """What is left in a draft is all that was ever written into any."""
    write, seal = Draft.write, Draft.seal
    written: list[str | Text] = []

    def write_down(self: Draft, text: str | Text) -> None:
        written.append(text)
        write(self, text)

    def left(self: Draft) -> Unfinished:
        own = seal(self)
        return replace(own, text=Text("").join(written)) if own else own

    patch.setattr(Draft, "write", write_down)
    patch.setattr(Draft, "seal", left)


def any_conversation(patch: Patch) -> None:
    """The board finds one, whatever the id."""
    patch.setattr(Board, "find", lambda self, id: next(iter(self._conversations.values())))


def a_source_of_ids_for_each(patch: Patch) -> None:
    """Each conversation counts for itself, in one and the same second."""
    original = Board._options_for

    def options_for(self: Board, id: str | None) -> Any:
        return replace(original(self, id), ids=Ids(lambda: 0))

    patch.setattr(Board, "_options_for", options_for)


def answers_of_any_round(patch: Patch) -> None:
    """The answer of a round says what all answers have said."""
    original = Request.unwrap
    given: list[Post] = []

    def unwrap(self: Request) -> Any:
        given.append(original(self))
        return with_messages(given[-1], given)

    patch.setattr(Request, "unwrap", unwrap)


LEAKS: dict[str, Plant] = {
    "posts": gathers(Spoken, "named", with_system_messages),
    "live state": one_state_for_lifetimes,
    "draft": joins(Draft, "text", added),
    "partial posts": one_text_for_what_is_left,
    "user's words": joins(Words, "read_by", lambda own, others: with_messages(own, [own, *others])),
    "memory": joins(Memory, "_rounds_of", lambda own, others: (*own, *chain.from_iterable(others))),
    "rounds of a role": joins(Memory, "role_rounds", added),
    "shared memory": joins(Memory, "shared_entries", added),
    "subordinates": joins(AttemptView, "subordinates", added),
    "asked role": an_actor_that_keeps_what_it_hears,
    "context variable of the host": one_context_for_turns,
    "context variable of a role": one_context_for_turns,
    "context variable of a tool's thread": one_context_for_threads,
    "question to the host": gathers(Facilities, "ask_user", with_messages),
    "model's request": gathers(role, "compose", with_all_rounds, place=0),
    "inspection": one_context_for_hooks,
    "usage": shares(Ledger, "_used"),
    "limits": shares(Budget, "_left"),
    "background report": gathers(Background, "start", with_messages),
    "reply": answers_of_any_round,
    "said under the same id": shares(Spoken, "_words"),
    "line": joins(Spoken, "queued", added),
    "receipt": shares(Words, "kept"),
    "transcript": joins(Memory, "transcript", with_rounds),
    "dead letters": shares(DeadLetters, "_letters"),
    "statistics": joins(Directory, "statistics", with_mailboxes),
    "events": one_audience,
    "replies": one_audience,
    "stream": one_stream,
    "find": any_conversation,
    "ids": a_source_of_ids_for_each,
}
"""By the channel in which it must show."""

DEED_LEAKS: dict[str, Plant] = {
    "pause": shares(Routes, "gate"),
    "stop": shares(ConversationLife, "_line"),
    "overdraw": shares(Budget, "_left"),
    "nudge": shares(ConversationLife, "_spoken"),
}
"""By what a host does to its conversation and another feels."""


def one_folder(patch: Patch, path: Path) -> None:
    """All conversations work in one folder."""

    @asynccontextmanager
    async def working_folder(parent: Path | None = None) -> AsyncIterator[Path]:
        yield path

    patch.setattr(code_interpreter, "working_folder", working_folder)


def one_place_in(name: str) -> Callable[[Patch, Path], None]:
    """What a variable of the environment points at is one place for all code."""

    def plant(patch: Patch, path: Path) -> None:
        original = kernel._environment
        place = path / name
        place.mkdir()

        def environment(folder: str, further: Mapping[str, str]) -> dict[str, str]:
            return original(folder, {**further, name: str(place)})

        patch.setattr(kernel, "_environment", environment)

    return plant


def no_process_for_workers(patch: Patch, path: Path) -> None:
    """What should run in a process of its own runs in this one; all that it may change is put back by the patch."""
    patch.chdir(os.getcwd())
    patch.setenv("LEFT_BEHIND", "")
    patch.setattr(tempfile, "tempdir", tempfile.tempdir)
    patch.setattr(sys, "path", [*sys.path])
    patch.setattr(in_worker, "kept", [])
    for number in range(2):
        patch.delitem(sys.modules, f"module_mark{number}x", raising=False)
        patch.setitem(sys.modules, f"module_mark{number}x", sys)
        del sys.modules[f"module_mark{number}x"]

    async def run(self: WorkerCall, report: object) -> Any:
        function, arguments, _ = pickle.loads(self._call)
        await trio.lowlevel.checkpoint()
        return function(**arguments)

    patch.setattr(WorkerCall, "run", run)


def an_interpreter_that_keeps_its_post(patch: Patch, path: Path) -> None:
    """It has it on the instance."""
    original = CodeInterpreter.receive

    async def receive(self: Any, post: Post, context: Any) -> Post:
        self.last = post.message
        return await original(self, post, context)

    patch.setattr(CodeInterpreter, "receive", receive)


PROCESS_LEAKS: dict[str, Callable[[Patch, Path], None]] = {
    "code in one folder": one_folder,
    "code with one HOME": one_place_in("HOME"),
    "code with one TMPDIR": one_place_in("TMPDIR"),
    "folders": one_folder,
    "workers": no_process_for_workers,
    "host": no_process_for_workers,
    "attributes": an_interpreter_that_keeps_its_post,
}
"""The first word is the channel in which it must show."""
