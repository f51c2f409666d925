"""Folder: where lessons and examples are kept, and the sub-folder of it that a role or a model may choose.

The rule to know: what is chosen is resolved, links and all, and refused if it does not lie within the folder.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path, PurePosixPath, PureWindowsPath

from callboard.runtime.errors import InvalidFile

_REMEDY = "name a folder that lies within it, such as sales/2025"


def resolve_folder(base: str | PathLike[str], sub_path: str | None = None) -> Path:
    """The folder `sub_path` within `base`, resolved, or `base` itself without one; it need not be there yet.

    Raises InvalidFile for an absolute path, for `..`, and for a link that leads out of `base`: the sub path may come
    from a model. What is absolute or a way up on Windows is so here too, that a folder of data means the same anywhere.
    """
    try:
        root = Path(base).resolve()
        if not sub_path:
            return root
        if _leads_away(sub_path):
            raise InvalidFile("the sub path is absolute or leads up", path=base, key=repr(sub_path), remedy=_REMEDY)
        folder = (root / sub_path).resolve()
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links in a ring, before Python 3.13
        message = f"the sub path cannot be resolved: {error}"
        raise InvalidFile(message, path=base, key=repr(sub_path), remedy=_REMEDY) from error
    if not folder.is_relative_to(root):
        raise InvalidFile("the sub path is a link that leads out", path=base, key=repr(sub_path), remedy=_REMEDY)
    return folder


def _leads_away(sub_path: str) -> bool:
    windows = PureWindowsPath(sub_path)
    return bool(windows.anchor) or ".." in windows.parts or PurePosixPath(sub_path).is_absolute()
