"""Plain text: what anybody wrote, as lines that a terminal may show. The rule to know: no control character passes."""

from __future__ import annotations

from collections.abc import Iterator

WIDTH = 80


def plain(text: str) -> str:
    """The text with tabs as spaces, and written out what does not print: the escapes of a terminal above all."""
    return "".join(map(_shown, text.replace("\r\n", "\n").expandtabs(4)))


def fit(text: str, width: int) -> str:
    """The text on one line: its first line, and how many more there are, cut to a width."""
    first, *more = plain(text.strip()).split("\n")
    rest = f" (+{lines_in(more)})" if more else ""
    return _cut(first, width - len(rest)) + rest


def fit_lines(text: str, width: int) -> Iterator[str]:
    """Each line of the text, its indentation kept, cut to a width."""
    return (_cut(line.rstrip(), width) for line in plain(text.rstrip()).split("\n"))


def lines_in(lines: list[str]) -> str:
    """How many lines these are, in words."""
    return "nothing" if not lines else f"{len(lines)} line{'' if len(lines) == 1 else 's'}"


def _shown(character: str) -> str:
    if character.isprintable() or character == "\n":
        return character
    return character.encode("unicode_escape").decode()


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 3] + "..."
