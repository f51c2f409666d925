"""The documents are true: their programs run and print what stands below them, and their links lead somewhere.

A program waits on the virtual clock, unless it has threads or processes, beside which that clock would jump. One that
serves a port is given a free one and talked to by a real client.
"""

import contextlib
import io
import re
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.testing import run_seeded

from .test_imports import LAYERS, ROOT

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]*?) ?-->\n)?"
    r"^```python\n(?P<program>.*?)^```$(?:\n+```text\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
FASTER = 20
"""Virtual seconds in a real one where a real socket is waited for."""
LIMIT = 1000
"""Virtual seconds after which a service counts as hung."""


@dataclass(frozen=True, slots=True)
class Program:
    """A block of Python in a document."""

    place: str
    """The document and the line."""
    source: str
    printed: str | None
    reason: str | None
    """Why it is not run; None for one that is."""

    @property
    def needs_real_time(self) -> bool:
        """Whether it waits for what no clock of ours moves."""
        return any(word in self.source for word in ("threading", "open_process", "runtime.hosts", "CodeInterpreter"))

    @property
    def serves(self) -> bool:
        """Whether it waits for clients, so that it ends only when it is cancelled."""
        return "serve_tcp" in self.source


def programs(path: Path) -> Iterator[Program]:
    """Every block of Python in a document."""
    text = path.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("program"))
        yield Program(f"{path.name}:{line}", block["program"], block["printed"], block["reason"])


PROGRAMS = [program for path in DOCUMENTS for program in programs(path)]


def execute(program: Program) -> dict[str, Any]:
    """Runs the block as a module; gives its names."""
    names: dict[str, Any] = {"__name__": "document"}
    exec(compile(program.source, program.place, "exec"), names)
    return names


def on_the_virtual_clock(patch: pytest.MonkeyPatch) -> None:
    """Makes `trio.run(main)` a seeded run."""
    run = trio.run

    def run_main(main: Callable[..., Awaitable[object]], *arguments: object, **options: Any) -> object:
        return run(main, *arguments, **options) if options else run_seeded(partial(main, *arguments))

    patch.setattr(trio, "run", run_main)


@pytest.mark.parametrize("program", [one for one in PROGRAMS if not one.serves], ids=lambda program: program.place)
def test_a_program_prints_what_stands_below_it(
    program: Program, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if program.reason is not None:
        pytest.skip(program.reason)
    if not program.needs_real_time:
        on_the_virtual_clock(monkeypatch)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        names = execute(program)
        for name in [name for name in names if name.startswith("test_")]:
            fixtures = signature(names[name]).parameters
            names[name](**{fixture: request.getfixturevalue(fixture) for fixture in fixtures})
    assert program.printed is None or printed.getvalue() == program.printed


async def interrupt_clerk(port: int) -> None:
    """A client that goes on speaking while it is worked for gets one answer, with all that it said."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        await stream.send_all(b"one\n")
        await trio.sleep(1)
        await stream.send_all(b"two\nthr")
        await stream.send_all(b"ee\n")
        answer = b""
        while not answer.endswith(b"\n"):
            answer += await stream.receive_some()
        assert answer == b"You said: one, then: two, then: three\n"


async def reset_connection(port: int) -> None:
    """A client that vanishes in the middle of the work."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    await stream.send_all(b"one\n")
    await trio.sleep(1)
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.socket.close()


class Service:
    """The program of a block, serving a free port in place of its own."""

    def __init__(self, program: Program, patch: pytest.MonkeyPatch) -> None:
        self.main: Callable[[], Awaitable[None]]
        self.port = 0
        self.ready = trio.Event()
        patch.setattr(trio, "run", partial(setattr, self, "main"))
        patch.setattr(trio, "serve_tcp", self._serve_tcp)
        execute(program)

    async def _serve_tcp(self, handler: Callable[..., Awaitable[object]], port: int, *, host: str) -> None:
        (listener,) = await trio.open_tcp_listeners(0, host=host)
        self.port = listener.socket.getsockname()[1]
        self.ready.set()
        await trio.serve_listeners(handler, [listener])


@pytest.mark.parametrize("program", [one for one in PROGRAMS if one.serves], ids=lambda program: program.place)
def test_a_service_outlives_its_clients(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trio.run
    service = Service(program, monkeypatch)

    async def talk() -> None:
        with trio.fail_after(LIMIT):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(service.main)
                await service.ready.wait()
                await reset_connection(service.port)
                await interrupt_clerk(service.port)
                await trio.sleep(1)
                nursery.cancel_scope.cancel()

    run(talk, clock=MockClock(rate=FASTER))


def test_the_programs_were_found() -> None:
    assert len(PROGRAMS) == sum(path.read_text(encoding="utf-8").count("```python") for path in DOCUMENTS) >= 5


def test_a_block_that_is_not_run_says_why() -> None:
    assert all(program.reason is None or program.reason.strip() for program in PROGRAMS)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_links_of_a_document_lead_somewhere(path: Path) -> None:
    for target, heading in LINK.findall(path.read_text(encoding="utf-8")):
        linked = (path.parent / target).resolve() if target else path
        assert linked.exists(), f"{path.name} links to {target}"
        assert not heading or heading in headings(linked), f"{path.name} links to {target}#{heading}"


def headings(path: Path) -> set[str]:
    """The anchors that a forge gives to a document's headings."""
    lines = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def test_the_layers_in_the_page_for_contributors_are_those_that_are_checked() -> None:
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| [^|]* \| ([^|]*) \|$", page, re.MULTILINE)
    modules = {path.stem for path in (ROOT / "callboard" / "runtime").glob("*.py")}
    written = {number: [name for name in LAYERS[number].split() if name in modules] for number in LAYERS}
    assert {int(number): re.findall(r"`(\w+)`", names) for number, names in rows} == written


def test_a_reason_belongs_to_the_block_below_it(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    document.write_text("<!-- not run: no net -->\n```python\n1\n```\n\n```python\n2\n```\n\n```text\n3\n```\n")
    assert list(programs(document)) == [
        Program("a.md:2", "1\n", None, "no net"),
        Program("a.md:6", "2\n", "3\n", None),
    ]
