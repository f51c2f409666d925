"""Kept results: what tools return is cut to a size, and the whole of it kept in a file that the model may read on.

The rule to know: a result is cut, written and noted in the step in which the tool returns it, so that no interruption
comes between; and no text of a model's is ever a path.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from callboard.prompts.library import Library
from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.callboard_error import describe
from callboard.runtime.context import TurnContext
from callboard.runtime.tool import Report, Tool

READ_RESULT = "read_result"


class KeptResults:
    """Those of one agent in one conversation. Its folder is made when the first result is kept."""

    def __init__(self, most: int, templates: Library, parent: Path | None = None) -> None:
        self.most = most
        """Characters of a result that the model is shown at once."""
        self.closed = False
        """Whether nothing more is kept: what comes now comes too late."""
        self.folder: Path | None = None
        self._parent = parent
        self._templates = templates
        self._paths: dict[str, Path] = {}
        self.tool = Tool(self._read_result, name=READ_RESULT)
        """Lets the model read on."""

    async def _read_result(self, name: str, start: int = 0) -> str:
        """A part of a long result that was kept under this name, from the character number start on."""
        if name not in self._paths:
            raise ValueError(f"no result is kept under that name; there are: {', '.join(self._paths) or 'none'}")
        if start < 0:
            raise ValueError("start is a number from 0 on")
        text = self._paths[name].read_text(encoding="utf-8")
        return text[start : start + self.most]

    def cut(self, tool: str, result: object) -> tuple[object, str]:
        """The result as the model is shown it, and the name of the file that holds the whole; empty for a short one."""
        text = _as_text(result)
        if len(text) <= self.most:
            return result, ""
        name, lost = self._keep(tool, text)
        where = f"the whole is kept as {name}; {READ_RESULT} reads on" if name else f"and could not be kept: {lost}"
        return f"{self.shortened(text)}\n[{where}]", name

    def shortened(self, text: str) -> str:
        """The text without its middle, if it is too long."""
        if len(text) <= self.most:
            return text
        head, tail = (self.most + 1) // 2, self.most // 2
        left_out = self._templates.render("fw.msg_truncated", length=len(text) - self.most)
        return f"{text[:head]}\n{left_out}\n{text[len(text) - tail :]}"

    def _keep(self, tool: str, text: str) -> tuple[str, str]:
        """The name of the file, or why there is none. The same text has the same name, so it is one result."""
        if self.closed:
            return "", "it came too late"
        data = text.encode("utf-8", "backslashreplace")
        name = f"{re.sub('[^A-Za-z0-9_-]+', '_', tool)}-{sha256(data).hexdigest()[:12]}.txt"
        try:
            if self.folder is None:
                self.folder = Path(tempfile.mkdtemp(prefix="callboard-", dir=self._parent)).absolute()
            (self.folder / name).write_bytes(data)
        except OSError as error:
            return "", describe(error)
        self._paths[name] = self.folder / name
        return name, ""


@contextmanager
def kept_results(most: int, templates: Library, parent: Path | None) -> Iterator[KeptResults]:
    """Results are kept: in a folder in `parent`, where they stay, or in a temporary one until the block ends.

    Raises OSError if the temporary folder cannot be removed.
    """
    kept = KeptResults(most, templates, parent)
    try:
        yield kept
    finally:
        kept.closed = True
        if parent is None and kept.folder is not None:
            with suppress(FileNotFoundError):  # temporary files may have been cleared away
                shutil.rmtree(kept.folder)  # no thread: there are but the files that were written here


class KeptTool(Tool):
    """Another tool, whose results, errors and reports are cut to a size."""

    def __init__(self, tool: Tool, kept: KeptResults, context: TurnContext) -> None:
        self.__dict__.update(vars(tool))  # all else that a call asks of a tool is the tool's
        self._tool = tool
        self._kept = kept
        self._context = context

    async def run(
        self,
        arguments: Mapping[str, Any],
        report: Report,
        *,
        ladder: float = 2.0,
        on_abandoned: Callable[[str], None] | None = None,
        on_late: Callable[[object], None] | None = None,
    ) -> Any:
        """What the tool returns, cut to a size; else as `Tool.run`."""
        late = None if on_late is None else _cutting(self._kept, self.name, on_late)
        told = _limited(report, self._kept.most)
        try:
            result = await self._tool.run(arguments, told, ladder=ladder, on_abandoned=on_abandoned, on_late=late)
        except Exception as error:
            said = describe(error)
            if len(said) <= self._kept.most:
                raise
            raise RuntimeError(self._kept.shortened(said)) from error
        shown, name = self._kept.cut(self.name, result)
        if name:
            self._context.record("", Attachment.create(AttachmentType.artifact_paths, [name]))
        return shown


def _cutting(kept: KeptResults, tool: str, on_late: Callable[[object], None]) -> Callable[[object], None]:
    """Takes what comes late, cut; an error as it is."""

    def late(result: object) -> None:
        on_late(result if isinstance(result, BaseException) else kept.cut(tool, result)[0])

    return late


def _limited(report: Report, most: int) -> Report:
    """Hands reports on until they are that many characters in all."""
    left = most

    def limited(text: str) -> None:
        nonlocal left
        if left > 0:
            report(text if len(text) <= left else f"{text[:left]}\n[what it said further is left out]")
        left -= len(text)

    return limited


def _as_text(result: object) -> str:
    """As the model is shown it, whatever a tool returns."""
    if isinstance(result, str):
        return result
    try:
        return to_json(result, fallback=repr).decode()
    except Exception:  # what holds itself, or lies too deep for JSON; what has no repr either
        try:
            return repr(result)
        except Exception:
            return f"<{type(result).__name__}>"
