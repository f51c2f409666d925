"""CodeInterpreter: solves a step by writing Python, which is run in a folder of its own.

The rule to know: code is recorded before it runs and its outcome when it has ended; what it prints meanwhile is in the
draft. So a new attempt finds what has run, and how far.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import trio
from pydantic import BaseModel

from callboard.prompts.reply_format import NotBlank, Reply
from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.chat_model import ChatModel
from callboard.runtime.context import LiveContext, TurnContext
from callboard.runtime.post import Post
from callboard.runtime.text import Text, temporal

from .code_runner import CodeResult, RunOptions, run_code
from .role import Role
from .working_folder import working_folder

MOST_OUTPUT = 8_000
"""Characters of output that are kept; of more, the middle is left out."""

_NO_ARTIFACT = re.compile(r"code-\d+\.py|\..*|__pycache__")


class CodeReply(BaseModel):
    """All that a code interpreter is asked for; it can go on without a thought."""

    thought: str = ""
    reply_type: Literal["python", "text"]
    reply_content: NotBlank


@dataclass(eq=False, repr=False)
class CodeInterpreter(Role):
    """Writes and runs Python; each conversation has a working folder, each run a fresh process. POSIX only.

    This is no sandbox: the code may do what the host's user may. Raises ValueError for names of files that cannot be
    told apart, for no attempts, or for a lasting_output below 0.
    """

    introduction = "Writes Python and runs it: give it one step of computing, reading or making files, with its data."
    template = '{{include "code_interpreter"}}'
    reply_format = '{{include "reply_format.code_interpreter"}}'
    reply_model: ClassVar[type[BaseModel]] = CodeReply
    settings_name: ClassVar[str] = "code_generator"

    model: ChatModel
    _: KW_ONLY
    name: str = "CodeInterpreter"
    folder: Path | None = None
    """In which the working folders are made, and stay; None for temporary ones."""
    timeout: float = 60.0
    """Seconds that one run may take."""
    most_attempts: int = 3
    """How often the model may send code before a failure is the answer."""
    lasting_output: int = 2_000
    """Characters of a run's output that later rounds show, as far as its last whole line; the rest is temporal."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """What is copied into each working folder, by the name it gets there; signs that are unsafe become `_`."""

    def __post_init__(self) -> None:
        if self.most_attempts < 1:
            raise ValueError(f"most_attempts is a whole number from 1 on, not {self.most_attempts!r}")
        if self.lasting_output < 0:
            raise ValueError(f"lasting_output is a number of characters from 0 on, not {self.lasting_output!r}")
        names = [_safe_name(name) for name in self.files]
        if len(set(names)) < len(names):
            raise ValueError(f"files of the same name: {', '.join(sorted(names))}")

    @asynccontextmanager
    async def live(self, context: LiveContext) -> AsyncIterator[Path]:
        """The working folder, with the files in it."""
        async with working_folder(self.folder) as folder:
            for name, source in self.files.items():
                await trio.to_thread.run_sync(shutil.copyfile, source, folder / _safe_name(name))
            yield folder

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """The model's words, or what its code printed; after `most_attempts` runs that failed, the last failure.

        Cancelled: the code is stopped, and what it had printed is kept. Raises what `reply` raises, and OSError if the
        folder has gone.
        """
        before = _files_in(context.state)
        for number in range(1, self.most_attempts + 1):
            reply = await self.reply(post, context)
            kind = _content(reply, AttachmentType.reply_type)
            content = _content(reply, AttachmentType.reply_content)
            if kind == "text":
                return post.reply(content, reply.attachments)
            context.record("", *reply.attachments)
            result = await self._run(content, context)
            # From here on there is no wait: the outcome is recorded, and returned, in the step in which it is known.
            context.draft.take_attachments()
            outcome = self._outcome(result)
            context.record("", *outcome)
            if result.succeeded or number == self.most_attempts:
                break
        made = sorted(_files_in(context.state) - before)
        artifacts = [Attachment.create(AttachmentType.artifact_paths, made)] if made else []
        return post.reply(_told(result, number, outcome[-1]), (*reply.attachments, *outcome, *artifacts))

    def system_message(self, post: Post, context: TurnContext) -> str:
        """The template, filled in, and which files there are from the start."""
        text = super().system_message(post, context)
        names = ", ".join(map(_safe_name, self.files))
        return f"{text}\n\n# Files\n\nIn the working folder are, from the start: {names}" if names else text

    async def _run(self, code: str, context: TurnContext) -> CodeResult:
        printed = 0

        def on_output(text: str) -> None:
            nonlocal printed
            lasting = max(0, self.lasting_output - printed)
            printed += len(text)
            context.draft.attach(AttachmentType.execution_result, text[:lasting] + temporal(text[lasting:]))

        options = RunOptions(timeout=self.timeout, most_output=MOST_OUTPUT)
        async with context.step(stalled=math.inf):
            return await run_code(code, context.state, on_output, options)

    def _outcome(self, result: CodeResult) -> tuple[Attachment, Attachment]:
        """Status and result, the result last."""
        output = _shown(result.output.rstrip().lstrip("\n"), self.lasting_output)
        stopped = f"[stopped after {self.timeout:g} s]" if result.timed_out else ""
        text = Text("\n").join(part for part in (output, stopped) if part)
        return (
            Attachment.create(AttachmentType.execution_status, "SUCCESS" if result.succeeded else "FAILURE"),
            Attachment.create(AttachmentType.execution_result, text),
        )


def _content(reply: Reply, type: AttachmentType) -> str:
    return "".join(str(one.content) for one in reply.attachments if one.type is type)


def _told(result: CodeResult, runs: int, output: Attachment) -> Text:
    """What the asker is told in words."""
    times = "" if runs == 1 else f" {runs} times, at last"
    says = "The code has run" if result.succeeded else f"The code failed{times} with exit code {result.exit_code}"
    printed = Text(str(output.content), output.temporal)
    return f"{says} and printed:\n" + printed if printed else Text(f"{says} and printed nothing.")


def _shown(output: str, lasting: int) -> Text:
    """The output, which later rounds show up to the last whole line that may last, and how much more it was."""
    if len(output) <= lasting:
        return Text(output)
    kept = output.rfind("\n", 0, lasting) + 1 or lasting
    begun = "" if output[:kept].endswith("\n") or not kept else "\n"
    more = f"{begun}[{len(output) - kept} characters more, in this round alone]\n"
    return output[:kept] + more + temporal(output[kept:])


def _safe_name(name: str) -> str:
    safe = re.sub(r"[^\w.-]+", "_", name).lstrip("._-")
    if not safe:
        raise ValueError(f"{name!r} is no name of a file")
    return safe


def _files_in(folder: Path) -> set[str]:
    """The names of all files below, relative; without the code that was run, and what is hidden."""
    found: set[str] = set()
    for above, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _NO_ARTIFACT.fullmatch(name)]
        shown = (name for name in names if not _NO_ARTIFACT.fullmatch(name))
        found.update((Path(above) / name).relative_to(folder).as_posix() for name in shown)
    return found
