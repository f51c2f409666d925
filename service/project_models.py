"""A project's models: made of its settings, with the keys that stand in the environment.

The rule to know: the environment is asked for the variables that `key_env` names, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callboard.runtime.backoff import Backoff
from callboard.runtime.errors import InvalidFile

from .project_settings import ProjectSettings
from .served_model import ServedModel, serve
from .settings import ModelSettings
from .settings_file import Place


class MissingKey(Exception):
    """The environment variable of a key is not set."""


def make_models(read: ProjectSettings, environ: Mapping[str, str]) -> tuple[dict[str, ServedModel], list[InvalidFile]]:
    """The models by name, and what is wrong with the others."""
    models: dict[str, ServedModel] = {}
    faults: list[InvalidFile] = []
    for name, settings in read.settings.models.items():
        place: Place = ("models", name)
        try:
            backoff = Backoff(attempts=settings.attempts)
            models[name] = serve(settings.api, _arguments(settings, _key(settings, environ)), backoff)
        except MissingKey:
            # The name is not shown: whoever mistook the key for it would find the key in a log.
            what = "the environment variable that it names is not set"
            faults.append(read.file.fault((*place, "key_env"), what, "set it, or name another"))
        except (ValueError, TypeError) as error:
            faults.append(read.file.fault(place, f"the model cannot be made: {error}", "correct its settings"))
    return models, faults


def _key(settings: ModelSettings, environ: Mapping[str, str]) -> str:
    """The key; empty for none, so that no other variable is asked."""
    if settings.key_env is None:
        return "" if settings.key is None else settings.key.get_secret_value()
    if not (key := environ.get(settings.key_env, "").strip()):
        raise MissingKey
    return key


def _arguments(settings: ModelSettings, key: str) -> dict[str, Any]:
    url = {} if settings.url is None else {"base_url": settings.url}
    said = {name: getattr(settings, name) for name in ("name", "timeout", "limit", "schema_as")}
    return {**settings.options, **url, **said, "api_key": key}
