"""Call: one call of a tool by a role, from its note to its outcome, whatever ends it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from typing import Any

import trio
from pydantic_core import to_json

from .attachment import Attachment, AttachmentType
from .draft import Draft
from .errors import ToolFailed, describe
from .event import CallOutcome, ToolBegan, ToolEnded, WorkAbandoned
from .ids import create_id
from .post import Marks, Post, State
from .router import Router
from .step import check_grace, inside_step, shielded_block
from .tool import Tool
from .turn import Turn


class Call:
    """Made for one call; `run` is called once."""

    def __init__(self, tool: Tool, turn: Turn, draft: Callable[[], Draft], router: Router) -> None:
        self._tool = tool
        self._turn = turn
        self._draft = draft
        self._router = router
        self._id = create_id("call")
        self._outcome: CallOutcome = "not_started"
        self._detail: Mapping[str, Any] = {}
        """What the outcome says beside."""
        self._note: Post | None = None
        """What was recorded as the outcome."""
        self._left: list[str] = []
        """What could not be ended."""
        self._late_results: list[object] = []
        """What came to an end before the outcome of its interruption was recorded."""

    async def run(self, arguments: Mapping[str, Any], grace: float, ladder: float) -> Any:
        """See `TurnContext.call`. `grace` is what a tool without a grace of its own has."""
        router, tool, turn = self._router, self._tool, self._turn
        if router.gate.stops(turn):
            await router.gate.wait(turn)
        self._record({"arguments": arguments})
        if router.events.wanted:
            router.events.publish(ToolBegan(turn.role, turn.post.id, tool.name, self._id))
        with inside_step(turn, router):
            try:
                await trio.lowlevel.checkpoint_if_cancelled()
                self._outcome = "interrupted"
                return await self._running(arguments, grace, ladder)
            except Exception as error:
                self._outcome, self._detail = "failed", {"error": describe(error)}
                raise ToolFailed(tool.name, self._id, error) from error
            finally:
                self._end()

    def _block(self, grace: float) -> Any:
        if self._tool.interruptible:
            return nullcontext()
        own = self._tool.grace
        return shielded_block(self._turn, self._router, check_grace(grace if own is None else own))

    async def _running(self, arguments: Mapping[str, Any], grace: float, ladder: float) -> Any:
        cut: trio.Cancelled | None = None
        try:
            async with self._block(grace):
                try:
                    result = await self._tool.run(
                        arguments, self._report, ladder=ladder, on_abandoned=self._abandoned, on_late=self._late
                    )
                except trio.Cancelled as cancelled:
                    cut = cancelled
                    raise
                self._outcome, self._detail = "done", {"result": result}
                return result
            # The cut goes no further than the tool's own block while one around it is let finish. As the error's cause
            # it says that this is a by-product of the interruption, which fails nobody.
            raise trio.TooSlowError("its grace is over") from cut
        finally:
            del cut  # its traceback holds this frame

    def _report(self, text: str) -> None:
        """Each report is a line of the progress."""
        self._draft().progress(self._tool.name, text if text.endswith("\n") else f"{text}\n", self._id)

    def _end(self) -> None:
        """In one step: the outcome, what could not be ended, and what has come late by now."""
        tool, turn = self._tool, self._turn
        progress = self._draft().take_progress(tool.name, self._id)
        kept = {"progress": progress.rstrip("\n")} if progress and self._outcome != "done" else {}
        state: State = "partial" if self._outcome == "interrupted" else "whole"
        self._note = self._record({"outcome": self._outcome, **self._detail, **kept}, state)
        if self._router.events.wanted:
            self._router.events.publish(ToolEnded(turn.role, turn.post.id, tool.name, self._id, self._outcome))
        for words in turn.causes:
            words.abandoned += self._left
        for result in self._late_results:
            self._record_late(result, self._note)

    def _abandoned(self, what: str) -> None:
        """The tool could not be ended within its limits; the words that cut it are told at its end, later ones too."""
        self._left.append(what)
        if self._router.events.wanted:
            self._router.events.publish(WorkAbandoned(self._turn.role, self._turn.post.id, what))

    def _late(self, result: object) -> None:
        """What a thread came to that was not waited for, or not to any avail."""
        if self._note is None:
            self._late_results.append(result)
        elif not self._router.closed:
            self._record_late(result, self._note)

    def _record_late(self, result: object, outcome: Post) -> None:
        """As a note that refers to the outcome, and so to what was kept of the call then."""
        found = {"error": describe(result)} if isinstance(result, BaseException) else {"result": result}
        self._record(found, "late", outcome.id)

    def _record(self, content: Mapping[str, Any], state: State = "whole", in_reply_to: str | None = None) -> Post:
        note = {"call": self._id, "tool": self._tool.name, **content}
        attachment = Attachment.create(AttachmentType.function, _written(note))
        marks = Marks(kind="note", state=state, in_reply_to=in_reply_to or self._turn.post.id)
        post = Post.create("", self._turn.role, self._turn.role, (attachment,), marks=marks)
        self._router.record(post)
        return post


def _written(note: Mapping[str, Any]) -> str:
    """As JSON, whatever a tool was given or has returned: an outcome that could not be recorded would be none."""
    try:
        return to_json(note, fallback=repr).decode()
    except Exception:  # half a surrogate pair, which UTF-8 cannot hold: escaped it can be kept; or what has no repr
        with suppress(Exception):  # what holds itself, lies too deep, or has keys that are no text
            return json.dumps(note, default=_shown)
    return json.dumps({key: value if isinstance(value, str) else _shown(value) for key, value in note.items()})


def _shown(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # one that cannot even show itself
        return f"<{type(value).__name__}>"
