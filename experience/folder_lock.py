"""Folder lock: one refresh at a time of a folder, over all tasks, threads and processes of a machine.

The rule to know: the system holds the lock for an open file, and lets go of it when its process dies, however it does.
The file itself is never removed: who opened it before would hold a lock that nobody else sees.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from callboard.runtime.errors import InvalidFile

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

NAME = ".callboard.lock"

_PAUSE = 0.1
"""Seconds between two tries. A call that waits in the system could not be cancelled."""


@asynccontextmanager
async def folder_lock(folder: Path) -> AsyncIterator[None]:
    """Holds the lock of the folder for the block.

    Cancelled while it waits: it has not been taken. Raises InvalidFile for a folder that may not be written to.
    """
    path = folder / NAME
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        remedy = "make the folder, and allow to write to it"
        raise InvalidFile(error.strerror or str(error), path=path, remedy=remedy) from error
    try:
        await trio.lowlevel.checkpoint()
        while not _take(handle):  # noqa: ASYNC110 (no event of this process tells what another one does)
            await trio.sleep(_PAUSE)
        try:
            yield
        finally:
            _release(handle)
    finally:
        os.close(handle)


if sys.platform == "win32":

    def _take(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _release(handle: int) -> None:
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:

    def _take(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _release(handle: int) -> None:
        # A process that was forked meanwhile has the file open too; closing alone would leave it the lock.
        fcntl.flock(handle, fcntl.LOCK_UN)
