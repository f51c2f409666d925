"""When a server wants to be asked again, out of the headers of its reply."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from math import isfinite


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from now on: of `retry-after-ms`, else of `Retry-After`, a number or a date. None if neither says."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after", "")
    seconds = _number(said)
    if seconds is not None:
        return seconds
    then = _moment(said)
    if then is None:
        return None
    # The server's own clock, if it tells the time: ours may be another.
    now = _moment(headers.get("date", ""))
    return max(0.0, then - (time.time() if now is None else now))


def _number(text: str) -> float | None:
    with suppress(ValueError):
        number = float(text)
        if isfinite(number) and number >= 0:
            return number
    return None


def _moment(text: str) -> float | None:
    with suppress(ValueError, OverflowError):
        return parsedate_to_datetime(text).timestamp()
    return None
