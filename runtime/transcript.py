"""The record of a conversation: its rounds, and the file that TaskWeaver calls a conversation.

The rule to know: what is called `from_…` makes a new transcript of an old one, with new ids; what is called `restore…`
gives back the same one. Either the whole is good, or `InvalidFile` says what is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .errors import InvalidFile
from .ids import create_id
from .json_value import EMPTY, FrozenMapping, JsonValue, freeze, thaw
from .post import Post
from .round import Round
from .transcript_file import FilePath, dump, line_of, parse, read_text, replace_file
from .transcript_json import dump_json, json_line_of, parse_json
from .transcript_markdown import markdown_of, one_line
from .transcript_shape import KNOWN_KEYS, find_fault


@dataclass(frozen=True, slots=True)
class Transcript:
    """A record; raises ValueError for an extra that takes the name of a field, and for what is no JSON."""

    id: str
    rounds: tuple[Round, ...]
    plugins: tuple[JsonValue, ...] = ()
    roles: tuple[str, ...] = ()
    """Who takes part; whoever a post names and this does not is added, in order of appearance."""
    enabled: bool = True
    """Whether it may serve as an example."""
    extra: FrozenMapping = EMPTY
    """The file's keys that nobody here knows, written back as they were."""

    def __post_init__(self) -> None:
        if taken := KNOWN_KEYS.intersection(self.extra):
            raise ValueError(f"extra holds keys that are fields: {', '.join(sorted(taken))}")
        object.__setattr__(self, "plugins", tuple(freeze(plugin, "plugin") for plugin in self.plugins))
        object.__setattr__(self, "roles", _all_roles(self.roles, self.rounds))
        object.__setattr__(self, "extra", FrozenMapping(self.extra))

    def to_dict(self) -> dict[str, Any]:
        """The transcript as a file holds it, of plain dicts and lists."""
        return {
            "id": self.id,
            "plugins": thaw(self.plugins),
            "roles": list(self.roles),
            "enabled": self.enabled,
            "rounds": [round_.to_dict() for round_ in self.rounds],
            **thaw(self.extra),
        }

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Transcript:
        """A new transcript with the content of an old one: new ids, replies still pointing to their posts.

        Attachments keep their ids, and the roles are those that posts name. Raises InvalidFile, with the key.
        """
        _check(mapping, with_ids=False)
        return _fresh(mapping)

    @classmethod
    def restore(cls, mapping: Mapping[str, Any]) -> Transcript:
        """The transcript that `to_dict` wrote, all ids kept; raises InvalidFile, with the key."""
        _check(mapping, with_ids=True)
        return _restored(mapping)

    @classmethod
    def from_yaml(cls, path: FilePath) -> Transcript:
        """What `from_dict` makes of the content of a file; raises InvalidFile, with path, line and key."""
        return _fresh(_read(path, _YAML, with_ids=False))

    @classmethod
    def restore_yaml(cls, path: FilePath) -> Transcript:
        """The transcript that `save` wrote, all ids kept; raises InvalidFile, with path, line and key."""
        return _restored(_read(path, _YAML, with_ids=True))

    @classmethod
    def from_json(cls, path: FilePath) -> Transcript:
        """As `from_yaml`, of a file that holds JSON."""
        return _fresh(_read(path, _JSON, with_ids=False))

    @classmethod
    def restore_json(cls, path: FilePath) -> Transcript:
        """The transcript that `save_json` wrote, all ids kept; raises InvalidFile, with path, line and key."""
        return _restored(_read(path, _JSON, with_ids=True))

    def save(self, path: FilePath) -> None:
        """Write the whole file as YAML, or leave the old one as it is and raise OSError."""
        replace_file(path, dump(self.to_dict()))

    def save_json(self, path: FilePath) -> None:
        """Write the whole file as JSON, or leave the old one as it is and raise OSError."""
        replace_file(path, dump_json(self.to_dict()))

    def to_markdown(self) -> str:
        """The whole for people: headings, who said what to whom, attachments. Not to be read back."""
        enabled = [] if self.enabled else ["Not enabled: it does not serve as an example.\n"]
        roles = [f"Roles: {', '.join(map(one_line, self.roles))}\n"] if self.roles else []
        return "\n".join([f"# {one_line(self.id)}\n", *roles, *enabled, markdown_of(self.rounds)])


class _Format(NamedTuple):
    """How a file is read, and where a place in it is."""

    parse: Callable[[str], Any]
    line_of: Callable[[str, tuple[str | int, ...]], int | None]


_YAML = _Format(parse, line_of)
_JSON = _Format(parse_json, json_line_of)


def _all_roles(roles: tuple[str, ...], rounds: tuple[Round, ...]) -> tuple[str, ...]:
    posts = [post for round_ in rounds for post in round_.post_list]
    named = [name for post in posts for name in (post.send_from, post.send_to)]
    return tuple(dict.fromkeys([*roles, *named]))


def _check(mapping: object, *, with_ids: bool) -> None:
    fault = find_fault(mapping, with_ids=with_ids)
    if fault is not None:
        raise InvalidFile(fault.message, key=fault.key, remedy=fault.remedy)


def _read(path: FilePath, form: _Format, *, with_ids: bool) -> Mapping[str, Any]:
    text = read_text(path)
    try:
        mapping: Mapping[str, Any] = form.parse(text)
    except InvalidFile as error:
        raise InvalidFile(error.message, path=path, line=error.line, remedy=error.remedy) from error.__cause__
    fault = find_fault(mapping, with_ids=with_ids)
    if fault is not None:
        line = form.line_of(text, fault.place)
        raise InvalidFile(fault.message, path=path, line=line, key=fault.key, remedy=fault.remedy)
    return mapping


def _restored(mapping: Mapping[str, Any]) -> Transcript:
    rounds = tuple(Round.restore(entry) for entry in mapping["rounds"])
    return _transcript(mapping, mapping["id"], rounds, tuple(mapping.get("roles") or ()))


def _fresh(mapping: Mapping[str, Any]) -> Transcript:
    id = create_id("conv")
    rounds = [Round.from_dict(entry) for entry in mapping["rounds"]]
    new_ids = _new_ids(mapping["rounds"], rounds)
    return _transcript(mapping, id, tuple(_relinked(round_, new_ids) for round_ in rounds), ())


def _transcript(mapping: Mapping[str, Any], id: str, rounds: tuple[Round, ...], roles: tuple[str, ...]) -> Transcript:
    extra = FrozenMapping({key: value for key, value in mapping.items() if key not in KNOWN_KEYS})
    return Transcript(id, rounds, tuple(mapping.get("plugins") or ()), roles, mapping["enabled"], extra)


def _new_ids(entries: list[Mapping[str, Any]], rounds: list[Round]) -> dict[str, str]:
    pairs = zip(entries, rounds, strict=True)
    posts = (pair for entry, round_ in pairs for pair in zip(entry["post_list"] or (), round_.post_list, strict=True))
    return {entry["id"]: post.id for entry, post in posts if "id" in entry}


def _relinked(round_: Round, new_ids: Mapping[str, str]) -> Round:
    return replace(round_, post_list=tuple(_relinked_post(post, new_ids) for post in round_.post_list))


def _relinked_post(post: Post, new_ids: Mapping[str, str]) -> Post:
    asked = post.marks.in_reply_to
    if asked is None or asked not in new_ids:
        return post
    return replace(post, marks=replace(post.marks, in_reply_to=new_ids[asked]))
