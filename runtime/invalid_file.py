"""InvalidFile: the error of a file, or of data shaped like one, that cannot be read."""

from __future__ import annotations

from os import PathLike, fspath

from .callboard_error import CallboardError


class InvalidFile(CallboardError):
    """The file's fault: correct it where `path`, `line` and `key` point, as `remedy` says."""

    def __init__(
        self,
        message: str,
        *,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
        key: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = None if path is None else fspath(path)
        self.line = line
        self.key = key
        self.remedy = remedy

    def __str__(self) -> str:
        line = None if self.line is None else f"line {self.line}"
        place = ", ".join(part for part in (self.path, line, self.key) if part)
        text = f"{place}: {self.message}" if place else self.message
        return f"{text}; do: {self.remedy}" if self.remedy else text
