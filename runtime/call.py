"""Call: one call of a tool by a role, from its note to its outcome, whatever ends it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
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
        self._note: Post | None = None
        """What was recorded as the outcome."""

    async def run(self, arguments: Mapping[str, Any], grace: float, ladder: float) -> Any:
        """See `TurnContext.call`. `grace` is what a tool without a grace of its own has."""
        router, tool, turn = self._router, self._tool, self._turn
        if router.gate.stops(turn):
            await router.gate.wait(turn)
        self._record({"arguments": arguments})
        if router.events.wanted:
            router.events.publish(ToolBegan(turn.role, turn.post.id, tool.name, self._id))
        detail: dict[str, Any] = {}
        with inside_step(turn, router):
            try:
                await trio.lowlevel.checkpoint_if_cancelled()
                self._outcome = "interrupted"
                async with self._block(grace):
                    result = await self._running(arguments, ladder)
                    self._outcome, detail = "done", {"result": result}
                return result
            except Exception as error:
                self._outcome, detail = "failed", {"error": describe(error)}
                raise ToolFailed(tool.name, self._id, error) from error
            finally:
                self._end(detail)

    def _block(self, grace: float) -> Any:
        if self._tool.interruptible:
            return nullcontext()
        own = self._tool.grace
        return shielded_block(self._turn, self._router, check_grace(grace if own is None else own))

    async def _running(self, arguments: Mapping[str, Any], ladder: float) -> Any:
        return await self._tool.run(
            arguments, self._report, ladder=ladder, on_abandoned=self._abandoned, on_late=self._late
        )

    def _report(self, text: str) -> None:
        """Each report is a line of the progress."""
        self._draft().progress(self._tool.name, text if text.endswith("\n") else f"{text}\n", self._id)

    def _end(self, detail: Mapping[str, Any]) -> None:
        tool, turn = self._tool, self._turn
        progress = self._draft().take_progress(tool.name, self._id)
        kept = {"progress": progress.rstrip("\n")} if progress and self._outcome != "done" else {}
        state: State = "partial" if self._outcome == "interrupted" else "whole"
        self._note = self._record({"outcome": self._outcome, **detail, **kept}, state)
        if self._router.events.wanted:
            self._router.events.publish(ToolEnded(turn.role, turn.post.id, tool.name, self._id, self._outcome))

    def _abandoned(self, what: str) -> None:
        """The tool could not be ended within its limits, and the interruption does not wait for it any longer."""
        turn = self._turn
        for words in turn.causes:
            words.abandoned.append(what)
        if self._router.events.wanted:
            self._router.events.publish(WorkAbandoned(turn.role, turn.post.id, what))

    def _late(self, result: object) -> None:
        """What an abandoned tool came to in the end, as a note that refers to what was kept of it then."""
        if self._router.closed:
            return
        found = {"error": describe(result)} if isinstance(result, BaseException) else {"result": result}
        self._record(found, "late", None if self._note is None else self._note.id)

    def _record(self, content: Mapping[str, Any], state: State = "whole", in_reply_to: str | None = None) -> Post:
        note = {"call": self._id, "tool": self._tool.name, **content}
        try:
            text = to_json(note, fallback=repr).decode()
        except ValueError:  # half a surrogate pair, which UTF-8 cannot hold: escaped it can be kept
            text = json.dumps(note, default=repr)
        attachment = Attachment.create(AttachmentType.function, text)
        marks = Marks(kind="note", state=state, in_reply_to=in_reply_to or self._turn.post.id)
        post = Post.create("", self._turn.role, self._turn.role, (attachment,), marks=marks)
        self._router.record(post)
        return post
