"""Markers: how a file holds temporal text, between markers in the text itself, as TaskWeaver writes it.

The rule to know: beside the text stands the key `temporal`, with the place of each span in the text as it is written,
markers included. Where the key is there, only the markers at these places mean something; where it is not, as in
TaskWeaver's own files, all that balance do. It is written wherever a text looks as if it had markers, so nothing that
anybody wrote becomes a span by being saved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .text import Span, Spans, Text

START, END = "{{DELIMITER_START_TEMPORAL}}", "{{DELIMITER_END_TEMPORAL}}"
KEY = "temporal"

_EITHER = re.compile(f"{re.escape(START)}|{re.escape(END)}")


def marked(string: str, spans: Spans) -> tuple[str, dict[str, Any]]:
    """The text with markers round its spans, and the key that stands beside it, if one must."""
    pieces: list[str] = []
    places: list[dict[str, Any]] = []
    at = added = 0
    for span in spans:
        pieces += string[at : span.start], START, string[span.start : span.end], END
        start, at = span.start + added, span.end
        added += len(START) + len(END)
        places.append({"start": start, "end": span.end + added, "lifetime": span.lifetime})
    pieces.append(string[at:])
    return "".join(pieces), {KEY: places} if spans or _EITHER.search(string) else {}


def unmarked(written: Any, entry: Mapping[str, Any]) -> Any:
    """The Text that a file holds as `written` in `entry`; what is no string, or has no markers, as it is.

    Raises ValueError for a place in the key `temporal` at which no span is, KeyError and TypeError for no place.
    """
    if KEY in entry:
        wrong = first_misplaced(written, entry[KEY])
        if wrong is not None:
            raise ValueError(f"{KEY}[{wrong}] is no place of a part between markers")
        return _at_places(written, entry[KEY]) if entry[KEY] else written
    return _balanced(written) if isinstance(written, str) and START in written else written


def first_misplaced(written: Any, places: Iterable[Mapping[str, Any]]) -> int | None:
    """The number of the first place that is none of a span between markers, or not behind the one before."""
    at = 0
    for number, place in enumerate(places):
        start, end = place["start"], place["end"]
        if not isinstance(written, str) or start < at or end > len(written) or start + len(START) + len(END) >= end:
            return number
        if not written.startswith(START, start) or not written.endswith(END, start, end):
            return number
        at = end
    return None


def _at_places(written: str, places: Iterable[Mapping[str, Any]]) -> Text:
    pieces: list[str] = []
    spans: list[Span] = []
    at = length = 0
    for place in places:
        before, at = written[at : place["start"]], place["end"]
        inside = written[place["start"] + len(START) : at - len(END)]
        pieces += before, inside
        length += len(before)
        spans.append(Span(length, length + len(inside), place.get("lifetime", "round")))
        length += len(inside)
    return Text("".join([*pieces, written[at:]]), tuple(spans))


def _balanced(written: str) -> Text:
    """Each pair of markers that are one another's is a span; what stands within one belongs to it."""
    pieces: list[str] = []
    spans: list[Span] = []
    at = length = depth = start = 0
    for marker in _pairs(written):
        pieces.append(written[at : marker.start()])
        length += len(pieces[-1])
        at = marker.end()
        if marker[0] == START:
            start = length if depth == 0 else start
            depth += 1
        else:
            depth -= 1
            if depth == 0 and start < length:
                spans.append(Span(start, length))
    return Text("".join([*pieces, written[at:]]), tuple(spans))


def _pairs(written: str) -> Iterator[re.Match[str]]:
    """The markers that balance, in order."""
    open: list[re.Match[str]] = []
    paired: list[re.Match[str]] = []
    for marker in _EITHER.finditer(written):
        if marker[0] == START:
            open.append(marker)
        elif open:
            paired += open.pop(), marker
    yield from sorted(paired, key=re.Match.start)
