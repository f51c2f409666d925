"""callboard: conversations between roles of LLM agents, run as trio actors.

The packages are `callboard.runtime`, `callboard.prompts`, `callboard.experience`, `callboard.actors` and
`callboard.service`; this module holds the version and imports none of them.
"""

__version__ = "0.1.0"
