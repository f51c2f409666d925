"""Settings: what a project's `callboard.yaml` may say, as pydantic reads it.

The rule to know: no key of a provider stands here in the clear, neither as a value that is shown nor in an error. A
file names the environment variable that holds it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)

from callboard.runtime.limits import Limits
from callboard.runtime.options import ROUND_LIMITS

TAKEN = {
    "api_key": "name the environment variable that holds the key with key_env",
    "headers": "a header may hold a secret; make this model in Python",
    "client": "make this model in Python",
    **dict.fromkeys(("name", "timeout", "limit", "schema_as"), "write it beside options"),
    **dict.fromkeys(("model", "messages", "stream"), "callboard itself sends it"),
}
"""Why an option for the server is none, and what to do instead."""


def _anchored(path: object, info: ValidationInfo) -> object:
    return anchored(path, info.context["folder"]) if isinstance(path, str) and info.context else path


def anchored(path: str, folder: Path) -> Path:
    """A path of the file, which is relative to the file's folder; raises ValueError for a home that nobody has."""
    if not path or "\0" in path:
        raise ValueError("this is no path")
    try:
        return folder / Path(path).expanduser()
    except RuntimeError as error:
        raise ValueError(str(error)) from error


def _as_role(role: object) -> object:
    return {"role": role} if isinstance(role, str) else role


def _in_no_file(key: object) -> object:
    if isinstance(key, str):
        raise ValueError("an API key stands in no file: name the environment variable that holds it with key_env")
    return key


def _check_url(url: str) -> str:
    """The URL, if it can be shown; the errors do not show it."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("a URL begins with http:// or https:// and names a host")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("a URL with a password, a query or a fragment may hold a secret: give a key by key_env")
    return url


def _check_options(options: dict[str, Any]) -> dict[str, Any]:
    for name in options:
        if reason := TAKEN.get(name):
            raise ValueError(f"{name} is no option for the server: {reason}")
    return options


Folder = Annotated[Path, BeforeValidator(_anchored)]
Words = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Variable = Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")]
Threshold = Annotated[float, Field(ge=-1, le=1)]


class Section(BaseModel):
    """A part of the settings: what it does not know is a fault."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class ModelSettings(Section):
    """A chat model."""

    api: Literal["openai", "anthropic"] = "openai"
    url: Annotated[str, AfterValidator(_check_url)] | None = Field(default=None, validate_default=True)
    name: Words
    key_env: Variable | None = None
    key: Annotated[SecretStr | None, BeforeValidator(_in_no_file)] = None
    """From `llm.api_key` alone."""
    timeout: Positive = 60.0
    limit: Count = 64
    attempts: Count = 3
    schema_as: Literal["json_schema", "tool", "json_object", "nothing"] = "json_schema"
    options: Annotated[dict[str, Any], AfterValidator(_check_options)] = Field(default={}, repr=False)

    @field_validator("url")
    @classmethod
    def _is_known(cls, url: str | None, info: ValidationInfo) -> str | None:
        if url is None and info.data.get("api") == "openai":
            raise ValueError("this key is missing: many servers speak openai")
        return url


class RoleSettings(Section):
    """A role, and all under it."""

    role: Words
    """The name of a packaged one, or ``package.module:Class``."""
    name: Words | None = None
    model: Words | None = None
    parameters: dict[str, Any] = Field(default={}, repr=False)
    subordinates: Annotated[tuple[RoleNode, ...], Field(strict=False)] = ()


RoleNode = Annotated[RoleSettings, BeforeValidator(_as_role)]


class ExperienceUse(Section):
    """Whether a role is given lessons, and which; what is not set is as the section has it."""

    use: bool = True
    folder: Folder | None = None
    dynamic_sub_path: bool = False
    limit: Count | None = None
    threshold: Threshold | None = None


class ExperienceSettings(Section):
    """Lessons of earlier conversations."""

    folder: Folder
    model: Words | None = None
    limit: Count | None = None
    threshold: Threshold | None = None
    roles: dict[str, ExperienceUse] = {}
    """By settings name."""


class ExamplesUse(Section):
    """Whether a role is given examples, and which."""

    use: bool = True
    folder: Folder | None = None
    dynamic_sub_path: bool = False


class ExamplesSettings(Section):
    """Other conversations, for how they go."""

    folder: Folder
    roles: dict[str, ExamplesUse] = {}
    """By settings name."""


class LimitSettings(Section):
    """What a round may use."""

    replies: Count | None = ROUND_LIMITS.replies
    seconds: Positive | None = None
    model_calls: Count | None = None
    tokens: Count | None = None
    cost: Positive | None = None

    def limits(self) -> Limits:
        """As a conversation takes them."""
        return Limits(**self.model_dump())


class Settings(Section):
    """All of a project's settings."""

    models: dict[Words, ModelSettings] = {}
    """By a name that roles use; the first stands for roles that name none."""
    roles: RoleNode = RoleSettings(role="Planner", subordinates=(RoleSettings(role="CodeInterpreter"),))
    import_from_project: bool = False
    prompts: Folder | None = None
    experience: ExperienceSettings
    examples: ExamplesSettings
    limits: LimitSettings = LimitSettings()
