"""Terminal: the one that a program was started in, with each key handed on as it is pressed. POSIX only.

The rule to know: inside the block of `open_terminal` the terminal echoes nothing and makes no signals of keys; however
the block is left, it is as it was before.
"""

from __future__ import annotations

import os
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import trio

from .terminal_keys import PASTE_OFF, PASTE_ON

READ_SIZE = 65_536


def is_terminal(*descriptors: int) -> bool:
    """Whether all of them lead to a terminal on which a cursor can be moved."""
    return all(map(os.isatty, descriptors)) and os.environ.get("TERM", "dumb") != "dumb"


@contextmanager
def open_terminal(source: int = 0, sink: int = 1) -> Iterator[Terminal]:
    """The terminal behind two file descriptors. Raises OSError if they lead to none."""
    try:
        before = termios.tcgetattr(source)
    except termios.error as error:
        raise OSError(*error.args) from error
    terminal = Terminal(source, sink, before)
    terminal.enter()
    try:
        yield terminal
    finally:
        terminal.leave()


class Terminal:
    """Made by `open_terminal`. Sync but for `read`: what is written is written at once."""

    def __init__(self, source: int, sink: int, before: list[Any]) -> None:
        self._source = source
        self._sink = sink
        self._before = before

    @property
    def size(self) -> os.terminal_size:
        """Columns and rows; 80 and 24 for a terminal that does not know."""
        with suppress(OSError):
            size = os.get_terminal_size(self._sink)
            if size.columns and size.lines:
                return size
        return os.terminal_size((80, 24))

    async def read(self) -> bytes:
        """What was typed since, at least a byte; empty once the terminal has gone. Cancelled: nothing was taken."""
        await trio.lowlevel.wait_readable(self._source)
        try:
            return os.read(self._source, READ_SIZE)
        except OSError:  # the other side has closed
            return b""

    def write(self, text: str) -> None:
        """Writes all of it; nothing if the terminal has gone."""
        data = text.encode("utf-8", "backslashreplace")
        with suppress(OSError):
            while data:
                data = data[os.write(self._sink, data) :]

    def suspend(self) -> None:
        """Stops the program, as Ctrl-Z does; returns when it goes on."""
        self.leave()
        os.kill(0, signal.SIGTSTP)
        self.enter()

    def enter(self) -> None:
        """Takes the keys; once more after another program has used the terminal."""
        mode = list(self._before)
        mode[0] &= ~(termios.IXON | termios.ICRNL | termios.INLCR | termios.IGNCR | termios.ISTRIP)
        mode[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        mode[6] = [*mode[6]]
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        self._set(mode)
        self.write(PASTE_ON)

    def leave(self) -> None:
        """Gives the terminal back as it was."""
        self.write(PASTE_OFF)
        self._set(self._before)

    def _set(self, mode: list[Any]) -> None:
        # Not TCSADRAIN: a terminal whose output stands still would keep the program from ending.
        with suppress(termios.error):
            termios.tcsetattr(self._source, termios.TCSANOW, mode)
