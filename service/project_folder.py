"""A project's folder: where its settings stand."""

from __future__ import annotations

from pathlib import Path

SETTINGS = "callboard.yaml"
ORIGINAL = "taskweaver_config.json"


def find_settings(folder: Path) -> Path | None:
    """The file of settings in a folder: callboard's own, or else that of the original; None if there is none."""
    return next((folder / name for name in (SETTINGS, ORIGINAL) if (folder / name).is_file()), None)


def project_here() -> Path | None:
    """The current folder, if it has a callboard.yaml."""
    return Path() if (Path() / SETTINGS).is_file() else None
