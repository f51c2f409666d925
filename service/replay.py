"""Replay: a recorded conversation is played again, each role saying what it said.

The rule to know: recorded code is shown. It is run only by an `Execution`, which nobody makes without being asked to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import trio

from callboard.actors.code_runner import CodeResult, RunOptions, run_code
from callboard.actors.working_folder import working_folder
from callboard.runtime import Actor, Attachment, AttachmentType, Post, Transcript, TurnContext, open_conversation
from callboard.runtime.event import Event
from callboard.runtime.nursery import open_nursery
from callboard.runtime.value import value

from .narrator import Narrator, Write, code_in
from .plain_text import plain
from .recorded_play import RecordedPlay

TIME_LIMIT = 60.0
"""Seconds for which one piece of recorded code may run."""

_OF_A_RUN = ("execution_status", "execution_result", "artifact_paths")


@dataclass(frozen=True, slots=True)
class Execution:
    """Runs recorded code."""

    folder: Path
    time_limit: float = TIME_LIMIT


@value
class CodeShown(Event):
    """A role has come to recorded code, which is run next if that is wanted."""

    role: str
    code: str


class RecordedRole(Actor):
    """Plays its posts in order, over all its turns; made for one conversation, since it remembers where it is."""

    def __init__(self, name: str, script: Sequence[Post], execution: Execution | None) -> None:
        self.name = name
        self._steps = deque(script)
        self._execution = execution

    async def receive(self, post: Post, context: TurnContext) -> Post:
        """What the role answered its asker, after all that it did before that."""
        ran: dict[str, CodeResult | None] = {}
        while True:
            step = await self._prepared(self._steps.popleft(), context, ran)
            if step.send_to == post.send_from:
                return post.reply(step.text, step.attachment_list)
            if step.send_to == self.name:
                context.record(step.text, *step.attachment_list)
            else:
                await context.ask(step.send_to, step.text, step.attachment_list)

    async def _prepared(self, step: Post, context: TurnContext, ran: dict[str, CodeResult | None]) -> Post:
        """The step, its code shown, with what became of that if it is run now; each code once a turn.

        A reply repeats the code of the note before it, and the result may stand in a post of its own.
        """
        for code in code_in(step):
            if code not in ran:
                context.emit(CodeShown(self.name, code))
                ran[code] = await _run(code, self._execution, context) if self._execution is not None else None
        latest = next(reversed(ran.values()), None)
        return step if latest is None or not _tells_result(step) else _with_result(step, latest)


class _PlayNarrator(Narrator):
    """Shows recorded code whole."""

    def lines(self, event: Event) -> Iterator[str]:
        if isinstance(event, CodeShown):
            yield f"\n{event.role}, recorded code:"
            yield from (f"    {line}".rstrip() for line in plain(event.code.rstrip()).split("\n"))
            yield ""
        else:
            yield from super().lines(event)


async def _run(code: str, execution: Execution, context: TurnContext) -> CodeResult:
    printed = partial(context.draft.progress, "code")
    return await run_code(code, execution.folder, printed, RunOptions(timeout=execution.time_limit))


def _tells_result(step: Post) -> bool:
    return bool(code_in(step)) or any(piece.type in _OF_A_RUN for piece in step.attachment_list)


def _with_result(step: Post, result: CodeResult) -> Post:
    step = step.without_attachments(*_OF_A_RUN)
    status = "SUCCESS" if result.succeeded else "FAILURE"
    step = step.with_attachment(Attachment.create(AttachmentType.execution_status, status))
    return step.with_attachment(Attachment.create(AttachmentType.execution_result, _told(result)))


def _told(result: CodeResult) -> str:
    """What the code printed, and how it ended if that was not well."""
    if result.succeeded:
        return result.output or "(nothing)"
    end = "stopped: it took too long" if result.timed_out else f"failed: exit code {result.exit_code}"
    return f"{result.output}\n[{end}]".lstrip("\n")


async def run_play(play: RecordedPlay, write: Write, *, execute: bool = False) -> Transcript:
    """The transcript of the play, written line by line while it is held; with `execute`, its code is really run.

    The code runs in a fresh folder, which is removed, with a minute for each piece.
    """
    if not execute:
        return await _hold(play, write, None)
    async with working_folder() as folder:
        return await _hold(play, write, Execution(folder))


async def _hold(play: RecordedPlay, write: Write, execution: Execution | None) -> Transcript:
    narrator = _PlayNarrator(write)
    others = [role for role in play.scripts if role != play.root]
    root, *rest = (RecordedRole(name, play.scripts.get(name, ()), execution) for name in (play.root, *others))
    async with open_nursery() as nursery, open_conversation(root, *rest) as conversation:
        nursery.start_soon(narrator.follow, conversation.events(), 1, trio.Event())
        await conversation.send(play.query)
        await narrator.ended.wait()
        return conversation.transcript()
