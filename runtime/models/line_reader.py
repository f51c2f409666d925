"""Lines and server-sent events out of bytes, however the network cut them.

The rule to know: only CR, LF and CRLF end a line. `str.splitlines`, and the readers built on it, also split at
U+2028, NEL and form feed, which may stand inside the JSON of an event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import BrokenStream

LINE_LIMIT = 1 << 20
"""Bytes that a line, and the data of an event, may have: a server cannot fill the memory."""

_BREAK = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = "\ufeff"


class LineReader:
    """Turns bytes into lines. A line comes as soon as its break is there; what follows the last break does not."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._begun = bytearray()
        self._after_return = False
        self._first = True

    def feed(self, data: bytes) -> Iterator[str]:
        """The lines that these bytes complete, without their breaks; read them all before the next `feed`.

        Raises BrokenStream for a line that is too long or no UTF-8, after the lines before it.
        """
        if not data:
            return
        if self._after_return:
            data = data.removeprefix(b"\n")
        self._after_return = data.endswith(b"\r")
        start = 0
        for found in _BREAK.finditer(data):
            self._extend(data[start : found.start()])
            start = found.end()
            yield self._line()
        self._extend(data[start:])

    def _extend(self, data: bytes) -> None:
        self._begun += data
        if len(self._begun) > self._limit:
            raise BrokenStream(
                f"the server sent a line of more than {self._limit} bytes", fault="server", may_retry=False
            )

    def _line(self) -> str:
        try:
            line = self._begun.decode()
        except UnicodeDecodeError as error:
            raise BrokenStream("the server sent a line that is no UTF-8", fault="server", may_retry=False) from error
        self._begun.clear()
        if self._first:
            self._first = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        return line


class EventReader:
    """Turns bytes into the data of server-sent events; an event comes with the empty line that ends it."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._lines = LineReader(limit)
        self._data: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[str]:
        """The data of the events that these bytes complete; read them all before the next `feed`.

        Comments and the fields beside `data` are left out. Raises BrokenStream as LineReader, and for too much data.
        """
        for line in self._lines.feed(data):
            name, _, text = line.partition(":")
            if name == "data":
                self._append(text.removeprefix(" "))
            elif not line and self._data:
                yield self._event()

    def _append(self, text: str) -> None:
        self._data.append(text)
        self._size += len(text) + 1
        if self._size > self._limit:
            raise BrokenStream(
                f"the server sent an event of more than {self._limit} characters", fault="server", may_retry=False
            )

    def _event(self) -> str:
        data = "\n".join(self._data)
        self._data.clear()
        self._size = 0
        return data
