"""Chat consoles: a person at a terminal, whose keys are read, and a pipe or a file, whose lines are."""

from __future__ import annotations

import codecs
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path

import trio

from callboard.actors.code_interpreter import CodeInterpreter
from callboard.actors.planner import Planner
from callboard.experience.experience import Experience
from callboard.runtime import ChatModel, Transcript

from .chat import Chat, Console, hold_chat
from .chat_screen import Line, PlainScreen, TerminalScreen
from .experience_folder import experience_folder
from .terminal import READ_SIZE, Terminal, is_terminal, open_terminal
from .terminal_keys import Key, KeyReader, Pressed

ESCAPE = 0.05
"""Seconds within which a sequence that has begun comes to its end, unless it is the key Escape."""


async def chat_with(
    model: AbstractAsyncContextManager[ChatModel],
    keep: Callable[[Transcript], None],
    *,
    level: int = 1,
    lessons: Path | None = None,
) -> int:
    """A chat over the program's own input and output with Planner and CodeInterpreter; as `hold_chat`.

    The two are given the lessons of the folder, if it is there.
    """
    folder = experience_folder(lessons)
    experience = Experience(folder) if folder.is_dir() else None
    async with model as entered:
        code = CodeInterpreter(entered, isolation="none", experience=experience)
        root = Planner(entered, subordinates=(code,), experience=experience)
        with open_console() as console:
            console.screen.say(
                Line(f"Planner and CodeInterpreter, with {entered.name}. /help lists the commands.", "dim")
            )
            return await hold_chat(root, console, keep, level=level, lessons=folder)


@contextmanager
def open_console() -> Iterator[Console]:
    """The terminal that the program was started in, or its input and output as lines."""
    if not is_terminal(0, 1):
        yield LinesConsole(_print)
        return
    with open_terminal() as terminal:
        console = TerminalConsole(terminal)
        try:
            yield console
        finally:
            console.screen.close()


def _print(text: str) -> None:
    print(text, flush=True)


class TerminalConsole:
    """A person at a terminal."""

    asks = True

    def __init__(self, terminal: Terminal) -> None:
        self.screen = TerminalScreen(terminal.write, lambda: terminal.size)
        self._terminal = terminal
        self._keys = KeyReader()

    async def read(self, chat: Chat) -> None:
        """Hands on each line that is typed, until the terminal has gone or Ctrl-D is pressed in an empty line."""
        self.screen.redraw()
        data = b""
        while not chat.scope.cancel_called:
            with trio.move_on_after(ESCAPE if self._keys.waits else float("inf")) as waiting:
                data = await self._terminal.read()
                if not data:
                    return chat.signalled(signal.SIGHUP)
            if waiting.cancelled_caught:
                self._keys.give_up()
                continue
            for key in self._keys.feed(data):
                if not chat.scope.cancel_called:
                    self._press(key, chat)
            self.screen.redraw()

    def changed(self, number: int) -> None:
        """Draws what is typed again, below what another program wrote while this one was stopped."""
        if number == signal.SIGCONT:
            self._terminal.enter()
            self.screen.restore()
        else:
            self.screen.redraw()

    def _press(self, key: Key, chat: Chat) -> None:
        editor = self.screen.editor
        match key:
            case Pressed("enter"):
                chat.hear(editor.take())
            case Pressed("interrupt"):
                chat.interrupt()
                return
            case Pressed("end of input") if not editor.text:
                chat.leave("Leaving.", 0)
            case Pressed("end of input"):
                editor.press(Pressed("delete"))
            case Pressed("suspend"):
                self._terminal.suspend()
            case Pressed("redraw"):
                self.screen.clear()
            case _:
                editor.press(key)
        chat.typed()


class LinesConsole:
    """A program, a file, or a terminal on which no cursor can be moved."""

    def __init__(self, write: Callable[[str], None], source: int = 0) -> None:
        self.screen = PlainScreen(write)
        self.asks = os.isatty(source)
        self._source = source

    async def read(self, chat: Chat) -> None:
        """Hands on each line, and when there are no more waits until the work is done."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        rest = ""
        while data := await self._read():
            *whole, rest = (rest + decoder.decode(data)).split("\n")
            for line in whole:
                chat.hear(line)
                # An /exit among the lines: what stands behind it is not heard.
                await trio.lowlevel.checkpoint()
        chat.hear(rest + decoder.decode(b"", final=True))
        await chat.wait_idle()

    def changed(self, number: int) -> None:
        """Nothing is drawn that could be drawn again."""

    async def _read(self) -> bytes:
        try:
            await trio.lowlevel.wait_readable(self._source)
        except PermissionError:  # a file: reading it never waits
            await trio.lowlevel.checkpoint()
        return os.read(self._source, READ_SIZE)
