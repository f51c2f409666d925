"""A chat with a project's roles, on the virtual clock."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from callboard.runtime import Transcript
from callboard.runtime.testing import run_seeded
from callboard.service import project_chat
from callboard.service.project import load_project

from .test_chat import Foreman, ScriptedConsole


@pytest.mark.parametrize(("seconds", "code", "told"), [(9, 0, "Dug: hole 0 hole 1 hole 2"), (2, 1, "seconds")])
def test_a_chat_is_with_the_projects_roles_and_within_its_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int, code: int, told: str
) -> None:
    (tmp_path / "callboard.yaml").write_text(f"roles: {Foreman.__module__}:Foreman\nlimits: {{seconds: {seconds}}}\n")
    console, kept = ScriptedConsole(["Dig."]), list[Transcript]()
    monkeypatch.setattr(project_chat, "open_console", lambda: nullcontext(console))
    assert run_seeded(partial(project_chat.chat_in_project, load_project(tmp_path), kept.append)) == code
    assert console.written[0] == f"Foreman, of {tmp_path / 'callboard.yaml'}. /help lists the commands."
    assert told in kept[0].rounds[0].post_list[-1].message
