"""ExperiencePool: the lessons of a folder, which grow out of saved conversations and are found by likeness.

The rule to know: who retrieves never waits for a model that summarises, nor for an embedder that works through the
folder. That is what `refresh` does, when somebody calls it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from callboard.prompts.library import Library, packaged
from callboard.runtime.chat_model import ChatModel
from callboard.runtime.embedder import Embedder
from callboard.runtime.errors import InvalidFile
from callboard.runtime.ids import create_id
from callboard.runtime.transcript_file import FilePath, replace_file

from .folder_lock import folder_lock
from .hashed_embedder import HashedEmbedder
from .index_file import Space
from .lesson import KINDS, Found, Lesson, file_name
from .lesson_file import write_handcrafted
from .loader import Loader
from .reading import Check
from .refresh import Means, Refresh
from .report import OnProgress, RefreshReport
from .thread import in_thread

_MANY = 200
"""From so many texts on they are read in a thread."""


class ExperiencePool:
    """The lessons of one folder; one object serves any number of roles, conversations and threads at once.

    `embedder` finds them, `model` draws new ones from conversations; without a model these wait. `library` may replace
    the template `lesson_summarizer`. Nothing is read before it is asked for.
    """

    def __init__(
        self,
        folder: FilePath,
        *,
        embedder: Embedder | None = None,
        model: ChatModel | None = None,
        library: Library = packaged,
    ) -> None:
        self.folder = Path(folder)
        self.embedder: Embedder = HashedEmbedder() if embedder is None else embedder
        space = Space(self.embedder.id, self.embedder.dimension)
        self._means = Means(self.embedder, model, library, space)
        self._loader = Loader(self.folder, space)
        self._refreshing = 0
        self._source_faults: tuple[InvalidFile, ...] = ()

    def __repr__(self) -> str:
        loaded = self._loader.loaded
        held = "not loaded" if loaded is None else f"{len(loaded.index)} lessons, {len(self.waiting)} waiting"
        return f"<ExperiencePool {str(self.folder)!r}, {held}>"

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        """All that were loaded last, by id, those too that cannot be found yet; their texts are read from disk."""
        loaded = self._loader.loaded
        if loaded is None:
            return ()
        found = [loaded.index.lesson(row) for row in range(len(loaded.index))]
        return tuple(sorted([*found, *loaded.waiting.values()], key=lambda lesson: lesson.id))

    @property
    def waiting(self) -> tuple[str, ...]:
        """The ids of lessons and of sources that cannot be found before the next `refresh`."""
        loaded = self._loader.loaded
        if loaded is None:
            return ()
        return tuple(sorted({*loaded.waiting, *loaded.sources}.difference(loaded.index.ids)))

    @property
    def faults(self) -> tuple[InvalidFile, ...]:
        """The files that were passed over when the folder was loaded and refreshed last, and why."""
        loaded = self._loader.loaded
        return (*(() if loaded is None else loaded.faults), *self._source_faults)

    async def load(self, *, verify: bool = False) -> None:
        """Reads what came, went or changed since the last time, or since the cache was written.

        A file is known by its name, size and time of change; to `verify`, all are opened and compared by digest.
        Cancelled: nothing has changed. Raises InvalidFile for a folder that cannot be read.
        """
        await in_thread(partial(self._loader.load, verify=verify))

    async def retrieve(
        self, query: str, *, threshold: float | None = None, limit: int | None = None
    ) -> tuple[Found, ...]:
        """The lessons that are at least as alike to the query as `threshold`, by default the embedder's; best first.

        What is equally alike stands in the order of ids. Of what was added meanwhile, all is found that has its vector.
        Raises InvalidFile for a folder that cannot be read, ModelError, and ValueError for a limit below 0.
        """
        if limit is not None and limit < 0:
            raise ValueError(f"limit is a number from 0 on, or None, not {limit}")
        # While this pool itself writes, each file would send every query back to the folder.
        if not self._loader.is_current() and (self._loader.loaded is None or not self._refreshing):
            await in_thread(self._loader.catch_up)
        (vector,) = await self.embedder.embed([query])
        loaded = self._loader.loaded
        assert loaded is not None
        index = loaded.index
        rows, scores = index.search(vector, self.embedder.threshold if threshold is None else threshold, limit)

        def read(check: Check) -> tuple[Found, ...]:
            return tuple(Found(index.lesson(row), score) for row, score in zip(rows, scores, strict=True))

        return read(lambda: None) if len(rows) < _MANY else await in_thread(read)

    async def refresh(self, progress: OnProgress | None = None, *, verify: bool = False) -> RefreshReport:
        """Makes lessons of new and changed conversations, and vectors of new and changed lessons.

        Done again it does nothing. It waits while another task or process refreshes the same folder. Cancelled, or
        killed: each file is the old one or the new one, and the next refresh goes on. What one file is at fault for
        stands in the report, and what the model failed at. Raises InvalidFile for the folder, ModelError if there are
        no vectors to be had, OSError if files cannot be written.
        """
        async with folder_lock(self.folder):
            self._refreshing += 1
            try:
                refresh = Refresh(self._loader, self._means, progress)
                report = await refresh.run(verify=verify)
                self._source_faults = refresh.source_faults
                return report
            finally:
                self._refreshing -= 1

    async def add(self, text: str, id: str | None = None) -> str:
        """Writes a lesson of a person's, and gives its id; the next `refresh` makes it one that is found.

        Raises ValueError for an id that is none or is taken and for an empty text, OSError.
        """
        if not text.strip():
            raise ValueError("a lesson is a text that is not empty")
        name = id or create_id("lesson")
        path = self.folder / file_name("handcrafted_exp", name)

        def write(check: Check) -> None:
            if taken := self._files(name):
                raise ValueError(f"the id {name!r} is taken by {taken[0].name}")
            replace_file(path, write_handcrafted(name, text))

        await in_thread(write)
        return name

    async def remove(self, id: str) -> tuple[str, ...]:
        """Removes all files of a lesson, its source too, and gives their names; what is being made of it goes as well.

        Raises ValueError for what is no id and for one that there is not, OSError.
        """

        def unlink(check: Check) -> tuple[str, ...]:
            files = self._files(id)
            if not files:
                raise ValueError(f"there is no lesson {id!r} in {self.folder}")
            # The sources go first: without them, nothing makes the lesson anew.
            for path in files:
                path.unlink(missing_ok=True)
            return tuple(path.name for path in files)

        return await in_thread(unlink)

    def _files(self, id: str) -> list[Path]:
        paths = (self.folder / file_name(kind, id) for kind in KINDS)
        return [path for path in paths if path.is_symlink() or path.exists()]
