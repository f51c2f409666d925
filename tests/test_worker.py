"""The worker's program, as far as it can run in this process; `test_worker_process` runs it in its own."""

import io
import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from callboard.runtime import worker

from . import work_to_stop as work


def outcome(call: object, reports: list[str]) -> tuple[str, Any]:
    """What a worker answers to a call."""
    kind, content = worker.read_frame(io.BytesIO(worker._run(pickle.dumps(call), reports.append)))
    return kind, content


@pytest.mark.parametrize(
    ("function", "arguments", "name", "answer", "reports"),
    [
        (work.double, {"number": 2}, None, 4, []),
        (work.tell, {"words": ["a", "b"]}, "report", 2, ["a", "b"]),
    ],
)
def test_a_call_is_answered_with_its_result(
    function: object, arguments: Mapping[str, object], name: str | None, answer: object, reports: list[str]
) -> None:
    heard: list[str] = []
    assert outcome((function, arguments, name), heard) == ("result", answer)
    assert heard == reports


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        ("value", ValueError, "no ink"),
        ("exit", RuntimeError, "SystemExit: 3"),
        ("odd", RuntimeError, "tests.work_to_stop.Odd: one"),
    ],
)
def test_an_error_is_answered_as_one_that_can_be_sent(kind: str, error: type[Exception], said: str) -> None:
    answered, content = outcome((work.fail, {"kind": kind}, None), [])
    assert (answered, type(content), str(content)) == ("error", error, said)
    assert content.__notes__[0].startswith("In the worker process:\nTraceback")


def test_a_result_that_cannot_be_sent_is_answered_with_an_error() -> None:
    assert outcome((work.unsendable, {}, None), [])[0] == "error"


def test_a_call_that_cannot_be_read_is_answered_with_an_error() -> None:
    answered, content = worker.read_frame(io.BytesIO(worker._run(b"no pickle", lambda text: None)))
    assert (answered, isinstance(content, Exception)) == ("error", True)
