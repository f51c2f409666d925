"""The examples are programs that run as they stand: each is a process of its own, talked to by a real client."""

import ast
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from callboard.experience.pool import ExperiencePool

from .test_imports import ROOT

FOLDER = ROOT / "examples"
LIMIT = 20
"""Real seconds after which a program counts as hung."""
LINES = 60
NEEDS_SERVERS = pytest.mark.skipif(
    find_spec("fastapi") is None or find_spec("uvicorn") is None, reason="needs the extra callboard[services]"
)

PRINTED = {
    "careful_agent": """\
Agent wants to call send_mail with {"to": "all", "text": "Tea costs 3 euros."}
Agent wants to call send_mail with {"to": "Ada", "text": "Tea costs 3 euros."}
the first question is withdrawn - taken: True
Ada knows.
""",
    "task_types": """\
Total the invoices of March. - The task is of the type invoice.
  lesson: To total what a supplier charges for March: add the net amounts, then the tax once.
Total the tickets of March. - The task is of the type journey.
  lesson: To total what a supplier charges for March: add the gross amounts; tax is in them already.
Total the weather of March. - The task is of no type that is known.
  lesson: ?
""",
    "research_team": """\
interrupted: Costs Markets - recalled: Asia Europe Prices Wages
kept: half of Asia, half of Europe, half of Prices, half of Wages
interrupted: Prices
Europe on suppliers in 2025
Asia on suppliers in 2025
Prices on suppliers in 2025 in euros
Wages on suppliers in 2025
""",
    "notebook": """\
All about suppliers
interrupted: Analyst
kept: half of prices
All about prices in 2025
  User to Analyst: suppliers
  Analyst to User: All about suppliers
  User to Analyst: prices
  Analyst to Analyst: half of prices
  User to Analyst: in 2025
  Analyst to User: All about prices in 2025
""",
    "typed_answer": """\
Late: Arco, 2 days
Late: Bolt, 5 days
  User: Who delivers late?
  Analyst: {"title": "Late", "delays": [{"supplier": "Arco"}]}
  User: This was no valid answer: delays.0.days: Field required. Give the whole answer again.
  Analyst: {"title": "Late", "delays": [{"supplier": "Arco", "days": 2}, {"supplier": "Bolt", "days": 5}]}
""",
}

PART = re.compile(r"^<!-- not run: a part of (\S+) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARKS = {name: pytest.mark.slow for name in ("careful_agent", "notebook", "research_team", "task_types")}
"""A process for each takes its time; one of them is run by default."""


def start(*command: str) -> subprocess.Popen[str]:
    """A program of Python's that treats warnings as errors."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", *command],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def serving(command: Callable[[int], list[str]]) -> Iterator[int]:
    """A service on a free port, which is given; it has written no traceback when it is ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with start(*command(port)) as service:
        try:
            wait_for_port(port, service)
            yield port
        finally:
            service.terminate()
            _, said = service.communicate(timeout=LIMIT)
    assert "Traceback" not in said, said


def wait_for_port(port: int, service: subprocess.Popen[str]) -> None:
    """Until somebody listens there. Fails if the service ends before."""
    give_up = time.monotonic() + LIMIT
    while service.poll() is None and time.monotonic() < give_up:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise AssertionError(f"nobody listens: {service.poll()}")


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in PRINTED])
def test_an_example_prints_what_it_says(name: str) -> None:
    with start(str(FOLDER / f"{name}.py")) as program:
        printed, said = program.communicate(timeout=LIMIT)
    assert (program.returncode, said) == (0, "")
    assert printed == PRINTED[name]


async def test_what_is_alike_finds_one_and_the_same_lesson_for_both_types_of_task(tmp_path: Path) -> None:
    for number, file in enumerate(sorted((FOLDER / "task_types" / "lessons").rglob("*.yaml"))):
        text = file.read_text(encoding="utf-8").replace("exp_id: total", f"exp_id: total{number}")
        (tmp_path / f"handcrafted_exp_total{number}.yaml").write_text(text, encoding="utf-8")
    pool = ExperiencePool(tmp_path)
    await pool.refresh()
    queries = ("Total the invoices of March.", "Total the tickets of March.")
    first, second = [await pool.retrieve(query, threshold=0.1) for query in queries]
    assert [one.lesson.id for one in first] == [one.lesson.id for one in second]
    assert len(first) == 2


def test_the_tcp_service_answers_once_what_was_said_in_the_middle() -> None:
    with (
        serving(lambda port: [str(FOLDER / "trio_tcp_service.py"), str(port)]) as port,
        socket.create_connection(("127.0.0.1", port), LIMIT) as client,
        client.makefile(encoding="utf-8") as answers,
    ):
        client.sendall(b"suppliers\n")
        time.sleep(0.02)
        client.sendall(b"in 2025\n")
        assert answers.readline() == "suppliers in 2025\n"


def events_of(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """The server-sent events of a response: their names and data."""
    name = ""
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, value


@pytest.mark.slow
@NEEDS_SERVERS
def test_the_web_service_streams_what_happens_and_takes_words_in_the_middle() -> None:
    def uvicorn(port: int) -> list[str]:
        return ["-m", "uvicorn", "--app-dir", str(FOLDER), "--port", str(port), "fastapi_service:app"]

    with serving(uvicorn) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=LIMIT) as client:
        with client.stream("GET", "/answers", params={"question": "suppliers"}) as response:
            events = events_of(response.iter_lines())
            id = next(events)[1].strip('"')
            names = [name for name, _ in until("DraftGrew", events)]
            said = client.post(f"/conversations/{id}", params={"words": "in 2025"})
            rest = list(events)
        assert names == ["RoundBegan", "PostRecorded", "AttemptBegan", "DraftGrew"]
        assert said.json() == "intervened"
        assert [name for name, _ in rest].count("AttemptCut") == 1
        assert rest[-1][0] == "RoundEnded" and '"state": "finished"' in rest[-1][1]
        assert any('"message": "suppliers in 2025"' in data for name, data in rest if name == "PostRecorded")
        while (late := client.post(f"/conversations/{id}", params={"words": "more"}).json()) == "missed":
            pass
        assert late == "ended"


def until(last: str, events: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The events up to the first of that name."""
    for name, data in events:
        yield name, data
        if name == last:
            return


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short_and_says_how_to_run_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text)) or ""
    assert len(text.splitlines()) < LINES
    assert re.search(rf"^    (python|uvicorn) .*{path.stem}", docstring, re.MULTILINE)


def test_the_parts_of_programs_in_the_page_on_services_stand_in_those_programs() -> None:
    page = (ROOT / "docs" / "services.md").read_text(encoding="utf-8")
    parts = PART.findall(page)
    assert len(parts) == page.count("<!-- not run") == 5
    for path, part in parts:
        assert part in (ROOT / path).read_text(encoding="utf-8"), f"{path} is another than docs/services.md says"


def test_every_example_is_run() -> None:
    served: set[Any] = {"trio_tcp_service", "fastapi_service"}
    assert {path.stem for path in FOLDER.glob("*.py")} == served | set(PRINTED)
