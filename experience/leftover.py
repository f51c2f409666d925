"""Leftover: what a process that was killed in the middle of a write has left in a folder."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from time import time

from .reading import Check

_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.tmp")
_AGE = 3600.0
"""Seconds after which nobody is still writing."""


def remove_leftovers(folder: Path, check: Check) -> None:
    """Removes temporary files that are old. Nothing is raised: whatever stays harms nobody."""
    with suppress(OSError):
        for path in folder.iterdir():
            if _TEMPORARY.fullmatch(path.name):
                check()
                with suppress(OSError):
                    if path.stat().st_mtime < time() - _AGE:
                        path.unlink()
