"""TaskWeaver's configuration: its dotted keys, in a file of settings, put where callboard's own keys say the same.

The rule to know: nothing is dropped in silence. A key is mapped, or left out with a reason, or a fault.
"""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic import SecretStr

from callboard.runtime.errors import InvalidFile

from .settings_file import Place, SettingsFile, Source
from .taskweaver_keys import (
    DONE_ANYWAY,
    EXTRA_MODELS,
    KEYS,
    MODEL_KEYS,
    REFUSED,
    ROLE_KEYS,
    ROLES,
    SERVICE_KEYS,
    SERVICES,
    SETTINGS_NAMES,
    TREE_KEYS,
    similar_keys,
    why_left_out,
)

MODEL = "llm"
"""What the model of `llm.…` is called among the settings' models."""
SESSION_ROLES = ("planner", "code_interpreter")
"""Those of the original, unless its configuration says otherwise."""
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_FORMS = {"text": "nothing"}
_NONE = ("null", "none", "nil", "")


class LeftOut(NamedTuple):
    """A key of the original that has no use here."""

    key: str
    line: int
    reason: str


class Mapped(NamedTuple):
    """A file in callboard's own keys."""

    file: SettingsFile
    left_out: tuple[LeftOut, ...]
    faults: tuple[InvalidFile, ...]


def map_keys(file: SettingsFile) -> Mapped:
    """The file with its dotted keys put where they belong; the others stay as they are."""
    mapping = _Mapping(file)
    mapping.map_all({key: value for key, value in file.data.items() if "." in key})
    return Mapped(
        SettingsFile(file.path, mapping.data, mapping.sources), tuple(mapping.left_out), tuple(mapping.faults)
    )


