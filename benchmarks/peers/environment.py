"""Environment: a virtual environment for each peer, in the cache folder of the user, made once for its requirements."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from .roster import Peer

INSTALL_SECONDS = 900
"""The longest that pip may take for one peer."""

# No peer is to call home or to fetch anything while its trial runs.
QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
}


class NotInstalled(Exception):
    """A peer cannot be installed here; the message is the last that pip said."""


def cache_folder() -> Path:
    """Where the environments are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "callboard-peers"


def interpreter(peer: Peer) -> Path:
    """The Python that runs this peer's driver, with its requirements installed. Raises NotInstalled."""
    if not peer.requirements:
        return Path(sys.executable)
    folder = cache_folder() / peer.key
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wanted = "\n".join(peer.requirements)
    installed = folder / ".installed"
    if not installed.exists() or installed.read_text(encoding="utf-8") != wanted:
        venv.create(folder, clear=True, with_pip=True)
        _install(python, peer)
        installed.write_text(wanted, encoding="utf-8")
    return python


def _install(python: Path, peer: Peer) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.requirements]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"pip took longer than {INSTALL_SECONDS} s") from None
    if done.returncode:
        raise NotInstalled(next(reversed(done.stderr.strip().splitlines()), "pip failed"))
