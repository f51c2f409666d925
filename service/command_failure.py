"""Command failure: what a command could not do, and the exit codes for that."""

from __future__ import annotations

FAILED, UNUSABLE, INTERRUPTED = 1, 2, 130


class CommandFailed(Exception):
    """What a command could not do, in a line, and the exit code for that."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
