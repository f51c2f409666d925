"""Printed: what code has printed: its beginning and its end in bounded memory, up to a marker.

The rule to know: the marker may come in pieces, so what may be the beginning of one waits for more.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

FLOOD = 64 * 2**20
"""Bytes that one run may print; then it is stopped."""


class Printed:
    """What one run prints. `on_output` is called with it as it comes, the first `most` bytes of it."""

    def __init__(self, marker: bytes, on_output: Callable[[str], None], most: int) -> None:
        if most < 1:
            raise ValueError(f"most_output is a number of bytes from 1 on, not {most!r}")
        self._marker = marker
        self._on_output = on_output
        self._most = most
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = b""
        self._head = b""
        self._tail = b""
        self.size = 0
        """Bytes."""
        self.complete = False
        """Whether the marker has come, or will not."""

    @property
    def flooded(self) -> bool:
        """Whether it is more than anybody may print."""
        return self.size > FLOOD

    @property
    def line_end(self) -> str:
        """What must come before a line of its own."""
        last = self._tail[-1:] or self._head[-1:]
        return "" if last in (b"", b"\n") else "\n"

    def tell(self, note: str) -> None:
        """Shows what the code has not printed."""
        self._show(note)

    def feed(self, data: bytes) -> None:
        """Takes what has come; what stands after the marker is dropped."""
        if self.complete:
            return
        data = self._waiting + data
        before, marker, _ = data.partition(self._marker)
        if marker:
            self._waiting = b""
            self._add(before)
            self.end()
            return
        kept = _overlap(data, self._marker)
        self._waiting = data[len(data) - kept :]
        self._add(data[: len(data) - kept])

    def end(self) -> None:
        """No more comes."""
        if self.complete:
            return
        rest, self._waiting = self._waiting, b""
        self._add(rest)
        self._show(self._decoder.decode(b"", final=True))
        self.complete = True

    def text(self) -> str:
        """The whole, or both ends of it and in their middle how many bytes were left out."""
        left_out = self.size - len(self._head) - len(self._tail)
        if not left_out:
            return (self._head + self._tail).decode(errors="replace")
        # Not in the middle of a character.
        head, tail = self._head.decode(errors="ignore"), self._tail.decode(errors="ignore")
        return f"{head}\n[{left_out} bytes left out]\n{tail}"

    def _add(self, data: bytes) -> None:
        if room := max(0, self._most - self.size):
            self._show(self._decoder.decode(data[:room]))
        self.size += len(data)
        half = self._most // 2 - len(self._head)
        self._head += data[:half]
        self._tail = (self._tail + data[half:])[-(self._most - self._most // 2) :]

    def _show(self, text: str) -> None:
        if text:
            self._on_output(text)


def _overlap(data: bytes, marker: bytes) -> int:
    """How many bytes at the end of the data may be the beginning of the marker."""
    longest = min(len(data), len(marker) - 1)
    return next((count for count in range(longest, 0, -1) if data.endswith(marker[:count])), 0)
