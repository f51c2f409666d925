"""Chosen folder: the folder of a role's settings, or the one in it that shared memory has chosen for it."""

from __future__ import annotations

from pathlib import Path

from callboard.runtime.errors import InvalidFile
from callboard.runtime.transcript_file import FilePath

from .folder import resolve_folder


def chosen_folder(base: FilePath, sub_path: str = "") -> Path:
    """The folder, or the one at the sub path within it.

    Raises InvalidFile for one that is not there, and for a sub path that leads out of the folder.
    """
    folder = resolve_folder(base, sub_path)
    if not folder.is_dir():
        key = repr(sub_path) if sub_path else None
        raise InvalidFile("there is no such folder", path=base, key=key, remedy="make it, or name another")
    return folder
