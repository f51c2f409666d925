"""The command line: `python -m callboard demo`, `run FILE.yaml` and `chat`.

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
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial
from importlib import import_module
from pathlib import Path

import trio

from callboard import __version__
from callboard.runtime import CallboardError, Transcript
from callboard.runtime.backoff import Backoff
from callboard.runtime.chat_model import ChatModel
from callboard.runtime.errors import InvalidFile
from callboard.runtime.retrying_model import RetryingModel

from .demo import Outcome, demo_roles, report, run_demo
from .demo_script import demo_model
from .plain_text import plain
from .recorded_play import read_play
from .replay import run_play

INTRODUCTION = """\
Planner has CodeInterpreter read a table of 3,000 orders. While the code runs, the
user changes the question, with broadcast_level=2: the words reach CodeInterpreter
and the role above it, the code is stopped, and the same round goes on with them.
"""

FAILED, UNUSABLE, INTERRUPTED = 1, 2, 130
URL_VARIABLE, NAME_VARIABLE = "CALLBOARD_MODEL_URL", "CALLBOARD_MODEL"
"""The environment variables that name a chat's model where the options do not."""

BACKOFF = Backoff(attempts=3)
"""How a model behind HTTP is called again: whoever waits at a terminal waits three seconds at most."""


class CommandFailed(Exception):
    """What a command could not do, in a line, and the exit code for that."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


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
    return parser


def _add_demo(demo: argparse.ArgumentParser) -> None:
    demo.description = "Hold a conversation that is interrupted, with scripted replies unless a model is named."
    _add_model(demo)
    demo.set_defaults(command=_demo, parser=demo)


def _add_chat(chat: argparse.ArgumentParser) -> None:
    chat.description = (
        "Talk to a Planner and a CodeInterpreter; what is typed while they work interrupts them. The code they write"
        " runs, and may do anything you may. The environment's"
        f" {URL_VARIABLE}, {NAME_VARIABLE} and CALLBOARD_API_KEY stand in for options that are not given."
    )
    _add_model(chat)
    chat.add_argument(
        "--level", type=_level, default=1, metavar="N", help="how many roles up the superior chain words reach (1)"
    )
    named = {"model_url": os.environ.get(URL_VARIABLE), "model": os.environ.get(NAME_VARIABLE)}
    chat.set_defaults(command=_chat, parser=chat, **named)


def _add_model(command: argparse.ArgumentParser) -> None:
    command.add_argument("--save", type=Path, metavar="FILE", help="where to save the transcript, as YAML")
    command.add_argument("--model-url", metavar="URL", help="a server of models, such as http://localhost:8000/v1")
    command.add_argument("--model", metavar="NAME", help="the model's name there")
    command.add_argument("--api-key-env", metavar="VAR", help="the environment variable that holds the API key")


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
    model = _model(options) or nullcontext(demo_model())
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
    if not (options.model_url and options.model):
        ways = f"--model-url URL and --model NAME, or {URL_VARIABLE} and {NAME_VARIABLE} in the environment"
        raise CommandFailed(f"chat needs a model; name it with {ways}", UNUSABLE)
    model = _model(options)
    # By its name, since it needs termios, which is there on POSIX alone.
    chat = import_module("callboard.service.chat_console")
    kept: list[Transcript] = []
    try:
        code: int = trio.run(partial(chat.chat_with, model, kept.append, level=options.level))
    finally:
        for transcript in kept:
            _save(transcript, options.save, "chat.yaml")
    return code


def _model(options: argparse.Namespace) -> AbstractAsyncContextManager[ChatModel] | None:
    """The model that the options name, or None; exits with 2 for options that do not belong together."""
    if not options.model_url:
        if options.model or options.api_key_env:
            options.parser.error("--model and --api-key-env need --model-url")
        return None
    if not options.model:
        options.parser.error("--model-url needs --model, the name of the model")
    if options.api_key_env and not os.environ.get(options.api_key_env):
        options.parser.error(f"--api-key-env: the environment variable {options.api_key_env} is not set")
    key = os.environ[options.api_key_env] if options.api_key_env else None
    # By its name, since it brings httpx, which takes longer to load than all of callboard.
    models = import_module("callboard.runtime.models")
    try:
        model: AbstractAsyncContextManager[ChatModel] = models.HttpChatModel(
            options.model_url, name=options.model, api_key=key
        )
    except ValueError as error:
        options.parser.error(f"--model-url: {error}")
    return _retrying(model)


@asynccontextmanager
async def _retrying(model: AbstractAsyncContextManager[ChatModel]) -> AsyncIterator[ChatModel]:
    async with model as entered:
        yield RetryingModel(entered, backoff=BACKOFF)


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
