"""Experience folder: where a program keeps its lessons. One rule for what saves and for what reads."""

from __future__ import annotations

from pathlib import Path

HERE = Path("experience")
"""Within the folder that the program was started in."""


def experience_folder(named: Path | None = None) -> Path:
    """The folder that was named, or else `experience` in the current one, absolute; it need not be there."""
    return (named or HERE).absolute()
