"""Working folder: a fresh folder for a role's files, which nobody else uses."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

# Seconds in which a folder can be removed even if it is large; beyond, the disk does not answer.
_REMOVAL = 30.0


@asynccontextmanager
async def working_folder(parent: Path | None = None) -> AsyncIterator[Path]:
    """A fresh folder with mode 700: in `parent`, where it stays, or among temporary files until the block ends.

    Cancelled: it is removed all the same, shielded. Raises OSError if it cannot be made or removed, and
    `trio.TooSlowError` if its removal takes longer than half a minute.
    """
    folder = await trio.to_thread.run_sync(_make, parent)
    try:
        yield folder
    finally:
        if parent is None:
            with trio.fail_after(_REMOVAL, shield=True):
                await trio.to_thread.run_sync(shutil.rmtree, folder, abandon_on_cancel=True)


def _make(parent: Path | None) -> Path:
    return Path(tempfile.mkdtemp(prefix="callboard-", dir=parent)).absolute()
