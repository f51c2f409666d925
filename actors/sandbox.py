"""Sandbox: what a kernel's process is kept from: bubblewrap round it, and limits of the system on it.

In bubblewrap it has no network, sees the system read-only and no folder but its own, and dies with the host. The rule
to know: limits hold for each process, so memory is bounded by `memory` times `processes`; the disk by nothing but
`file_size` for each file. Where bubblewrap does not work nothing is run, unless the operator has said `none`.
"""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import trio

Isolation = Literal["bubblewrap", "none"]

# Where the interpreter and the libraries that packages load look; what is missing is left out.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_CONFIGURATION = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "fonts", "localtime", "ssl/certs")

# Seconds for a bubblewrap that does nothing.
_TRIAL = 20.0

# Each sandbox of a host that is root is another user, since the system counts a user's processes. Numbers of this size
# are nobody's; where they begin is drawn, so that two hosts do not share one.
_users = itertools.count(0x6000_0000 + secrets.randbelow(0x1000_0000))


class SandboxMissing(RuntimeError):
    """Code was not run, since bubblewrap does not work here. The operator's to mend; the message says how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """What each process of a kernel may take; they hold without bubblewrap too, except where it says so."""

    memory: int = 4 * 2**30
    """Bytes of address space; beyond, a MemoryError in the code. Also the size of /tmp and /dev/shm in bubblewrap."""
    processor: int = 3600
    """Seconds of processor time in the kernel's whole life; beyond, it is killed and its state is lost."""
    file_size: int = 2**30
    """Bytes of a file that is written."""
    processes: int = 64
    """Processes and threads at one time, in bubblewrap alone: outside, those of the host's user would count."""
    open_files: int = 512

    def __post_init__(self) -> None:
        for name in ("memory", "processor", "file_size", "processes", "open_files"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is a whole number from 1 on, not {getattr(self, name)!r}")

    def of_system(self, isolation: Isolation) -> dict[str, int]:
        """The same by the names that the module `resource` has for them."""
        limits = {
            "RLIMIT_CPU": self.processor,
            "RLIMIT_FSIZE": self.file_size,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_CORE": 0,
        }
        # macOS refuses any limit of the address space.
        if sys.platform != "darwin":
            limits["RLIMIT_AS"] = self.memory
        return {**limits, "RLIMIT_NPROC": self.processes} if isolation == "bubblewrap" else limits


def sandboxed(command: list[str], folder: Path, limits: SandboxLimits, readable: tuple[Path, ...] = ()) -> list[str]:
    """The command in bubblewrap, with `folder` to work in and what else it may read, all under their own names."""
    size = str(limits.memory)
    arguments = ["bwrap", "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-net", "--unshare-ipc"]
    arguments += ["--unshare-uts", "--unshare-cgroup-try", "--hostname", "kernel", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        arguments += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        arguments += ["--unshare-user", "--disable-userns"]
    for folder_of_system in _SYSTEM:
        arguments += _mounted(Path(folder_of_system))
    arguments += _folder_for_all("/etc") + _folder_for_all("/etc/ssl")
    for name in _CONFIGURATION:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    for temporary in ("/dev/shm", "/tmp"):
        arguments += ["--perms", "1777", "--size", size, "--tmpfs", temporary]
    shown = (*_interpreter(), *readable)
    for above in dict.fromkeys(above for path in (*shown, folder) for above in reversed(path.parents[:-1])):
        if not above.is_relative_to("/usr") and above != Path("/tmp"):
            arguments += _folder_for_all(str(above))
    for path in shown:
        arguments += ["--ro-bind", str(path), str(path)]
    return [*arguments, "--bind", str(folder), str(folder), "--remount-ro", "/", "--", *command]


def own_user(isolation: Isolation) -> int:
    """The number of the user that a kernel becomes; 0 if it stays the host's."""
    return next(_users) if isolation == "bubblewrap" and os.geteuid() == 0 else 0


async def check_isolation(isolation: Isolation) -> None:
    """Returns if code may be run so. Raises SandboxMissing, ValueError for another word."""
    if isolation not in ("bubblewrap", "none"):
        raise ValueError(f"isolation is 'bubblewrap' or 'none', not {isolation!r}")
    if isolation == "bubblewrap" and (reason := await why_not()):
        raise SandboxMissing(
            f"code is not run, since bubblewrap does not work here: {reason}. Install it (the package bubblewrap), "
            "or let code do all that the host's user may with isolation='none'"
        )


async def why_not() -> str:
    """Why bubblewrap does not work here; empty if it does. It is tried each time, which takes some 10 ms."""
    if sys.platform != "linux":
        return "it is for Linux"
    if shutil.which("bwrap") is None:
        return "there is no program bwrap"
    command = sandboxed(["/bin/true"], Path("/tmp"), SandboxLimits())
    with trio.move_on_after(_TRIAL):
        done = await trio.run_process(command, capture_stderr=True, check=False, stdin=subprocess.DEVNULL)
        said = done.stderr.decode(errors="replace").strip()
        return (said or f"exit code {done.returncode}") if done.returncode else ""
    return f"it has not ended within {_TRIAL:g} s"


def find_inside(outer: int, inner: int) -> int | None:
    """The host's number of the process below `outer` that has the number `inner` in its sandbox."""
    parents: dict[int, int] = {}
    named: list[int] = []
    for entry in os.listdir("/proc"):
        if not entry.isdecimal():
            continue
        try:
            lines = Path(f"/proc/{entry}/status").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:  # it has gone
            continue
        fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        parents[int(entry)] = int(fields["PPid"])
        numbers = fields.get("NSpid", "").split()
        if len(numbers) > 1 and int(numbers[-1]) == inner:
            named.append(int(entry))
    return next((pid for pid in named if outer in _above(pid, parents)), None)


def _above(pid: int, parents: dict[int, int]) -> list[int]:
    found = []
    while (pid := parents.get(pid, 0)) > 1:
        found.append(pid)
    return found


def _folder_for_all(path: str) -> list[str]:
    # Those above a mount, bubblewrap would make for the host's user alone.
    return ["--perms", "0755", "--dir", path]


def _mounted(path: Path) -> list[str]:
    if path.is_symlink():
        return ["--symlink", os.readlink(path), str(path)]
    return ["--ro-bind", str(path), str(path)] if path.exists() else []


def _interpreter() -> list[Path]:
    """The folders that the interpreter and its packages are in, without those in /usr."""
    found = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent]
    return [path for path in dict.fromkeys(found) if not path.is_relative_to("/usr")]
