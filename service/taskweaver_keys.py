"""TaskWeaver's keys: what those of `taskweaver_config.json` are called in the settings, and what the others lack here.

The rule to know: a key that asks for a protection which callboard does not give is refused. What merely has no use
here is left out, and told.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from .settings_file import Place

SETTINGS_NAMES = {"planner": "Planner", "code_generator": "CodeInterpreter", "echo": "Echo"}
"""The packaged roles by the names that begin their keys."""

ROLES = {"planner": "Planner", "code_interpreter": "CodeInterpreter", "echo": "Echo"}
"""The packaged roles by the names in `session.roles`."""

ROLE_KEYS: dict[str, tuple[str, str]] = {
    "use_experience": ("experience", "use"),
    "experience_dir": ("experience", "folder"),
    "dynamic_experience_sub_path": ("experience", "dynamic_sub_path"),
    "use_example": ("examples", "use"),
    "example_base_path": ("examples", "folder"),
    "dynamic_example_sub_path": ("examples", "dynamic_sub_path"),
}
"""What stands behind a settings name: the section and its key."""

KEYS: dict[str, Place] = {
    "session.max_internal_chat_round_num": ("limits", "replies"),
    "session.experience_dir": ("experience", "folder"),
    "experience.retrieve_threshold": ("experience", "threshold"),
    "experience.llm_alias": ("experience", "model"),
}

TREE_KEYS = ("session.roles", "planner.llm_alias", "code_generator.llm_alias", "code_interpreter.max_retry_count")
"""What says something of the tree of roles."""

MODEL_KEYS: dict[str, Place] = {
    "api_type": ("api",),
    "api_base": ("url",),
    "api_key": ("key",),
    "model": ("name",),
    "response_format": ("schema_as",),
}
SERVICE_KEYS: dict[str, Place] = {
    **{name: place for name, place in MODEL_KEYS.items() if name != "api_type"},
    **{name: ("options", name) for name in ("temperature", "max_tokens", "top_p", "seed", "stop")},
}
"""Behind `llm.openai.` and `llm.anthropic.`, where they count before those behind `llm.`."""
SERVICES = ("openai", "anthropic")

EXTRA_MODELS = "ext_llms.llm_configs"

REFUSED = {
    ("execution_service.kernel_mode", "container"): "code runs as a process of the host's user, in no container",
    ("code_interpreter.code_verification_on", True): "code is not looked through before it runs",
}
"""By key and value."""
DONE_ANYWAY = {("execution_service.kernel_mode", "local"), ("code_interpreter.code_verification_on", False)}

_LEFT_OUT = {
    "*.prompt_file_path": "templates of your own stand in the folder that `prompts` names",
    "*.prompt_compression": "rounds are not made shorter by settings",
    "*.compression_prompt_path": "rounds are not made shorter by settings",
    "*.role_name": "a role is named in the tree of roles",
    "round_compressor.*": "rounds are not made shorter by settings",
    "code_generator.*plugin*": "there are no plugins; a role of your own calls tools",
    "plugin.*": "there are no plugins; a role of your own calls tools",
    "llm.embedding_*": "the embedder is chosen in Python",
    "llm.use_mock": "a ReplayModel plays what was recorded, in Python",
    "llm.mock.*": "a ReplayModel plays what was recorded, in Python",
    "llm.use_smoother": "replies are shown as they come",
    "llm.*": "this service, or this option of it, is none of callboard's; options stand in `models`",
    "experience.default_exp_prompt_path": "templates of your own stand in the folder that `prompts` names",
    "experience.refresh_experience": "lessons are made when you ask for it",
    "code_interpreter.*": "CodeInterpreter takes `parameters` in the tree of roles",
    "execution_service.*": "code runs as a process of its own, in no kernel",
    "workspace.*": "each conversation has a folder of its own; `parameters: {folder: …}` of CodeInterpreter keeps it",
    "logging.*": "nothing is logged; `conversation.events()` tells what happens",
    "tracing.*": "nothing is traced; `conversation.events()` tells what happens",
    "session_manager.*": "conversations are held by a Board",
    "role.*": "a role of your own stands in the tree of roles as package.module:Class",
    "echo.decorator": "Echo answers with the very message",
    **{
        f"{name}.*": "there is no such role; one of your own stands in the tree of roles as package.module:Class"
        for name in ("document_retriever", "web_search", "web_explorer", "image_reader", "recepta")
    },
}


def why_left_out(key: str) -> str | None:
    """Why a known key of the original has no use here; None if it is unknown."""
    return next((reason for pattern, reason in _LEFT_OUT.items() if fnmatchcase(key, pattern)), None)


def similar_keys(key: str) -> tuple[str, ...]:
    """The keys that could be meant by one that is unknown."""
    head = key.partition(".")[0]
    names = [head, *(name for name in SETTINGS_NAMES if name != head)]
    of_models = [f"llm.{name}" for name in MODEL_KEYS]
    return (*(f"{name}.{rest}" for name in names for rest in ROLE_KEYS), *KEYS, *TREE_KEYS, *of_models, EXTRA_MODELS)
