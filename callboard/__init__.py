"""callboard: conversations between roles of LLM agents, run as trio actors.

The import names are `callboard.runtime`, `callboard.actors`, `callboard.prompts` and `callboard.experience`;
this module holds the version and imports none of them.
"""

__version__ = "0.1.0"
