"""CodeInterpreter: solves a step by writing Python, which is run in a kernel of the conversation's own.

The rule to know: code is recorded before it runs and its outcome when it has ended; what it prints meanwhile is in the
draft. So a new attempt finds what has run, and how far. The variables are in the kernel, which outlives attempts.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import trio
from pydantic import BaseModel

from callboard.experience.examples import Examples
from callboard.experience.experience import Experience
from callboard.prompts.reply_format import NotBlank, Reply
from callboard.runtime.attachment import Attachment, AttachmentType
from callboard.runtime.chat_model import ChatModel
from callboard.runtime.context import LiveContext, TurnContext
from callboard.runtime.post import Post
from callboard.runtime.text import Text, temporal

from .artifacts import artifacts_since, files_in, safe_name
from .kernel import Kernel, KernelOptions, KernelResult, open_kernel
from .plugin import Plugin
from .role import Role
from .sandbox import Isolation, SandboxLimits
from .verification import Rules, verify
from .working_folder import working_folder

MOST_OUTPUT = 8_000
"""Bytes of output that are kept; of more, the middle is left out."""


class CodeReply(BaseModel):
    """All that a code interpreter is asked for; it can go on without a thought."""

    thought: str = ""
    reply_type: Literal["python", "text"]
    reply_content: NotBlank


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a conversation's code works with."""

    folder: Path
    kernel: Kernel
    variables: Callable[[], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of code: as attachments, the one that is shown last, and in words for the asker."""

    succeeded: bool
    attachments: tuple[Attachment, ...]
    says: str


@dataclass(eq=False, repr=False)
class CodeInterpreter(Role):
    """Writes and runs Python; each conversation has a working folder and a kernel that keeps variables. POSIX only.

    Code runs in bubblewrap, and not at all where that does not work: the turn fails with SandboxMissing then. With
    `isolation="none"` it may do what the host's user may. Raises ValueError for names of files that cannot be told
    apart, for no attempts, for a lasting_output below 0, or for two plugins with a function of one name.
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
    isolation: Isolation = "bubblewrap"
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    """Of memory, processor time, files and processes, for each process of a kernel."""
    plugins: tuple[Plugin, ...] = ()
    """Functions that the code may call; the model is shown their signatures."""
    session: Callable[[str], Mapping[str, Any]] | None = None
    """Gives the variables of a conversation by its id, read before each run: values that JSON can hold."""
    verification: Rules | None = None
    """A lint that code must pass before it is run; None for none. It keeps nobody out: isolation does."""
    experience: Experience | None = None
    examples: Examples | None = None

    def __post_init__(self) -> None:
        if self.most_attempts < 1:
            raise ValueError(f"most_attempts is a whole number from 1 on, not {self.most_attempts!r}")
        if self.lasting_output < 0:
            raise ValueError(f"lasting_output is a number of characters from 0 on, not {self.lasting_output!r}")
        names = [safe_name(name) for name in self.files]
        if len(set(names)) < len(names):
            raise ValueError(f"files of the same name: {', '.join(sorted(names))}")
        functions = [name for plugin in self.plugins for name in plugin.shipment["functions"]]
        if len(set(functions)) < len(functions):
            raise ValueError(f"plugins with functions of the same name: {', '.join(sorted(functions))}")

    @asynccontextmanager
    async def live(self, context: LiveContext) -> AsyncIterator[Workplace]:
        """The working folder, with the files in it, and the kernel."""
        options = KernelOptions(
            timeout=self.timeout,
            most_output=MOST_OUTPUT,
            isolation=self.isolation,
            limits=self.limits,
            plugins=self.plugins,
        )
        session = self.session
        async with working_folder(self.folder) as folder, open_kernel(folder, options) as kernel:
            for name, source in self.files.items():
                await trio.to_thread.run_sync(shutil.copyfile, source, folder / safe_name(name))
            yield Workplace(folder, kernel, lambda: session(context.conversation) if session else {})

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """The model's words, or what its code printed; after `most_attempts` pieces that failed, the last failure.

        Cancelled: the code is stopped, what it had printed is kept, and behind it stands whether its variables are.
        Raises what `reply` raises, KernelFailed if no kernel starts, OSError if the folder has gone.
        """
        before = files_in(context.state.folder)
        for number in range(1, self.most_attempts + 1):
            reply = await self.reply(post, context)
            kind = _content(reply, AttachmentType.reply_type)
            content = _content(reply, AttachmentType.reply_content)
            if kind == "text":
                return post.reply(content, reply.attachments)
            context.record("", *reply.attachments)
            outcome = self._refused(content) or self._outcome(await self._run(content, context))
            # From here on there is no wait: the outcome is recorded, and returned, in the step in which it is known.
            context.draft.take_attachments()
            context.record("", *outcome.attachments)
            if outcome.succeeded or number == self.most_attempts:
                break
        made = artifacts_since(before, context.state.folder)
        artifacts = [Attachment.create(AttachmentType.artifact_paths, made)] if made else []
        return post.reply(_told(outcome, number), (*reply.attachments, *outcome.attachments, *artifacts))

    def system_message(self, post: Post, context: TurnContext) -> str:
        """The template, filled in, and what there is from the start: files, functions, session variables, rules."""
        parts = [super().system_message(post, context)]
        if names := ", ".join(map(safe_name, self.files)):
            parts.append(f"# Files\n\nIn the working folder are, from the start: {names}")
        if shown := [signature for plugin in self.plugins for signature in plugin.signatures]:
            called = "\n".join(f"```python\n{signature}\n```" for signature in shown)
            parts.append(f"# Functions\n\nYour code may call these; they need no import:\n\n{called}")
        if variables := ", ".join(context.state.variables()):
            told = f"`from callboard_session import variables` gives a dict with: {variables}"
            parts.append(f"# Session\n\n{told}")
        if self.verification is not None:
            parts.append(f"# Rules\n\nCode that breaks one of these is not run:\n\n{self.verification.told}")
        return "\n\n".join(part.rstrip() for part in parts) if len(parts) > 1 else parts[0]

    async def _run(self, code: str, context: TurnContext) -> KernelResult:
        printed = 0

        def on_output(text: str) -> None:
            nonlocal printed
            lasting = max(0, self.lasting_output - printed)
            printed += len(text)
            context.draft.attach(AttachmentType.execution_result, text[:lasting] + temporal(text[lasting:]))

        place: Workplace = context.state
        async with context.step(stalled=math.inf):
            return await place.kernel.run(code, on_output, place.variables())

    def _refused(self, code: str) -> _Outcome | None:
        """What becomes of code that the lint finds fault with; None if it may run."""
        faults = verify(code, self.verification)
        if not faults:
            return None
        verdict = Attachment.create(AttachmentType.verification, "INCORRECT")
        told = Attachment.create(AttachmentType.code_error, "\n".join(faults))
        return _Outcome(False, (verdict, told), "was not run, since it breaks the rules")

    def _outcome(self, result: KernelResult) -> _Outcome:
        """Verdict, status and result, the result last."""
        output = _shown(result.output.rstrip().lstrip("\n"), self.lasting_output)
        status = "SUCCESS" if result.succeeded else "FAILURE"
        verdict = [] if self.verification is None else [Attachment.create(AttachmentType.verification, "CORRECT")]
        attachments = (
            *verdict,
            Attachment.create(AttachmentType.execution_status, status),
            Attachment.create(AttachmentType.execution_result, output),
        )
        return _Outcome(result.succeeded, attachments, "has run" if result.succeeded else "failed")


def _content(reply: Reply, type: AttachmentType) -> str:
    return "".join(str(one.content) for one in reply.attachments if one.type is type)


def _told(outcome: _Outcome, pieces: int) -> Text:
    """What the asker is told in words."""
    last = outcome.attachments[-1]
    shown = Text(str(last.content), last.temporal)
    which = "The code" if pieces == 1 else f"After {pieces - 1} that failed, the code"
    if last.type is AttachmentType.code_error:
        return f"{which} {outcome.says}:\n" + shown
    return (
        f"{which} {outcome.says} and printed:\n" + shown
        if shown
        else Text(f"{which} {outcome.says} and printed nothing.")
    )


def _shown(output: str, lasting: int) -> Text:
    """The output, which later rounds show up to the last whole line that may last, and how much more it was."""
    if len(output) <= lasting:
        return Text(output)
    kept = output.rfind("\n", 0, lasting) + 1 or lasting
    begun = "" if output[:kept].endswith("\n") or not kept else "\n"
    more = f"{begun}[{len(output) - kept} characters more, in this round alone]\n"
    return output[:kept] + more + temporal(output[kept:])
