"""The command line: `python -m callboard demo`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import trio

from callboard import __version__
from callboard.demo import Outcome, run_demo
from callboard.narrator import WIDTH, fit, tree_of

INTRODUCTION = """\
Editor asks Researcher, Researcher asks Collector, and Collector reads a table.
While it reads, the user changes the question, with broadcast_level=2: the words
reach Collector and the role above it. Rows that were read are not read again.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and gives the exit code; wrong usage exits with 2."""
    options = _parser().parse_args(arguments)
    code = 0
    try:
        code = _demo(options.save)
    except* KeyboardInterrupt:
        code = 130
    except* BrokenPipeError:
        # The reader has gone. Without this Python would fail once more when it flushes at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="callboard", description="Conversations between roles of LLM agents that a user can interrupt."
    )
    parser.add_argument("--version", action="version", version=f"callboard {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    demo = commands.add_parser(
        "demo", help="hold a conversation that is interrupted", description="Hold a conversation that is interrupted."
    )
    demo.add_argument("--save", type=Path, metavar="FILE", help="where to save the transcript, as YAML")
    return parser


def _demo(path: Path | None) -> int:
    show = partial(print, flush=True)
    show(INTRODUCTION)
    outcome = trio.run(run_demo, show)
    for line in report(outcome):
        show(line)
    path = path or Path(tempfile.mkdtemp(prefix="callboard-")) / "demo.yaml"
    try:
        outcome.transcript.save(path)
    except OSError as error:
        print(f"callboard: the transcript was not saved: {path}: {error.strerror or error}", file=sys.stderr)
        return 1
    show(f"\nThe transcript, as YAML: {path}")
    return 0


def report(outcome: Outcome) -> Iterator[str]:
    """What is left to say after the conversation: the receipt, the work that was cut, the answer, all posts."""
    receipt = outcome.receipt
    yield "\nThe receipt of the user's words"
    yield f"  action       {receipt.action}"
    for name in ("reached", "interrupted", "recalled", "told", "spared"):
        yield f"  {name:12} {', '.join(getattr(receipt, name)) or '-'}"
    yield f"  seen         {'yes' if outcome.seen else 'no'}"
    yield "\nWhat was kept of the work that was cut"
    if not outcome.stopped.posts:
        yield "  nothing: no work was under way"
    for post in outcome.stopped.posts:
        yield f"  {post.send_from}, {post.marks.state}:"
        yield from (f"    {fit(line, WIDTH - 4)}" for line in post.message.splitlines())
    yield f"\nThe answer\n  {outcome.answer.message}"
    yield "\nThe posts, each below the request it belongs to"
    for round_ in outcome.transcript.rounds:
        yield from (f"  {line}" for line in tree_of(round_, WIDTH - 2))


if __name__ == "__main__":
    sys.exit(main())
