"""Commands of projects: `init` writes their settings, `check` says what would run, `--project` names their folder."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from callboard.runtime.errors import InvalidFile

from .command_failure import FAILED, UNUSABLE, CommandFailed
from .model_options import model_named
from .plain_text import plain
from .project_folder import SETTINGS, find_settings, project_here

if TYPE_CHECKING:
    from .project import Project


def add_project_commands(commands: Any) -> None:
    """`init` and `check`; `commands` are the subparsers of the command line."""
    init: argparse.ArgumentParser = commands.add_parser("init", help=f"write a {SETTINGS} to begin with")
    init.description = f"Write a {SETTINGS} with comments; one that is there is left as it is."
    init.set_defaults(command=_init)
    check: argparse.ArgumentParser = commands.add_parser("check", help="say what a project would run")
    check.description = (
        "Say what a project would run, or all that is wrong with its settings; then the exit code is 1. Roles of the"
        " project's own are imported."
    )
    check.set_defaults(command=_check)
    for command in (init, check):
        command.add_argument(
            "folder", type=Path, nargs="?", default=Path(), metavar="FOLDER", help="the project's folder (the current)"
        )


def add_project_option(command: argparse.ArgumentParser) -> None:
    """Lets a project be named."""
    what = f"a folder with settings; without it, the current folder if it has a {SETTINGS}"
    command.add_argument("--project", type=Path, metavar="FOLDER", help=what)


def project_of(options: argparse.Namespace) -> Project | None:
    """The project that the options name, with the model that they name; None without one.

    What its settings say in vain is told on stderr. Raises CommandFailed for settings that cannot be used.
    """
    folder = options.project or project_here()
    if folder is None:
        return None
    # By its name, since it brings numpy, which takes longer to load than all of callboard.
    projects = import_module("callboard.service.project")
    try:
        project: Project = projects.load_project(folder, model=model_named(options))
    except InvalidFile as error:
        raise CommandFailed(str(error), UNUSABLE) from error
    for key, line, reason in project.left_out:
        print(plain(f"callboard: {project.file.path}, line {line}, {key}: left out: {reason}"), file=sys.stderr)
    return project


def _init(options: argparse.Namespace) -> None:
    folder: Path = options.folder
    there = find_settings(folder)
    if there is not None:
        raise CommandFailed(f"{there} is there already, and is left as it is", FAILED)
    path = folder / SETTINGS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(files("callboard.service").joinpath(SETTINGS).read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandFailed(f"{path} was not written: {error.strerror or error}", FAILED) from error
    print(f"{path} is written. Name your model in it; `callboard check` then says what would run.")


def _check(options: argparse.Namespace) -> int:
    names = ("project", "project_report", "found_files")
    projects, reports, files = (import_module(f"callboard.service.{name}") for name in names)
    try:
        project: Project = projects.load_project(options.folder)
        found = trio.run(files.find_files, project.roles)
    except InvalidFile as error:
        for fault in getattr(error, "faults", (error,)):
            print(plain(str(fault)).replace("\n", " "))
        return FAILED
    for line in reports.report_project(project, found):
        print(plain(line))
    return FAILED if any(one.faults for one in found) else 0
