"""Examples: the settings by which a role is given other conversations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Examples:
    """Conversations of one folder."""

    folder: Path
    use: bool = True
    dynamic_sub_path: bool = False
