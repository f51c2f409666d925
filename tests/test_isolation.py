"""Conversations never see each other, whatever the channel and the host; a leak in any channel is found."""

import gc
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import trio
from _pytest.mark import ParameterSet

from callboard.actors import CodeInterpreter
from callboard.runtime.actor import Actor
from callboard.runtime.board import Board
from callboard.runtime.chat_model import ChatRequest
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import CallboardError, RoleFailed
from callboard.runtime.limits import Limits
from callboard.runtime.nursery import open_nursery
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.scripted_model import ScriptedModel
from callboard.runtime.seeded_run import run_seeded
from callboard.runtime.tool import Tool

from . import in_worker
from .marks import (
    CHANNELS,
    LIMIT,
    MARK,
    ON_BOARDS,
    Meeting,
    Stage,
    Thinker,
    on_boards,
    over_blocking_host,
    over_trio_host,
)
from .model_server import HEAD, Exchange, model_at, piece, stop
from .planted_leaks import DEED_LEAKS, LEAKS, PROCESS_LEAKS, one_context_for_hosts
from .roles import Does, log, posts, step
from .test_code_interpreter import code


def slow(*values: object) -> ParameterSet:
    """A case that only the slow tests have."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(("conversations", "on"), [slow(2, 1), (12, 1), (2, 2), slow(7, 2), slow(100, 3)])
def test_conversations_on_boards_never_see_each_other(conversations: int, on: int) -> None:
    stage = Stage(conversations)
    on_boards(stage, on)
    assert stage.crossings(ON_BOARDS) == set()


@pytest.mark.parametrize("conversations", [2, slow(7), slow(40)])
@pytest.mark.parametrize("over", [over_trio_host, over_blocking_host])
def test_conversations_over_hosts_never_see_each_other(over: Callable[[Stage], None], conversations: int) -> None:
    stage = Stage(conversations)
    over(stage)
    assert stage.crossings(CHANNELS) == set()


@pytest.mark.slow
@pytest.mark.parametrize("channel", sorted(ON_BOARDS | {"ids"}))
def test_a_leak_in_any_channel_is_found(channel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    LEAKS[channel](monkeypatch)
    stage = Stage(2)
    on_boards(stage)
    assert channel in stage.crossings(ON_BOARDS)


@pytest.mark.slow
@pytest.mark.parametrize("over", [over_trio_host, over_blocking_host])
def test_a_leak_between_those_who_call_over_hosts_is_found(
    over: Callable[[Stage], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    one_context_for_hosts(monkeypatch)
    stage = Stage(2)
    over(stage)
    assert "context variable of the host" in stage.crossings(CHANNELS)


async def passes_on(post: Post, context: TurnContext) -> str:
    """Lets the worker do it."""
    return (await context.ask("worker", post.message)).message


async def works(post: Post, context: TurnContext) -> str:
    """Two steps of a second; or it fails, or goes over its limits."""
    if post.message == "fail":
        raise ValueError("as it was told")
    if post.message == "spend":
        context.spend(model_calls=100)
    context.spend(model_calls=1)
    await step(context, "one", 1)
    context.spend(model_calls=1)
    await step(context, "two", 1)
    return " ".join([post.message, *(said.message for said in context.user_words)])


async def fails(conversation: Conversation, message: str) -> None:
    """A round that ends badly."""
    with pytest.raises(RoleFailed):
        await conversation.send(message)


async def leaves(conversation: Conversation) -> None:
    """A host that gives its round up in the middle."""
    with trio.move_on_after(1.5):
        await conversation.send("work")


DEEDS: dict[str, Callable[[Conversation], object]] = {
    "pause": Conversation.pause,
    "stop": lambda conversation: conversation.stop("enough"),
    "intervene": lambda conversation: conversation.intervene("words", broadcast_level=-1),
    "intervene later": lambda conversation: conversation.intervene("words", delivery="after_step"),
    "nudge": Conversation.nudge,
    "enqueue": lambda conversation: [conversation.enqueue("work") for _ in range(3)],
    "close": Conversation.begin_closing,
    "take no more": Conversation.begin_draining,
    "fail": lambda conversation: fails(conversation, "fail"),
    "overdraw": lambda conversation: fails(conversation, "spend"),
    "leave": leaves,
}


def recorded_beside(deed: Callable[[Conversation], object]) -> list[str]:
    """What is recorded of a conversation, and when, while a host does this to another."""

    async def meddle(conversation: Conversation) -> None:
        done = deed(conversation)
        if isinstance(done, Awaitable):
            await done

    async def main() -> list[str]:
        root = Does("root", passes_on, Does("worker", works))
        async with Board(root, options=ConversationOptions(limits=Limits(replies=10, model_calls=50))) as board:
            theirs, ours = await board.start_conversation(), await board.start_conversation()
            started = [conversation.communicate("work") for conversation in (theirs, ours)][-1]
            await trio.sleep(0.5)
            async with open_nursery() as nursery:
                nursery.start_soon(meddle, theirs)
                await started.reply()
                await ours.send("more")
            return [f"{post.marks.at} {line}" for post, line in zip(posts(ours), log(ours), strict=True)]

    return run_seeded(main)


@pytest.mark.parametrize("deed", DEEDS)
def test_what_is_done_to_one_conversation_no_other_feels(deed: str) -> None:
    undisturbed = recorded_beside(lambda conversation: None)
    assert len(undisturbed) == 12
    assert recorded_beside(DEEDS[deed]) == undisturbed


@pytest.mark.parametrize("deed", DEED_LEAKS)
def test_a_deed_that_another_feels_is_found(deed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed: object = recorded_beside(lambda conversation: None)
    DEED_LEAKS[deed](monkeypatch)
    felt: object = None
    with suppress(CallboardError, trio.TooSlowError):
        felt = recorded_beside(DEEDS[deed])
    assert felt != undisturbed


# What is left behind in processes, folders and modules.

LEAVE = """
import os, pathlib, sys, tempfile
mark = "{mark}"
for folder in (os.getcwd(), os.environ["HOME"], tempfile.gettempdir()):
    pathlib.Path(folder, "left.txt").write_text(mark)
