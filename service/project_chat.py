"""Project chat: a chat with the roles of a project's settings."""

from __future__ import annotations

from collections.abc import Callable

from callboard.runtime import Transcript

from .chat import hold_chat
from .chat_console import open_console
from .chat_screen import Line
from .project import Project


async def chat_in_project(project: Project, keep: Callable[[Transcript], None], *, level: int = 1) -> int:
    """A chat over the program's own input and output with the project's roles; as `hold_chat`."""
    async with project.opened() as root:
        with open_console() as console:
            names = ", ".join(role.actor.name for role in project.roles)
            console.screen.say(Line(f"{names}, of {project.file.path}. /help lists the commands.", "dim"))
            lessons = project.settings.experience.folder
            return await hold_chat(root, console, keep, level=level, options=project.options, lessons=lessons)
