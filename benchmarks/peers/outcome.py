"""Outcome: one trial, run as a program of its own, and what its line, the server's log and the tool's log say together.

All times are seconds after the user spoke.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .environment import QUIET
from .scripted_server import Request, ScriptedServer
from .trial import QUESTION, RESULT, WORDS, piece

TRIAL_SECONDS = 90
ROOT = Path(__file__).parent.parent.parent


class NotDriven(Exception):
    """A driver did not come to its end; the message is the last that it said."""


@dataclass(frozen=True, slots=True)
class Logs:
    """What one trial left."""

    line: dict[str, Any]
    """What the driver reported."""
    requests: Sequence[Request]
    tool: Sequence[tuple[float, str]]
    """When what happened in the tool."""


def run_trial(python: Path, driver: str, mechanism: str) -> Logs:
    """One trial. Raises NotDriven."""
    with tempfile.TemporaryDirectory() as folder, ScriptedServer() as server:
        tool_log = Path(folder) / "tool.log"
        command = [str(python), "-m", f"benchmarks.peers.{driver}", server.base_url, mechanism, str(tool_log)]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env={**os.environ, **QUIET}, capture_output=True, text=True, timeout=TRIAL_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise NotDriven(f"the trial did not end within {TRIAL_SECONDS} s") from None
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or not lines:
            raise NotDriven(next(reversed(done.stderr.strip().splitlines()), "no word of why"))
        return Logs(json.loads(lines[-1]), tuple(server.requests), read_tool_log(tool_log.read_text(encoding="utf-8")))


def read_tool_log(text: str) -> list[tuple[float, str]]:
    """The lines of a tool's log."""
    parts = (line.partition(" ") for line in text.splitlines())
    return [(float(at), what) for at, _, what in parts]


def outcome(logs: Logs) -> dict[str, Any]:
    """What the table is made of."""
    said, over = logs.line["said"], logs.line["over"]
    told = next((request for request in logs.requests if request.says(WORDS)), None)
    until = told.at if told else float("inf")
    at, last = logs.tool[-1]
    return {
        "version": logs.line["version"],
        "seen": None if told is None else round(told.at - said, 4),
        "requests_without": len([request for request in logs.requests if said < request.at < until]),
        "request": None if told is None else _held(told),
        "tool": {"whole": last == "end", "ended": round(at - said, 4), "after_run": at > over},
        "run": {"over": round(over - said, 4), "how": logs.line["how"], "runs": logs.line["runs"]},
        "answered": bool(logs.line["answer"]),
        "history": logs.line["history"],
        "left": logs.line["left"],
    }


def _held(request: Request) -> dict[str, Any]:
    """What of the step before stands in the request that brings the words."""
    return {
        "question": request.says(QUESTION),
        "call": bool(request.calls),
        "answer_to_call": next(reversed(request.told_of_tools), None),
        "progress": request.says(piece(2)),
        "result": request.says(RESULT),
    }