pathlib.Path("left_module.py").write_text(f"kept = [{{mark!r}}]")
import left_module
sys.modules["module_" + mark] = left_module
os.environ["LEFT_BEHIND"] = mark
os.chdir(tempfile.mkdtemp(suffix=mark))
sys.path.append(os.getcwd())
print("left", mark)
"""
LOOK = """
import os, pathlib, site, sys, tempfile
import left_module
print("module:", left_module.kept)
print("variables:", *os.environ.values(), "modules:", *sys.modules, "path:", *sys.path)
for folder in {{os.getcwd(), os.environ["HOME"], tempfile.gettempdir(), site.getusersitepackages()}}:
    for path in pathlib.Path(folder).rglob("*"):
        print(path, path.read_bytes() if path.is_file() else "")
print("folder:", os.environ["HOME"])
"""


class Pupil(Actor):
    """Lets the interpreter run code, all conversations at once, and calls a tool that runs in a worker process."""

    name = "Pupil"

    def __init__(self, meeting: Meeting, interpreter: CodeInterpreter, folder: Path) -> None:
        self.subordinates = (interpreter,)
        self.meeting = meeting
        self.folder = str(folder)
        self.tool = Tool(in_worker.look_and_leave, in_process=True)

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """What was seen, a line a channel."""
        await context.ask("CodeInterpreter", f"leave {post.message}")
        arguments = {"mark": post.message, "folder": self.folder}
        workers = [await context.call(self.tool, arguments)]
        await self.meeting.meet()
        looked = await context.ask("CodeInterpreter", f"look {post.message}")
        workers.append(await context.call(self.tool, arguments))
        return post.reply(json.dumps({"code": looked.message, "workers": " ".join(workers)}))


def codes(request: ChatRequest) -> str:
    """The code that leaves something behind, then the code that looks."""
    said = request.messages[-1].content
    program = LEAVE if "leave" in said else LOOK
    return code(program.format(mark=MARK.findall(said)[-1]))


@dataclass
class Left:
    """What conversations with processes saw of each other."""

    seen: dict[str, dict[str, str]]
    interpreter: CodeInterpreter
    before: str
    host: tuple[str, dict[str, str], set[str]]

    def crossings(self) -> set[str]:
        """The channels by which something was seen that should not be."""
        found = set()
        for mark, seen in self.seen.items():
            if {*MARK.findall(seen["code"])} != {mark}:
                found.add("code")
            if MARK.search(seen["workers"]):
                found.add("workers")
        folders = [line for seen in self.seen.values() for line in seen["code"].splitlines() if line[:7] == "folder:"]
        if len(set(folders)) != len(self.seen):
            found.add("folders")
        if (os.getcwd(), dict(os.environ)) != self.host[:2] or MARK.search(" ".join(set(sys.modules) - self.host[2])):
            found.add("host")
        return found | ({"attributes"} if state_of(self.interpreter) != self.before else set())


def with_processes(count: int, path: Path, *, stays: bool = False) -> Left:
    """So many conversations on a board, with one interpreter and one model."""
    model = ScriptedModel({"CodeInterpreter": [codes] * 2 * count})
    interpreter = CodeInterpreter(model, folder=path if stays else None, most_attempts=1, isolation="none")
    left = Left({}, interpreter, state_of(interpreter), host_state())

    async def host(board: Board, mark: str) -> None:
        async with board.open_conversation() as conversation:
            left.seen[mark] = json.loads((await conversation.send(mark)).message)

    async def main() -> None:
        with trio.fail_after(LIMIT):
            async with Board(Pupil(Meeting(count), interpreter, path)) as board, trio.open_nursery() as nursery:
                for number in range(count):
                    nursery.start_soon(host, board, f"mark{number}x")

    trio.run(main)
    return left


def state_of(actor: Actor) -> str:
    """What it keeps, but for how far its script has been played."""
    return re.sub("steps left.*?>", "", repr(vars(actor)))


def host_state() -> tuple[str, dict[str, str], set[str]]:
    """The folder, the variables and the modules of this process."""
    return os.getcwd(), dict(os.environ), set(sys.modules)


@pytest.mark.slow
@pytest.mark.parametrize("stays", [False, True], ids=["temporary", "in a folder that stays"])
def test_what_code_and_workers_leave_behind_no_other_finds(stays: bool, tmp_path: Path) -> None:
    assert with_processes(3, tmp_path, stays=stays).crossings() == set()


@pytest.mark.slow
@pytest.mark.parametrize("channel", PROCESS_LEAKS)
def test_a_leak_of_what_is_left_behind_is_found(channel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PROCESS_LEAKS[channel](monkeypatch, tmp_path)
    assert channel.split()[0] in with_processes(2, tmp_path).crossings()


# What is over leaves nothing behind in this process: what can be reached from the library's own modules is searched.


def reachable() -> Iterator[object]:
    """All that modules of callboard hold, classes and closures too, up to what other libraries hold."""
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "callboard"]
    others = {id(vars(module)) for name, module in list(sys.modules.items()) if module not in modules and module}
    look: list[object] = [vars(module) for module in modules]
    known = {id(one) for one in look} | others
    while look:
        one = look.pop()
        yield one
        for below in gc.get_referents(one):
            if id(below) not in known and not isinstance(below, ModuleType):
                known.add(id(below))
                look.append(below)


def held_by_modules() -> set[str]:
    """The marks in what can be reached, and the conversations."""
    found = {mark for one in reachable() if isinstance(one, str) for mark in MARK.findall(one)}
    return found | {type(one).__name__ for one in reachable() if isinstance(one, Conversation)}


@pytest.mark.slow
def test_what_is_over_is_held_by_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    on_boards(Stage(3), 2)
    over_trio_host(Stage(3))
    over_blocking_host(Stage(3))
    assert held_by_modules() == set()
    opened: list[Conversation | None] = []
    monkeypatch.setattr(Board, "find", lambda board, id: opened.append(board._conversations[id]))
    on_boards(Stage(1))
    assert held_by_modules() == {"Conversation", "mark0x"}


async def test_a_cookie_that_a_server_of_models_sets_is_not_sent_with_another_conversations_requests() -> None:
    async def answer(exchange: Exchange) -> None:
        mark = MARK.findall(str(exchange.body))[-1]
        await exchange.send(HEAD.replace("\r\n\r\n", f"\r\nSet-Cookie: session={mark}; Path=/\r\n\r\n"))
        await exchange.events(piece(mark), stop(), "[DONE]")
        await exchange.send("0\r\n\r\n")

    async with model_at(answer) as (model, server), Board(Thinker(model)) as board:
        for mark in ("mark0x", "mark1x"):
            async with board.open_conversation() as conversation:
                assert (await conversation.send(mark)).message == mark
        assert ["cookie" in request.head.lower() for request in server.requests] == [False, False]
