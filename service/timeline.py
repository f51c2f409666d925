"""Timeline: a picture of one conversation, a lane for each role, as SVG that needs nothing but itself.

The rule to know: one course gives one text, to the byte, and what roles and users wrote stands in it as text alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from xml.sax.saxutils import escape

from callboard.runtime.event import Event

from .course import Arrow, Attempt, Course, Mark, Span, course_of
from .plain_text import fit, plain

WIDTH = 960
LEFT, RIGHT = 134, 24
"""What stands beside the lanes: their names, and room for the last arrow."""
TOP, LANE, BOTTOM = 62, 74, 74
"""The height of the user's line, from lane to lane, and of what stands below the last one."""
BAR = 18
LETTER = 6.4
"""Room that a letter takes; more than it does on average in any sans-serif font of this size."""

STYLE = """\
text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.name { font-weight: 600; font-size: 13px } .faint { fill: #59636e; font-size: 11px } .words { fill: #8250df }
.page { fill: #ffffff } .lane, .grid { stroke: #d1d9e0 } .grid { stroke-dasharray: 1 4 }
.works { fill: #54aeff } .waits { fill: #b6e3ff } .piece { stroke: #0550ae; stroke-width: 1.5 }
.post { stroke: #59636e; fill: none } .tip { fill: #59636e }
.said { stroke: #8250df; stroke-width: 2; stroke-dasharray: 4 3 } .saidtip { fill: #8250df }
.cut { stroke: #cf222e; stroke-width: 2.5 } .kept { fill: #1a7f37 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .faint { fill: #9198a1 } .words { fill: #d2a8ff }
.page { fill: #0d1117 } .lane, .grid { stroke: #3d444d }
.works { fill: #1f6feb } .waits { fill: #1b3a66 } .piece { stroke: #cae8ff }
.post { stroke: #9198a1 } .tip { fill: #9198a1 }
.said { stroke: #d2a8ff } .saidtip { fill: #d2a8ff }
.cut { stroke: #ff7b72 } .kept { fill: #56d364 }
}"""


def draw_timeline(events: Iterable[tuple[float, Event]], title: str) -> str:
    """The picture of what timed events tell; an empty course is a picture of the user's lane alone."""
    course = course_of(events)
    sheet = _Sheet(course)
    body = chain(
        sheet.lanes(),
        chain.from_iterable(map(sheet.span, course.spans)),
        chain.from_iterable(map(sheet.attempt, course.attempts)),
        chain.from_iterable(map(sheet.arrow, course.arrows)),
        chain.from_iterable(sheet.cut(span) for span in course.spans if span.cut),
        chain.from_iterable(map(sheet.mark, course.marks)),
        sheet.legend(),
    )
    size = f'width="{WIDTH}" height="{sheet.height}" viewBox="0 0 {WIDTH} {sheet.height}"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title">',
        f'<title id="title">{escape(plain(title))}</title>',
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="page" width="{WIDTH}" height="{sheet.height}" rx="8"/>',
    ]
    return "\n".join([*head, *body, "</svg>"]) + "\n"


