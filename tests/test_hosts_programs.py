"""Whole programs over a host: one that asyncio.run runs and somebody interrupts, and notebooks in a real kernel."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from .test_imports import ROOT

pytestmark = pytest.mark.slow
LIMIT = 30

CLERK = """
import trio
from callboard.runtime import Actor

class Clerk(Actor):
    name = "Clerk"
    cleaned_up = 0

    async def receive(self, post, context):
        context.draft.write("You said: ")
        if post.message == "wait" and not context.user_words:
            print("at work", flush=True)
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(0.05)
                self.cleaned_up += 1
        context.draft.write(" ".join([post.message, *(words.message for words in context.user_words)]))
        return post.reply(context.draft.take())

clerk = Clerk()
"""

PROGRAM = """
import asyncio
from callboard.runtime.hosts import TrioHost

async def main():
    async with TrioHost() as host, host.open_board(clerk, limit=2) as board:
        conversation = await board.start_conversation("a")
        async with conversation.stream("b") as reply:
            print("".join([piece async for piece in reply]))
        try:
            async with conversation.stream("wait") as reply:
                async for _ in reply:
                    pass
        finally:
            print("stopped", (await conversation.transcript()).rounds[-1].state, clerk.cleaned_up)
            print("drained", len((await board.drain(1)).stopped))

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_in_a_program_of_asyncio_stops_the_round_and_leaves_all_blocks() -> None:
    command = [sys.executable, "-u", "-W", "error", "-c", CLERK + PROGRAM]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, encoding="utf-8") as program:
        assert program.stdout is not None
        assert [program.stdout.readline() for _ in range(2)] == ["You said: b\n", "at work\n"]
        program.send_signal(signal.SIGINT)
        printed, errors = program.communicate(timeout=LIMIT)
    assert (printed, errors, program.returncode) == ("stopped stopped 1\ndrained 0\ninterrupted\n", "", 0)


class Notebook:
    """Cells, run one after another in a kernel of their own."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager = manager
        self._client = client

    def run(self, cell: str, *, interrupted: bool = False) -> str:
        """All that comes of a cell: what it prints, its value, the name of its error. `interrupted` as soon as its role
        is at work."""
        asked = self._client.execute(cell)
        said = ""
        while True:
            message = self._client.get_iopub_msg(timeout=LIMIT)
            match message["msg_type"], message["content"]:
                case "stream", {"text": text}:
                    said += text
                    if interrupted and "at work" in said:
                        interrupted = False
                        self.manager.interrupt_kernel()
                        # A kernel sees the interrupt of a cell that awaits when its loop next wakes.
                        self._client.kernel_info()
                case "execute_result", {"data": {"text/plain": text}}:
                    said += text
                case "error", {"ename": name}:
                    said += name
                case "status", {"execution_state": "idle"} if message["parent_header"].get("msg_id") == asked:
                    return said.replace("at work\n", "")


@pytest.fixture
def notebook() -> Iterator[Notebook]:
    """One whose first cell has defined the role."""
    pytest.importorskip("ipykernel", reason="needs the extra: pip install callboard[services]")
    start = pytest.importorskip("jupyter_client.manager", reason="needs the extra: pip install callboard[services]")
    manager, client = start.start_new_kernel(cwd=str(ROOT))
    try:
        notebook = Notebook(manager, client)
        assert notebook.run(CLERK) == ""
        yield notebook
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


OPEN = """
from contextlib import ExitStack
from callboard.runtime.hosts import BlockingHost
stack = ExitStack()
host = stack.enter_context(BlockingHost())
conversation = stack.enter_context(host.open_conversation(clerk))
"""
OPEN_ASYNC = """
from contextlib import AsyncExitStack
from callboard.runtime.hosts import TrioHost
stack = AsyncExitStack()
host = await stack.enter_async_context(TrioHost())
conversation = await stack.enter_async_context(host.open_conversation(clerk))
"""
THREADS = 'import threading; [one.name for one in threading.enumerate() if "callboard" in one.name]'


def test_a_notebook_holds_a_conversation_over_its_cells_and_an_interrupt_keeps_it_usable(notebook: Notebook) -> None:
    assert notebook.run(OPEN) == ""
    assert notebook.run("conversation.send('one').message") == "'You said: one'"
    assert notebook.run("conversation.send('wait')", interrupted=True) == "KeyboardInterrupt"
    assert notebook.run("clerk.cleaned_up, conversation.transcript().rounds[-1].state") == "(1, 'stopped')"
    stream = "with conversation.stream('{}') as reply:\n    print(''.join(reply))"
    assert notebook.run(stream.format("wait"), interrupted=True) == "KeyboardInterrupt"
    assert notebook.run(stream.format("two")) == "You said: two\n"
    notebook.run("started = conversation.communicate('wait')")
    assert notebook.run("print('at work'); started.reply()", interrupted=True) == "KeyboardInterrupt"
    notebook.run("receipt = conversation.intervene('x')")
    assert notebook.run("started.reply().message, clerk.cleaned_up") == "('You said: wait x', 3)"
    assert notebook.run("stack.close(); " + THREADS) == "[]"


def test_a_notebook_awaits_in_its_cells(notebook: Notebook) -> None:
    assert notebook.run(OPEN_ASYNC) == ""
    assert notebook.run("(await conversation.send('one')).message") == "'You said: one'"
    assert notebook.run("await conversation.send('wait')", interrupted=True) == "CancelledError"
    assert notebook.run("clerk.cleaned_up, (await conversation.transcript()).rounds[-1].state") == "(1, 'stopped')"
    stream = "async with conversation.stream('two') as reply:\n    print(''.join([piece async for piece in reply]))"
    assert notebook.run(stream) == "You said: two\n"
    assert notebook.run("await stack.aclose(); " + THREADS) == "[]"
