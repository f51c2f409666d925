"""Examples: which other conversations a role is shown, for how they go. Settings, and what was read for them.

The rule to know: a folder is read when it is first needed, and not again: a conversation shows the same examples all
its life. What is changed on disk is seen by the next `Examples`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import trio

from callboard.runtime.transcript_file import FilePath

from .chosen_folder import chosen_folder
from .example_folder import ExampleFolder, read_examples
from .thread import in_thread


@dataclass(frozen=True, slots=True)
class Examples:
    """`Role(model, examples=Examples("examples/planner"))`. Give the same to several roles, and they share them."""

    folder: FilePath
    use: bool = True
    dynamic_sub_path: bool = False
    """Whether the newest `example_sub_path` in shared memory chooses the sub folder; without one none are shown."""
    _read: dict[Path, ExampleFolder] = field(default_factory=dict, init=False, repr=False, compare=False)

    async def load(self, sub_path: str = "") -> ExampleFolder:
        """What the folder, or a sub folder, holds; read in a thread the first time.

        Cancelled: the thread ends after the file that it reads. Raises InvalidFile for a folder that is not there or
        cannot be read, and for a sub path that leads out of it; a file that is no conversation is among its faults.
        """
        folder = chosen_folder(self.folder, sub_path)
        if folder in self._read:
            await trio.lowlevel.checkpoint()
        else:
            found = await in_thread(partial(read_examples, folder))
            self._read.setdefault(folder, found)
        return self._read[folder]
