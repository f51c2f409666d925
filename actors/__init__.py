"""The roles that come with callboard. They are configuration: one instance may serve any number of conversations."""

from .agent import Agent
from .code_interpreter import CodeInterpreter
from .echo import Echo
from .planner import Planner
from .role import Role
from .task_type_identifier import TaskTypeIdentifier
from .user import Questions, User

__all__ = ["Agent", "CodeInterpreter", "Echo", "Planner", "Questions", "Role", "TaskTypeIdentifier", "User"]
