"""Example folder: the conversations of a folder that show how things go, and the files that hold none.

    {anything}.yaml     a conversation, as `Transcript.save` and TaskWeaver write it

The rule to know: a folder is read once, as a whole, without its sub folders; a file that is none is skipped and named.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from callboard.runtime.errors import InvalidFile
from callboard.runtime.ids import Ids, current_ids
from callboard.runtime.transcript import Transcript

from .reading import Check


@dataclass(frozen=True, slots=True)
class ExampleFolder:
    """What one folder holds."""

    transcripts: tuple[Transcript, ...] = ()
    """Those that are enabled, in the order of their files' names."""
    faults: tuple[InvalidFile, ...] = ()
    """What is wrong with each file that was skipped."""

    def of_roles(self, roles: Collection[str]) -> tuple[Transcript, ...]:
        """The conversations in which nobody but these takes part."""
        return tuple(one for one in self.transcripts if set(one.roles) <= set(roles))


def read_examples(folder: Path, check: Check) -> ExampleFolder:
    """What the folder holds; calls `check` before each file. Blocks. Raises InvalidFile if it cannot be read."""
    # What is read here must take no ids of a conversation that may be under way: it would be another one by that.
    before = current_ids.set(Ids())
    try:
        return _read(folder, check)
    finally:
        current_ids.reset(before)


def _read(folder: Path, check: Check) -> ExampleFolder:
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix == ".yaml" and not file.name.startswith("."))
    except OSError as error:
        remedy = "give a folder that can be read"
        raise InvalidFile(error.strerror or str(error), path=folder, remedy=remedy) from error
    transcripts, faults = [], []
    for file in files:
        check()
        try:
            if not file.resolve().is_relative_to(folder.resolve()):
                raise InvalidFile("a link that leads out of the folder", path=file, remedy="put the file itself there")
            transcripts.append(Transcript.from_yaml(file))
        except InvalidFile as fault:
            faults.append(fault)
    return ExampleFolder(tuple(one for one in transcripts if one.enabled), tuple(faults))
