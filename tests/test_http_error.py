"""The errors of models behind HTTP: which class each answer has, and when a server wants to be asked again."""

import json
import time
from email.utils import formatdate

import pytest

from callboard.runtime.errors import (
    AuthenticationFailed,
    BrokenStream,
    ContentRefused,
    ContextTooLong,
    ModelError,
    ModelTimedOut,
    Overloaded,
    RateLimited,
)
from callboard.runtime.models.http_error import QUOTE_LIMIT, HttpErrors
from callboard.runtime.models.retry_after import retry_after

from .model_server import HEAD, chunks, endless, failure, piece, saying

ERRORS = HttpErrors("small at http://host", ("sk-secret",))


def of_status(status: int, error: object = None, **headers: str) -> ModelError:
    body = b"" if error is None else json.dumps({"error": error}).encode()
    return ERRORS.of_status(status, body, {name.replace("_", "-"): text for name, text in headers.items()})


@pytest.mark.parametrize(
    ("status", "error", "kind", "fault", "may_retry"),
    [
        (401, None, AuthenticationFailed, "caller", False),
        (403, None, AuthenticationFailed, "caller", False),
        (403, "your input was flagged", ContentRefused, "caller", False),
        (429, {"message": "slow down"}, RateLimited, "caller", True),
        (429, {"message": "pay", "code": "insufficient_quota"}, RateLimited, "caller", False),
        (400, {"message": "no", "code": "context_length_exceeded"}, ContextTooLong, "caller", False),
        (400, {"message": "the request exceeds the available context size"}, ContextTooLong, "caller", False),
        (400, {"message": "prompt is too long: 210000 tokens > 200000 maximum"}, ContextTooLong, "caller", False),
        (413, None, ContextTooLong, "caller", False),
        (400, {"message": "no", "code": "content_filter"}, ContentRefused, "caller", False),
        (400, {"message": "no such option"}, ModelError, "caller", False),
        (425, None, ModelError, "caller", True),
        (408, None, ModelTimedOut, "server", True),
        (504, None, ModelTimedOut, "server", True),
        (503, None, Overloaded, "server", True),
        (529, None, Overloaded, "server", True),
        (500, {"message": "oops"}, ModelError, "server", True),
    ],
)
def test_a_status_has_a_class(status: int, error: object, kind: type, fault: str, may_retry: bool) -> None:
    found = of_status(status, error)
    assert (type(found), found.fault, found.may_retry) == (kind, fault, may_retry)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("overloaded_error", Overloaded),
        ("rate_limit_error", RateLimited),
        ("authentication_error", AuthenticationFailed),
        ("timeout_error", ModelTimedOut),
        ("invalid_request_error", ModelError),
    ],
)
def test_an_error_in_a_stream_has_the_class_of_its_name(name: str, kind: type) -> None:
    assert type(ERRORS.of_body({"error": {"type": name, "message": "x"}})) is kind


def test_an_error_names_the_member_that_was_refused() -> None:
    said = of_status(400, {"message": "not supported", "param": "response_format"}).message
    assert said.endswith("HTTP 400: response_format: not supported")


def test_a_body_of_no_known_shape_is_quoted_whole_and_never_a_secret() -> None:
    body = {"detail": [{"loc": ["body", "tools"], "msg": "sk-secret"}], "rest": "x" * 999}
    said = ERRORS.of_status(422, json.dumps(body).encode(), {}).message
    assert '"tools"' in said and "sk-secret" not in said and len(said) < QUOTE_LIMIT + 30


async def test_silence_and_a_broken_reply_have_their_classes() -> None:
    assert isinstance(await failure(endless, timeout=0.01), ModelTimedOut)
    assert isinstance(await failure(saying(HEAD + "ff\r\ndata: ")), BrokenStream)
    assert isinstance(await failure(chunks(f"data: {json.dumps(piece('a'))}\n\n")), BrokenStream)


@pytest.mark.parametrize("status", [429, 503, 500])
def test_an_error_says_when_to_ask_again(status: int) -> None:
    assert of_status(status, retry_after="7").retry_after == 7
    assert of_status(status).retry_after is None


async def test_what_a_server_says_of_when_reaches_the_error() -> None:
    error = await failure(saying("HTTP/1.1 429 Slow\r\nRetry-After: 12\r\nContent-Length: 0\r\n\r\n"))
    assert isinstance(error, RateLimited) and error.retry_after == 12


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "9", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Tue, 29 Oct 2030 16:56:32 GMT", "date": "Tue, 29 Oct 2030 16:56:02 GMT"}, 30),
        ({"retry-after": "Tue, 29 Oct 2030 16:56:32 GMT", "date": "Tue, 29 Oct 2030 17:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_a_number_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_date_without_the_server_s_time_is_held_against_ours() -> None:
    assert retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)}) == pytest.approx(60, abs=5)
