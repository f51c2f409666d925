"""What a host costs is measured over every program, in one table; nothing here asks how fast anything was."""

import json
from collections.abc import Iterator

import pytest

from benchmarks import embedding
from benchmarks._embedded import Figures, growth
from callboard.runtime.event import DraftGrew, Event, EventsDropped, RoundEnded

NAMES = ["trio, no host", "TrioHost, asyncio", "portal, asyncio", "BlockingHost", "portal, threads"]


@pytest.mark.slow
def test_every_program_has_a_row_and_a_ratio_where_it_has_a_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    embedding.main(["--smallest", "--runs", "1"])
    head, *rows = capsys.readouterr().out.splitlines()
    table = {row[: embedding.WIDTH].strip(): row[embedding.WIDTH :] for row in rows}
    assert len(head) <= len(embedding.HEAD) * embedding.WIDTH
    assert [name for name in table if "uvloop" not in name] == NAMES
    for program in embedding.programs():
        cells = table[program.name].split("  ")
        figures = [cell for cell in cells if cell.strip()]
        assert len(figures) == len(Figures._fields) == len(embedding.HEAD) - 1
        assert all((" x" in figure) == bool(program.baseline) for figure in figures)


def test_a_program_without_a_host_stands_still_while_a_role_blocks() -> None:
    alone = embedding.programs()[0]
    assert alone.measure(embedding.SMALLEST).stall > embedding.SMALLEST.stall / 2


def test_a_ratio_is_the_median_of_those_of_each_run() -> None:
    program = embedding.Program("ours", lambda sizes: figures(1.0), "theirs")
    runs = [{"ours": figures(ours), "theirs": figures(theirs)} for ours, theirs in ((9, 3), (1, 2), (4, 4))]
    assert embedding.ratios(runs, program) == [1.0] * len(Figures._fields)
    assert embedding.median([run["ours"] for run in runs]) == [4.0] * len(Figures._fields)


@pytest.mark.parametrize(
    ("field", "figure", "text"),
    [("events", 61_250.0, "61.2 k x0.50"), ("round_trip", 42e-6, "42 us x0.50"), ("stall", 0.5, "500.0 ms x0.50")],
)
def test_a_cell_has_the_unit_that_suits_it(field: str, figure: float, text: str) -> None:
    assert embedding.cell(field, figure, 0.5) == text


def test_events_that_are_missing_are_no_measure() -> None:
    assert growth(read(DraftGrew, RoundEnded, DraftGrew)) == 2
    with pytest.raises(RuntimeError, match="too slow"):
        growth(read(DraftGrew, EventsDropped))


def read(*kinds: type[Event]) -> Iterator[Event]:
    """Events of these classes, with nothing in them."""
    return (kind.__new__(kind) for kind in kinds)


def figures(figure: float) -> Figures:
    """The same everywhere."""
    return Figures(*[figure] * len(Figures._fields))


@pytest.mark.slow
def test_the_figures_are_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    embedding.main(["--smallest", "--runs", "1", "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["program"] for line in lines] == [program.name for program in embedding.programs()]
    assert all(len(line["ratios"]) == len(Figures._fields) for line in lines)
