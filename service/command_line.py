"""The command line: `python -m callboard demo`, `run FILE.yaml`, `chat`, `init` and `check`.

Exit codes: 0, 1 for what failed, 2 for wrong usage and files that cannot be used, 130 for Ctrl-C, 129 and 143 for a
chat that SIGHUP or SIGTERM ended. What failed is one line on stderr.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from importlib import import_module
from pathlib import Path

import trio

from callboard import __version__
from callboard.runtime import CallboardError, Transcript
from callboard.runtime.chat_model import ChatModel
from callboard.runtime.errors import InvalidFile

from .command_failure import FAILED, INTERRUPTED, UNUSABLE, CommandFailed
from .demo import Outcome, demo_roles, report, run_demo
from .demo_script import demo_model
from .experience_command import add_experience_command
from .experience_folder import HERE
from .model_options import (
    KEY_VARIABLE,
    NAME_VARIABLE,
    URL_VARIABLE,
    add_model_options,
    complete_from_environment,
    model_named,
)
from .plain_text import plain
from .project_commands import add_project_commands, add_project_option, project_of
from .recorded_play import read_play
from .replay import run_play

INTRODUCTION = """\
Planner has CodeInterpreter read a table of 3,000 orders. While the code runs, the
user changes the question, with broadcast_level=2: the words reach CodeInterpreter
and the role above it, the code is stopped, and the same round goes on with them.
So that it runs everywhere, the code is not in a sandbox.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and gives the exit code; wrong usage exits with 2."""
    _accept_any_text()
    options = _parser().parse_args(arguments)
    try:
        code: int | None = options.command(options)
        sys.stdout.flush()
    except CommandFailed as failure:
        line = " ".join(plain(str(failure)).split("\n"))
        print(f"callboard: {line}", file=sys.stderr)
        return failure.code
    except BaseException as error:
        return _ended_by(error)
    return code or 0


def _accept_any_text() -> None:
    """Lets what a terminal cannot show be written out, in place of an error in the middle of a line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _ended_by(error: BaseException) -> int:
    """The exit code for who ended the program from outside; raises the error if it is another."""
    cause = error
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    match cause:
        case KeyboardInterrupt():
            return INTERRUPTED
        case BrokenPipeError() | OSError(errno=errno.EIO):
            # The reader has gone. Without this Python would fail once more when it flushes at its exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
    raise error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="callboard", description="Conversations between roles of LLM agents that a user can interrupt."
    )
    parser.add_argument("--version", action="version", version=f"callboard {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_demo(commands.add_parser("demo", help="hold a conversation that is interrupted"))
    _add_run(commands.add_parser("run", help="play a recorded conversation again"))
    _add_chat(commands.add_parser("chat", help="talk to the roles, also while they work"))
    add_project_commands(commands)
    add_experience_command(commands, _opened)
    return parser


def _add_demo(demo: argparse.ArgumentParser) -> None:
    demo.description = "Hold a conversation that is interrupted, with scripted replies unless a model is named."
    _add_save(demo)
    add_model_options(demo)
    add_project_option(demo)
    demo.set_defaults(command=_demo, parser=demo)


def _add_chat(chat: argparse.ArgumentParser) -> None:
    chat.description = (
        "Talk to a Planner and a CodeInterpreter; what is typed while they work interrupts them. The code they write"
        " runs, and may do anything you may. The environment's"
        f" {URL_VARIABLE}, {NAME_VARIABLE} and {KEY_VARIABLE} stand in for options that are not given. In a project"
        " the roles and models are those of its settings."
    )
    _add_save(chat)
    add_model_options(chat)
    add_project_option(chat)
    chat.add_argument(
        "--level", type=_level, default=1, metavar="N", help="how many roles up the superior chain words reach (1)"
    )
    chat.add_argument(
        "--lessons",
        type=Path,
        metavar="FOLDER",
        help=f"the folder of lessons, which /save adds to; {HERE} if it is there",
    )
    chat.set_defaults(command=_chat, parser=chat)


def _add_save(command: argparse.ArgumentParser) -> None:
    command.add_argument("--save", type=Path, metavar="FILE", help="where to save the transcript, as YAML")


def _level(text: str) -> int:
    with suppress(ValueError):
        if level := int(text):
            return level
    raise argparse.ArgumentTypeError(f"a level is a whole number other than 0, not {text!r}")


def _add_run(run: argparse.ArgumentParser) -> None:
    run.description = "Play the first question of a recorded conversation again: each role says what it said."
    run.add_argument("file", type=Path, metavar="FILE", help="a conversation as YAML, as TaskWeaver and callboard save")
    run.add_argument(
        "--execute", action="store_true", help="really run the recorded code, which may do anything you may"
    )
    run.add_argument("--save", type=Path, metavar="FILE", help="where to save the new transcript, as YAML")
    run.set_defaults(command=_run)


def _show(text: str) -> None:
    print(text, flush=True)


def _demo(options: argparse.Namespace) -> None:
    served = model_named(options)
    if served is None and (project := project_of(options)):
        served = project.first_model
    model = served.opened() if served else nullcontext(demo_model())
    _show(INTRODUCTION)
    try:
        outcome = trio.run(_hold_demo, model)
    except trio.TooSlowError:
        raise CommandFailed("the demo took too long", FAILED) from None
    except CallboardError as error:
        raise CommandFailed(str(error), FAILED) from error
    for line in report(outcome):
        _show(line)
    _save(outcome.transcript, options.save, "demo.yaml")


async def _hold_demo(model: AbstractAsyncContextManager[ChatModel]) -> Outcome:
    async with model as entered:
        return await run_demo(demo_roles(entered), _show)


def _chat(options: argparse.Namespace) -> int:
    project = project_of(options)
    if project is None:
        complete_from_environment(options)
        if not (options.model_url and options.model):
            ways = f"--model-url URL and --model NAME, or {URL_VARIABLE} and {NAME_VARIABLE} in the environment"
            raise CommandFailed(f"chat needs a model; name it with {ways}, or in a project's settings", UNUSABLE)
    kept: list[Transcript] = []
    # By their names, since they need termios, which is there on POSIX alone.
    if project is not None:
        chat = import_module("callboard.service.project_chat")
        hold = partial(chat.chat_in_project, project, kept.append, level=options.level)
    else:
        chat = import_module("callboard.service.chat_console")
        hold = partial(chat.chat_with, _opened(options), kept.append, level=options.level, lessons=options.lessons)
    try:
        code: int = trio.run(hold)
    finally:
        for transcript in kept:
            _save(transcript, options.save, "chat.yaml")
    return code


def _opened(options: argparse.Namespace) -> AbstractAsyncContextManager[ChatModel] | None:
    """The model that the options name, to be entered; None if they name none."""
    model = model_named(options)
    return None if model is None else model.opened()


def _run(options: argparse.Namespace) -> None:
    try:
        play = read_play(options.file)
    except InvalidFile as error:
        raise CommandFailed(str(error), UNUSABLE) from error
    try:
        transcript = trio.run(partial(run_play, play, _show, execute=options.execute))
    except CallboardError as error:
        raise CommandFailed(str(error), FAILED) from error
    if play.left_over:
        _show(f"\nNobody came to play {play.left_over} of the recorded posts.")
    _save(transcript, options.save, "run.yaml")


def _save(transcript: Transcript, path: Path | None, name: str) -> None:
    path = path or Path(tempfile.mkdtemp(prefix="callboard-")) / name
    try:
        transcript.save(path)
    except OSError as error:
        message = f"the transcript was not saved: {path}: {error.strerror or error}"
        raise CommandFailed(message, FAILED) from error
    _show(f"\nThe transcript, as YAML: {path}")
