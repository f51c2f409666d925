"""Library: templates by name, from one's own folders first and last from those that come with callboard.

The rule to know: a library reads and checks all its files when it is made, and nothing afterwards; what is changed on
disk is seen by the next library. So a conversation that keeps one sends the same system message all its life.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

from callboard.runtime.json_value import JsonValue
from callboard.runtime.transcript_file import FilePath

from .slots import SLOTS
from .tag import Include, TemplateFault, is_path
from .template import Source, Template, near
from .template_folder import read_folder, read_package

MOST_INCLUDED = 20
"""How many templates may stand within each other."""

_Chain: TypeAlias = tuple[tuple[str, int], ...]
"""Names, and in which folder each was found, from the first that includes."""


class Library:
    """The templates of the folders, a role's own before the project's; those of callboard stand behind.

    A file replaces that of the same name in the folders behind it, and may include it: ``{{include original}}``.
    Raises InvalidFile, with file and line, for whatever is wrong in any of the templates that are in use, a slot too
    that the name of the template does not have.
    """

    __slots__ = ("_layers", "_parsed", "names")

    def __init__(self, *folders: FilePath) -> None:
        self._layers = (*(read_folder(Path(folder)) for folder in folders), _come_along())
        self._parsed: dict[tuple[str, int], Template] = {}
        self.names = tuple(sorted({name for layer in self._layers for name in layer}))
        """Of all its templates."""
        for name in self.names:
            template = self._load(name)
            if name in SLOTS:
                template.check_slots(SLOTS[name])

    def __repr__(self) -> str:
        return f"<Library of {len(self.names)} templates in {len(self._layers)} folders>"

    def find(self, name: str, *, slots: Collection[str] | None = None) -> Template:
        """The template of that name; `slots` are those that there will be values for.

        Raises ValueError for a path, and for an unknown name with those there are; InvalidFile for another slot.
        """
        if is_path(name):
            raise ValueError(f"{name!r} is a path; a template has a name alone")
        if name not in self.names:
            raise ValueError(f"there is no template {name!r}; it may be {near(name, self.names)}")
        template = self._load(name)
        if slots is not None:
            template.check_slots(slots)
        return template

    def render(self, name: str, /, **values: JsonValue) -> str:
        """The text of a template with the values in it; raises what `find` and `Template.render` raise."""
        return self.find(name).render(**values)

    def parse(self, text: str, name: str = "text") -> Template:
        """A template of one's own that may include those of this library; raises InvalidFile."""
        return Template.parse(Source(name, text), partial(self._include, ((name, -1),)))

    def _load(self, name: str, behind: int = 0, chain: _Chain = ()) -> Template:
        """The first of the name from that folder on."""
        layer = next((i for i, there in enumerate(self._layers) if i >= behind and name in there), None)
        if layer is None:
            what = "there is no original behind it" if behind else f"there is no template {name!r}"
            remedy = "remove the include" if behind else f"include {near(name, self.names)}"
            raise TemplateFault(what, 0, remedy)
        key = (name, layer)
        parsed = self._parsed.get(key)
        names = (*(above for above, _ in chain), *(parsed.chain if parsed else [name]))
        if key in chain:
            raise TemplateFault(f"templates include each other without end: {' → '.join(names)}", 0)
        if len(names) > MOST_INCLUDED:
            raise TemplateFault(f"more than {MOST_INCLUDED} templates within each other: {' → '.join(names)}", 0)
        if parsed is None:
            parsed = Template.parse(self._layers[layer][name], partial(self._include, (*chain, key)))
            self._parsed[key] = parsed
        return parsed

    def _include(self, chain: _Chain, include: Include) -> Template:
        name, layer = chain[-1]
        return self._load(name, layer + 1, chain) if include.name is None else self._load(include.name, 0, chain)


@cache
def _come_along() -> Mapping[str, Source]:
    return read_package("callboard.prompts")


packaged = Library()
"""The templates that come with callboard, and no others."""
