"""Experience: the settings by which a role is given lessons."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Experience:
    """Lessons of one folder."""

    folder: Path
    use: bool = True
    dynamic_sub_path: bool = False
    limit: int | None = None
    threshold: float | None = None
