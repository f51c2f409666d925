"""Refresh: brings the lessons of a folder up to their sources, and their vectors up to the embedder.

The rule to know: each file is replaced as a whole, and what a model said is on disk before its vector is asked for. So
wherever it is cancelled or killed, the next refresh goes on from there, and no model is asked twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import trio

from callboard.prompts.library import Library
from callboard.runtime.chat_model import ChatModel
from callboard.runtime.embedder import Embedder
from callboard.runtime.errors import InvalidFile, ModelError, describe
from callboard.runtime.transcript_file import replace_file

from .index_file import Space
from .leftover import remove_leftovers
from .lesson import file_name
from .lesson_file import NO_VECTOR, Record, digest, write_record
from .loader import Loader
from .plan import Plan, as_planned, make_plan, read_lesson, read_source
from .reading import Check, fault_of
from .report import Failure, OnProgress, Progress, RefreshReport, Step
from .summarizer import read_conversation, summarize
from .thread import in_thread

_BATCH = 32
"""Lessons that are embedded together, and once more if the process is killed meanwhile."""
_PUBLISHED = 1.0
"""Seconds between two times at which what is new can be found, while there is more to come."""
_MOST_FAILURES = 3
"""Failures of the model in a row after which it is not asked any more."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a refresh works with."""

    embedder: Embedder
    model: ChatModel | None
    library: Library
    space: Space


class Refresh:
    """One refresh; whoever runs it holds the lock of the folder."""

    def __init__(self, loader: Loader, means: Means, on_progress: OnProgress | None) -> None:
        self._loader = loader
        self._folder = loader.folder
        self._means = means
        self._on_progress = on_progress
        self._plan = Plan()
        self._sources = loader.loaded.sources if loader.loaded is not None else {}
        self._done = 0
        self._noted = 0
        self._embedded: list[str] = []
        self._summarized: list[str] = []
        self._failures: list[Failure] = []
        self._published = trio.current_time()

    @property
    def source_faults(self) -> tuple[InvalidFile, ...]:
        """The sources that were passed over."""
        return tuple(self._plan.faults)

    async def run(self, *, verify: bool) -> RefreshReport:
        """Does all there is to do.

        Raises InvalidFile for a folder that cannot be read, ModelError if no vectors come, OSError if a file cannot be
        written.
        """
        await in_thread(partial(remove_leftovers, self._folder))
        loaded = await in_thread(partial(self._loader.load, verify=verify))
        self._sources = loaded.sources
        self._plan = await in_thread(partial(make_plan, self._folder, loaded))
        for at in range(0, len(self._plan.to_write), _BATCH):
            await self._write(self._plan.to_write[at : at + _BATCH])
        if self._means.model is not None:
            await self._summarize_all(self._means.model)
        loaded = await in_thread(self._loader.load)
        return RefreshReport(
            tuple(self._summarized),
            tuple(sorted(self._embedded)),
            self._plan.unchanged + self._noted,
            tuple(id for id in self._plan.to_summarize if id not in self._summarized),
            tuple(self._failures),
            tuple(self._plan.orphans),
            (*loaded.faults, *self.source_faults),
        )

    async def _write(self, ids: Sequence[str]) -> None:
        """Brings lessons that have a text up to date."""
        self._tell("embedding", ids[0])
        records = await in_thread(partial(self._read, ids))
        noted = [record for record in records if record.vector.size]
        self._noted += len(noted)
        await in_thread(partial(self._save, noted))
        await self._embed([record for record in records if not record.vector.size])
        self._done += len(ids)
        await self._publish()

    def _read(self, ids: Sequence[str], check: Check) -> list[Record]:
        records = []
        for id in ids:
            check()
            try:
                record = as_planned(self._folder, self._sources.get(id), id, self._means.space)
            except InvalidFile as fault:
                self._plan.faults.append(fault)
            else:
                records += [] if record is None else [record]
        return records

    async def _embed(self, records: Sequence[Record]) -> None:
        if not records:
            return
        space = self._means.space
        vectors = await self._means.embedder.embed([record.text for record in records])
        if vectors.shape != (len(records), space.dimension):
            shape = " x ".join(map(str, vectors.shape))
            message = f"{space.embedder} made {shape} numbers, not {len(records)} x {space.dimension}"
            raise ModelError(message, fault="server", may_retry=False)
        done = [
            replace(record, vector=vector, embedder=space.embedder, embedded=digest(record.text.encode()))
            for record, vector in zip(records, vectors, strict=True)
        ]
        await in_thread(partial(self._save, done))
        self._embedded += [record.id for record in done]

    def _save(self, records: Sequence[Record], check: Check) -> None:
        for record in records:
            check()
            # What was removed in the meantime is not brought back.
            origin = file_name(self._sources.get(record.id, "exp"), record.id)
            if (self._folder / origin).exists():
                replace_file(self._folder / file_name("exp", record.id), write_record(record))

    async def _summarize_all(self, model: ChatModel) -> None:
        failed = 0
        for id in self._plan.to_summarize:
            self._tell("summarizing", id)
            try:
                record = await self._summarize(model, id)
            except InvalidFile as fault:
                self._plan.faults.append(fault)
                continue
            except ModelError as error:
                self._failures.append(Failure(id, describe(error)))
                failed += 1
                if failed == _MOST_FAILURES:
                    return
                continue
            failed = 0
            self._done += 1
            await self._embed([record])
            await self._publish()

    async def _summarize(self, model: ChatModel, id: str) -> Record:
        """The lesson of a conversation, which is on disk then."""
        data, shown, before = await in_thread(partial(self._open, id))
        text = await summarize(model, self._means.library, shown)
        extra = {} if before is None else before.extra
        path = str(self._folder / file_name("raw_exp", id))
        record = Record(id, text, path, vector=NO_VECTOR, source=digest(data), extra=extra)
        await in_thread(partial(self._save, [record]))
        self._summarized.append(id)
        return record

    def _open(self, id: str, check: Check) -> tuple[bytes, str, Record | None]:
        check()
        data = read_source(self._folder, "raw_exp", id)
        try:
            return data, read_conversation(data), read_lesson(self._folder, id)
        except InvalidFile as error:
            raise error if error.path else fault_of(error, self._folder / file_name("raw_exp", id)) from error

    async def _publish(self) -> None:
        """Lets what is there be found."""
        if trio.current_time() >= self._published + _PUBLISHED:
            await in_thread(self._loader.load)
            self._published = trio.current_time()

    def _tell(self, step: Step, id: str) -> None:
        if self._on_progress is not None:
            total = len(self._plan.to_write) + len(self._plan.to_summarize)
            self._on_progress(Progress(step, id, self._done, total))
