"""Text width: how many cells of a terminal a text takes, and texts cut and wrapped to so many."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import category, east_asian_width

_NO_CELL = ("Mn", "Me", "Cf")


def width_of(text: str) -> int:
    """The cells of a text without control characters."""
    return len(text) if text.isascii() else sum(map(cells, text))


def cells(character: str) -> int:
    """Two for a wide character, none for one that is set over the one before it, else one."""
    if character.isascii():
        return 1
    if category(character) in _NO_CELL:
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def end_within(text: str, width: int, start: int = 0) -> int:
    """Where the longest piece from `start` on ends that takes at most `width` cells."""
    for index in range(start, len(text)):
        width -= cells(text[index])
        if width < 0:
            return index
    return len(text)


def wrap_line(line: str, width: int) -> Iterator[str]:
    """One line in pieces of at most `width` cells, parted at spaces where there are any; its indentation is kept."""
    start = 0
    while True:
        end = max(end_within(line, width, start), start + 1)
        if end >= len(line):
            yield line[start:]
            return
        space = line.rfind(" ", start, end + 1)
        if not line[start:space].strip():
            space = -1
        yield line[start : end if space < 0 else space]
        start = end if space < 0 else space + 1
