"""Kernel link: the process of a kernel as its host sees it: how it is started, what is read of it, how it is signalled.

The rule to know: what a kernel says is data. A line that is no reply, or too long, ends the link, as the end of the
process does. Reading may be cancelled at any time and gone on with; nothing that has come is lost.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import trio

from callboard.runtime.ladder import kill_process, wait_ended
from callboard.runtime.nursery import open_nursery
from callboard.runtime.process_group import Order, ProcessGroup

from .printed import Printed
from .sandbox import find_inside

_LONGEST_REPLY = 10_000
_PIECE = 65_536

# Seconds for what is still in the pipes once the process has ended, and for a request to be taken.
_LAST_OUTPUT = 0.5
_TAKEN = 5.0


class KernelFailed(RuntimeError):
    """A kernel's process could not be started; what it said is in the message."""


class KernelLink:
    """One process, its pipes, and the reply to the request under way."""

    def __init__(
        self, command: list[str], setup: Mapping[str, Any], folder: str, environment: Mapping[str, str]
    ) -> None:
        """Starts it. Sync, in the caller's thread: the system ends the process with the thread that started it."""
        reading, writing = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*command, json.dumps({**setup, "replies": writing})],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=True,
                pass_fds=(writing,),
                bufsize=0,
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        self._requests = trio.lowlevel.FdStream(os.dup(process.stdin.fileno()))
        self._output = trio.lowlevel.FdStream(os.dup(process.stdout.fileno()))
        self._replies = trio.lowlevel.FdStream(reading)
        process.stdin.close()
        process.stdout.close()
        self._received = bytearray()
        self._inside: int | None = None
        self.reply: dict[str, Any] | None = None
        """What the kernel has replied to the latest request."""
        self.broken = False
        """Whether it has said what is no reply, or can say nothing more."""

    @property
    def ended(self) -> bool:
        """Whether the process has."""
        return ProcessGroup(self._process).ended

    @property
    def exit_code(self) -> int | None:
        """As `subprocess` has it; None before it was reaped. bubblewrap says 128 and the number for a signal."""
        return self._process.returncode

    def find(self) -> None:
        """Learns which process the kernel is, which has just told its number."""
        told = self.reply.get("pid") if self.reply else None
        if isinstance(told, int) and told != self._process.pid:
            self._inside = find_inside(self._process.pid, told)

    async def send(self, request: Mapping[str, Any]) -> bool:
        """Whether the kernel has taken the request, whose reply `read_reply` reads next.

        Cancelled: it is sent all the same, shielded, within five seconds, since a part of it would be none.
        """
        self.reply = None
        with trio.move_on_after(_TAKEN, shield=True), suppress(trio.BrokenResourceError):
            await self._requests.send_all(json.dumps(request).encode() + b"\n")
            return True
        return False

    async def read(self, printed: Printed) -> None:
        """Returns once the reply and all that was printed before it are there, the process has ended, or it floods.

        Cancelled: it may be called again. An error of `on_output` comes out.
        """
        async with open_nursery() as around:
            around.start_soon(self._end_after, around.cancel_scope)
            async with open_nursery() as reading:
                reading.start_soon(self._read_reply, around.cancel_scope)
                reading.start_soon(self._read_output, printed, around.cancel_scope)
            around.cancel_scope.cancel(reason="all has been read")

    def signal(self, order: Order) -> None:
        """One signal to the kernel and to what it has started in its group."""
        if not self.ended:
            number = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}[order]
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._inside or self._process.pid, number)

    async def climb(self, printed: Printed, ladder: float) -> bool:
        """Ends the code under way. Whether the code has ended and its process has not."""
        # Again, because what waits for a program that it runs may have ignored the first, such as os.system.
        rungs: tuple[tuple[Order, float], ...] = (
            ("interrupt", ladder / 2),
            ("interrupt", ladder / 2),
            ("terminate", ladder),
        )
        for order, seconds in rungs:
            if self.reply is None:
                self.signal(order)
            with trio.move_on_after(seconds):
                await self.read(printed)
            if self.reply is not None and printed.complete:
                # Code that was about to start a program may have started it after the signal, and knows nothing of it.
                self.signal("interrupt")
                return True
            if self.ended or self.broken:
                return False
        return False

    async def close(self) -> None:
        """Kills the process with all that it has started, shielded. Raises TimeoutError if one outlives SIGKILL."""
        try:
            await kill_process(self._process)
        finally:
            for stream in (self._requests, self._output, self._replies):
                stream.close()

    async def _read_reply(self, scope: trio.CancelScope) -> None:
        while self.reply is None and not self.broken:
            line, found, rest = self._received.partition(b"\n")
            if found:
                self._received = rest
                self._take(bytes(line))
                continue
            data = await self._replies.receive_some(_PIECE)
            self._received += data
            self.broken = not data or len(self._received) > _LONGEST_REPLY
        if self.broken:
            # The marker may never come, and the process may go on.
            scope.deadline = trio.current_time() + _LAST_OUTPUT

    def _take(self, line: bytes) -> None:
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            reply = None
        if isinstance(reply, dict):
            self.reply = reply
        else:
            self.broken = True

    async def _read_output(self, printed: Printed, scope: trio.CancelScope) -> None:
        while not printed.complete:
            data = await self._output.receive_some(_PIECE)
            flooded = printed.flooded
            if data:
                printed.feed(data)
            else:
                printed.end()
            if printed.flooded and not flooded:
                scope.cancel(reason="it prints too much")

    async def _end_after(self, scope: trio.CancelScope) -> None:
        """A process that the kernel forked may hold its pipes open for ever."""
        await wait_ended(self._process)
        scope.deadline = trio.current_time() + _LAST_OUTPUT