class _Sheet:
    """Where things stand, and how each is drawn."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._scale = (WIDTH - LEFT - RIGHT) / (course.end or 1.0)
        self.height = TOP + LANE * (len(course.lanes) - 1) + BOTTOM

    def x(self, at: float) -> float:
        """Where a time stands."""
        return LEFT + at * self._scale

    def y(self, role: str) -> int:
        """Where the middle of a lane stands; whoever never worked stands with the last."""
        lanes = self._course.lanes
        return TOP + LANE * (lanes.index(role) if role in lanes else len(lanes) - 1)

    def lanes(self) -> Iterator[str]:
        """The lanes with their names, and the seconds across them."""
        low = self.height - BOTTOM + 26
        for second in range(0, int(self._course.end) + 1, _step(self._course.end)):
            yield _line("grid", self.x(second), TOP, self.x(second), low)
            yield _text("faint", self.x(second), low + 12, f"{second} s", anchor="middle")
        for name in self._course.lanes:
            yield _text("name", 14, self.y(name) + 4, fit(name, 16))
            yield _line("lane", LEFT, self.y(name), WIDTH - RIGHT, self.y(name))

    def span(self, span: Span) -> Iterator[str]:
        """A bar: high where the role works, low where it waits."""
        end = self._course.end if span.end is None else span.end
        half = BAR / 4 if span.waits else BAR / 2
        place = f'x="{self.x(span.begin):.1f}" y="{self.y(span.role) - half:.1f}"'
        size = f'width="{(end - span.begin) * self._scale:.1f}" height="{2 * half:.1f}"'
        yield f'<rect class="{"waits" if span.waits else "works"}" {place} {size}/>'

    def cut(self, span: Span) -> Iterator[str]:
        """A cross at the end of a bar."""
        x, y = self.x(span.end or 0.0), self.y(span.role)
        yield _line("cut", x - 6, y - 9, x + 6, y + 9)
        yield _line("cut", x - 6, y + 9, x + 6, y - 9)

    def attempt(self, attempt: Attempt) -> Iterator[str]:
        """What the role was asked, or which attempt it is, above its bar."""
        later = [one.at for one in self._course.attempts if one.role == attempt.role and one.at > attempt.at]
        room = (min([*later, self._course.end]) - attempt.at) * self._scale - 16
        text = f"attempt {attempt.number}" if attempt.number > 1 else attempt.task
        yield from _clipped("faint", self.x(attempt.at) + 9, self.y(attempt.role) - BAR / 2 - 6, text, room)

    def arrow(self, arrow: Arrow) -> Iterator[str]:
        """A line from lane to lane with a tip at its end; the user's words are drawn on their way down."""
        x, begin, end = self.x(arrow.at), self.y(arrow.source), self.y(arrow.target)
        line, tip = ("said", "saidtip") if arrow.kind == "words" else ("post", "tip")
        way = 1 if end > begin else -1
        edge = end if arrow.target == self._course.lanes[0] else end - way * BAR / 2
        yield _line(line, x, begin, x, edge - way * 6)
        yield f'<path class="{tip}" d="M{x:.1f} {edge:.1f}l-4 {-7 * way}h8z"/>'

    def mark(self, mark: Mark) -> Iterator[str]:
        """A stroke for a piece of work, a diamond for what was kept, a text for what the user said or heard."""
        x, y = self.x(mark.at), self.y(mark.role)
        match mark.kind:
            case "piece":
                yield _line("piece", x, y - 5, x, y + 5)
            case "kept":
                yield f'<path class="kept" d="M{x - 16:.1f} {y + 22}l5 -6l5 6l-5 6z"/>'
                yield _text("kept", x - 22, y + 26, f"kept: {mark.text}", anchor="end")
            case "said":
                later = [one.at for one in self._course.marks if one.kind == "said" and one.at > mark.at]
                room = (min([*later, self._course.end]) - mark.at) * self._scale
                yield from _clipped("words", x, y - 12, f"\u201c{mark.text}\u201d", max(room - 8, 160))
            case "heard":
                yield _text("words", x - 9, y + 18, fit(mark.text, WIDTH // 16), anchor="end")

    def legend(self) -> Iterator[str]:
        """What the signs mean, in a row at the bottom."""
        y = self.height - 16
        signs = (
            ("works", f'<rect class="works" x="0" y="{y - 11}" width="22" height="14"/>'),
            ("waits for an answer", f'<rect class="waits" x="0" y="{y - 8}" width="22" height="8"/>'),
            ("a piece of work", _line("piece", 12, y - 10, 12, y + 2)),
            ("cut", _line("cut", 5, y - 10, 17, y + 2) + _line("cut", 5, y + 2, 17, y - 10)),
            ("partial work, kept", f'<path class="kept" d="M6 {y - 4}l6 -7l6 7l-6 7z"/>'),
            ("the user's words", _line("said", 0, y - 4, 22, y - 4)),
        )
        x = float(LEFT)
        for text, sign in signs:
            yield f'<g transform="translate({x:.1f} 0)">{sign}{_text("faint", 28, y, text)}</g>'
            x += 28 + LETTER * len(text) + 16


def _step(end: float) -> int:
    """From one mark of time to the next, in seconds: a round number, so that there are a dozen or so."""
    size: int = 10 ** max(0, len(str(int(end))) - 2)
    return next(size * step for step in (1, 2, 5, 10) if end <= 12 * size * step)


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(kind: str, x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _clipped(kind: str, x: float, y: float, text: str, room: float) -> Iterator[str]:
    """The text as far as there is room for it."""
    letters = int(room / LETTER)
    if text and letters > 3:
        yield _text(kind, x, y, fit(text, letters))
