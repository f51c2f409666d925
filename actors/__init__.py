"""The roles that come with callboard. They are configuration: one instance may serve any number of conversations."""

from .code_interpreter import CodeInterpreter
from .echo import Echo
from .planner import Planner
from .role import Role

__all__ = ["CodeInterpreter", "Echo", "Planner", "Role"]
