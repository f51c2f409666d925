"""The command `callboard experience`: lessons of earlier conversations, listed, shown, written, made and looked for.

The rule to know: each subcommand looks at one folder, by the same rule as a chat does, and says by names what it passed
over.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import trio

from callboard.experience.experience import Experience
from callboard.experience.lesson import Lesson
from callboard.experience.pool import ExperiencePool
from callboard.experience.report import Progress, RefreshReport
from callboard.runtime import CallboardError, ChatModel

from .command_failure import FAILED, UNUSABLE
from .experience_folder import HERE, experience_folder
from .plain_text import fit, plain
from .project_commands import add_project_option
from .project_folder import project_here

if TYPE_CHECKING:
    from .project import Project

_Model: TypeAlias = AbstractAsyncContextManager[ChatModel] | None
_Work: TypeAlias = Callable[[argparse.Namespace], Awaitable[int]]


def add_experience_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    model_of: Callable[[argparse.Namespace], _Model],
) -> None:
    """Adds it to the command line; `model_of` opens the model that the options name, or gives None."""
    parser = commands.add_parser("experience", help="lessons of earlier conversations")
    parser.description = "Lessons of earlier conversations, which roles are given for tasks that are like those."
    below = parser.add_subparsers(required=True, metavar="what")
    _add(below, "list", _list, "each lesson in a line")
    _add(below, "show", _show, "a whole lesson").add_argument("id")
    added = _add(below, "add", _add_lesson, "write a lesson of your own")
    added.add_argument("text", help="the lesson; - reads it from the input")
    added.add_argument("--id", help="what it is to be called; made unless given")
    refreshed = _add(below, "refresh", partial(_refresh, model_of), "make lessons of what was saved and written")
    refreshed.add_argument("--verify", action="store_true", help="open all files, whatever their times say")
    refreshed.add_argument("--model-url", metavar="URL", help="the server of the model that reads conversations")
    refreshed.add_argument("--model", metavar="NAME", help="the model's name there")
    refreshed.add_argument("--api-key-env", metavar="VAR", help="the environment variable that holds the API key")
    searched = _add(below, "search", _search, "the lessons that a role would be given for a query, with their scores")
    searched.add_argument("query")
    searched.add_argument("--limit", type=int, metavar="N", help="the best N alone")
    searched.add_argument("--threshold", type=float, metavar="SCORE", help="those that score as much, from -1 to 1")
    _add(below, "remove", _remove, "remove a lesson, and what it was made of").add_argument("id")


def _add(
    below: argparse._SubParsersAction[argparse.ArgumentParser], name: str, work: _Work, told: str
) -> argparse.ArgumentParser:
    parser = below.add_parser(name, help=told, description=told[0].upper() + told[1:] + ".")
    parser.add_argument(
        "--folder", type=Path, help=f"the folder of the lessons; the project's, or {HERE}, unless named"
    )
    add_project_option(parser)
    parser.set_defaults(command=partial(_run, work), parser=parser)
    return parser


def _run(work: _Work, options: argparse.Namespace) -> int:
    """The exit code; what failed is one line on stderr."""
    try:
        return trio.run(work, options)
    except CallboardError as error:
        return _complain(str(error), UNUSABLE)
    except (ValueError, OSError) as error:
        return _complain(str(error), FAILED)


def _complain(text: str, code: int) -> int:
    print(f"callboard: {' '.join(plain(text).split(chr(10)))}", file=sys.stderr)
    return code


def _project(options: argparse.Namespace) -> Project | None:
    """The project that was named, or in whose folder the program was started."""
    folder = options.project or project_here()
    if folder is None:
        return None
    # By its name, since it loads the roles.
    project: Project = import_module("callboard.service.project").load_project(folder)
    return project


def _folder(options: argparse.Namespace, project: Project | None) -> Path:
    """Where the lessons are: as named, as the project says, or else in the current folder."""
    named: Path | None = options.folder
    return experience_folder(named or (project.settings.experience.folder if project else None))


def _pool(options: argparse.Namespace) -> ExperiencePool:
    return ExperiencePool(_folder(options, _project(options)))


async def _loaded(options: argparse.Namespace) -> ExperiencePool:
    pool = _pool(options)
    await pool.load()
    for fault in pool.faults:
        _complain(f"passed over: {fault}", FAILED)
    return pool


async def _list(options: argparse.Namespace) -> int:
    pool = await _loaded(options)
    lessons = {lesson.id: lesson for lesson in pool.lessons}
    for id in sorted({*lessons, *pool.waiting}):
        waits = "  (waits for refresh)" if id in pool.waiting else ""
        print(_line(id, lessons.get(id)) + waits)
    return 0


async def _show(options: argparse.Namespace) -> int:
    pool = await _loaded(options)
    found = next((lesson for lesson in pool.lessons if lesson.id == options.id), None)
    if found is None:
        raise ValueError(f"there is no lesson {options.id!r} in {pool.folder}")
    print(plain(found.text))
    if found.raw_path:
        print(f"\nmade of {plain(found.raw_path)}")
    return 0


async def _add_lesson(options: argparse.Namespace) -> int:
    text = sys.stdin.read() if options.text == "-" else options.text
    pool = _pool(options)
    pool.folder.mkdir(parents=True, exist_ok=True)
    print(f"{await pool.add(text, options.id)}: is found after the next refresh")
    return 0


async def _refresh(model_of: Callable[[argparse.Namespace], _Model], options: argparse.Namespace) -> int:
    project = _project(options)
    served = project and project.summarizer
    opened: AbstractAsyncContextManager[ChatModel | None] = (
        model_of(options) or (served and served.opened()) or nullcontext(None)
    )
    async with opened as model:
        report = await ExperiencePool(_folder(options, project), model=model).refresh(_tell, verify=options.verify)
    for line in _report(report):
        print(line)
    for fault in report.faults:
        _complain(f"passed over: {fault}", FAILED)
    for failure in report.failures:
        _complain(f"no lesson of {failure.id}: {failure.reason}", FAILED)
    return FAILED if report.faults or report.failures else 0


def _tell(progress: Progress) -> None:
    print(f"{progress.step} {progress.id}, {progress.done + 1} of {progress.total}", flush=True)


def _report(report: RefreshReport) -> Iterator[str]:
    yield f"made of conversations: {len(report.summarized)}, new vectors: {len(report.embedded)}"
    yield f"as they were: {report.unchanged}"
    if report.waiting:
        yield f"conversations that wait for a model: {', '.join(report.waiting)}"
    if report.orphans:
        yield f"lessons whose source has gone: {', '.join(report.orphans)}"


async def _search(options: argparse.Namespace) -> int:
    experience = Experience(_folder(options, _project(options)), limit=options.limit, threshold=options.threshold)
    for found in await experience.retrieve(options.query):
        print(f"{found.score:6.3f}  {_line(found.lesson.id, found.lesson)}")
    return 0


async def _remove(options: argparse.Namespace) -> int:
    for name in await _pool(options).remove(options.id):
        print(f"removed {name}")
    return 0


def _line(id: str, lesson: Lesson | None) -> str:
    """A lesson in a line: its id and how it begins."""
    text = " ".join(plain(lesson.text).split()) if lesson is not None else "not read yet"
    return f"{id}  {fit(text, 80)}"