class _Mapping:
    """One file's mapping."""

    def __init__(self, file: SettingsFile) -> None:
        self.data: dict[str, Any] = deepcopy({key: value for key, value in file.data.items() if "." not in key})
        self.sources = dict(file.sources)
        self.left_out: list[LeftOut] = []
        self.faults: list[InvalidFile] = []
        self._file = file
        self._own_tree = "roles" in self.data

    def map_all(self, dotted: dict[str, Any]) -> None:
        """Takes each key; those of one service after those of all, since they count before them."""
        tree: dict[str, Any] = {}
        for key in sorted(dotted, key=lambda key: key.count(".") > 1):
            value = dotted[key]
            service = dotted.get("llm.api_type", "openai")
            match key.split("."):
                case _ if isinstance(value, str | bool) and (key, value) in DONE_ANYWAY:
                    pass
                case _ if isinstance(value, str | bool) and (key, value) in REFUSED:
                    self._fault(key, REFUSED[key, value], "remove the key, if that is what you want")
                case _ if key in KEYS:
                    self._set(KEYS[key], value, key)
                case _ if key in TREE_KEYS:
                    tree[key] = value
                case ["ext_llms", "llm_configs"]:
                    self._add_models(value)
                case ["llm", *rest] if place := model_place(rest, service):
                    self._set(("models", MODEL, *place), value, key)
                case [name, rest] if rest in ROLE_KEYS:
                    section, option = ROLE_KEYS[rest]
                    self._set((section, "roles", name, option), value, key)
                case _:
                    self._leave_out(key)
        self._complete(dotted)
        if tree:
            self._grow(tree)

    def _set(self, place: Place, value: Any, key: str, source: Source | None = None) -> None:
        """Puts a value where it belongs; what stands there as a key of callboard's own is a fault."""
        source = source or self._file.source((key,))
        at: Any = self.data
        for end, part in enumerate(place[:-1], 1):
            at = at.setdefault(part, {})
            self.sources.setdefault(place[:end], source)
            if not isinstance(at, dict):
                return  # a fault of its own, which is told
        name = place[-1]
        if name in at and not self._of_original(place):
            other = self._file.source(place)
            return self._fault(key, f"{other.key} on line {other.line} says the same", "keep one of them")
        try:
            at[name] = self._converted(value, place)
        except ValueError as error:
            return self._fault(key, str(error), "correct the value")
        self.sources[place] = source

    def _of_original(self, place: Place) -> bool:
        return place not in self._file.sources

    def _converted(self, value: Any, place: Place) -> Any:
        """A value as callboard writes it; the original reads texts as what they look like."""
        text = value.strip() if isinstance(value, str) else value
        match place[-1]:
            case "key":
                return SecretStr(text) if isinstance(text, str) else value
            case "use" | "dynamic_sub_path":
                return _FLAGS.get(text.lower(), value) if isinstance(text, str) else value
            case "folder" if isinstance(text, str):
                if "${ModuleBaseDir}" in text:
                    raise ValueError("${ModuleBaseDir} is a folder of the original's; there is none here")
                return text.replace("${AppBaseDir}", ".")
            case "api" if text not in SERVICES:
                raise ValueError("callboard speaks openai, as most servers do, and anthropic")
            case "schema_as" if isinstance(text, str):
                return _FORMS.get(text, text)
            case "replies" | "limit" | "threshold" | "temperature" | "max_tokens" | "top_p":
                return _number(text)
        return None if isinstance(text, str) and place[0] == "experience" and text.lower() in _NONE else value

    def _add_models(self, configs: Any) -> None:
        if not isinstance(configs, dict):
            return self._fault(EXTRA_MODELS, "these are no models", "write a mapping of names to keys that begin llm.")
        for alias, keys in configs.items():
            service = keys.get("llm.api_type", "openai") if isinstance(keys, dict) else ""
            for key, value in keys.items() if isinstance(keys, dict) else ():
                source = self._file.source((EXTRA_MODELS, alias, key))
                if place := model_place(key.split(".")[1:], service):
                    self._set(("models", alias, *place), value, key, source)
                else:
                    reason = why_left_out(key) or "this is no key of a model's"
                    self.left_out.append(LeftOut(source.key, source.line, reason))
            if not isinstance(keys, dict):
                self._fault(EXTRA_MODELS, f"{alias} is no model", "write a mapping of keys that begin llm.")

    def _complete(self, dotted: dict[str, Any]) -> None:
        """Adds the original's defaults where they are others than callboard's."""
        for name, model in _mapping(self.data.get("models")).items():
            if self._of_original(("models", name)) and model.get("api", "openai") == "openai":
                model.setdefault("url", "https://api.openai.com/v1")
        named = {key.rpartition(".")[0] for key in dotted if key.rpartition(".")[2] in ROLE_KEYS}
        for name in named:
            entry = _mapping(_mapping(self.data.get("experience")).get("roles")).get(name)
            if isinstance(entry, dict) and self._of_original(("experience", "roles", name)):
                entry.setdefault("use", False)

    def _grow(self, keys: dict[str, Any]) -> None:
        """The tree of roles that the keys describe, unless the file has one."""
        if self._own_tree:
            for key in keys:
                self._fault(key, "the file has a tree of roles of its own", "say it there, and remove this key")
            return
        key = "session.roles" if "session.roles" in keys else next(iter(keys))
        self.sources[("roles",)] = self._file.source((key,))
        named = _packaged(keys.get("session.roles", list(SESSION_ROLES)))
        workers = [one for one in named if one != "planner"]
        if not named or (len(workers) > 1 and "planner" not in named):
            remedy = f"write any of {', '.join(ROLES)}, with planner first; for others a tree under `roles`"
            return self._fault(key, "these are no roles that callboard brings, or several without a planner", remedy)
        grown = [self._role(ROLES[one], keys) for one in workers]
        self.data["roles"] = {**self._role("Planner", keys), "subordinates": grown} if "planner" in named else grown[0]

    def _role(self, role: str, keys: dict[str, Any]) -> dict[str, Any]:
        name = next(name for name, packaged in SETTINGS_NAMES.items() if packaged == role)
        node: dict[str, Any] = {"role": role}
        if alias := keys.get(f"{name}.llm_alias"):
            node["model"] = alias
        if role == "CodeInterpreter" and "code_interpreter.max_retry_count" in keys:
            retries = _number(keys["code_interpreter.max_retry_count"])
            node["parameters"] = {"most_attempts": retries + 1 if isinstance(retries, int) else retries}
        return node

    def _leave_out(self, key: str) -> None:
        if reason := why_left_out(key):
            self.left_out.append(LeftOut(key, self._file.source((key,)).line, reason))
            return
        close = get_close_matches(key, similar_keys(key), n=1)
        self._fault(key, "there is no such key", f"write {close[0]}" if close else "remove it")

    def _fault(self, key: str, message: str, remedy: str) -> None:
        self.faults.append(self._file.fault((key,), message, remedy))


def model_place(rest: list[str], service: str) -> Place | None:
    """Where in a model's settings the key stands that ends so, behind `llm`; None if it is none for that service."""
    match rest:
        case [name]:
            return MODEL_KEYS.get(name)
        case [of, name] if of == service and of in SERVICES:
            return SERVICE_KEYS.get(name)
    return None


def _packaged(named: Any) -> list[str]:
    """The roles of a session; none if any of them is not packaged."""
    names = [one.strip() for one in named.split(",")] if isinstance(named, str) else named
    known = isinstance(names, list) and all(isinstance(one, str) and one in ROLES for one in names)
    return names if known else []


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> Any:
    """A number that stands in a text, or the value as it is."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(value) if isinstance(value, str) else value
    return value
