"""What a call in a worker process finds there of other calls, and leaves behind. It imports little: it starts often."""

import os
import sys
import tempfile
import threading
from types import ModuleType

kept: list[str] = []
local = threading.local()


def look_and_leave(mark: str, folder: str) -> str:
    """All places in which an earlier call could have left its mark; then this call leaves its own in each."""
    found = [*kept, *vars(local).values(), *sys.modules, *sys.path, *os.environ.values(), os.getcwd()]
    found.append(tempfile.gettempdir())
    kept.append(mark)
    local.mark = mark
    sys.modules[f"module_{mark}"] = ModuleType(mark)
    os.environ["LEFT_BEHIND"] = mark
    own = tempfile.mkdtemp(prefix=mark, dir=folder)
    os.chdir(own)
    tempfile.tempdir = own
    sys.path.append(own)
    return " ".join(found)
