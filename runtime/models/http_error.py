"""The errors of a model behind HTTP: every failure becomes one ModelError, made here.

The rule to know: what a server wrote is quoted as one short printable line, without the model's secrets, which it may
have echoed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from ..errors import (
    AuthenticationFailed,
    BrokenStream,
    ContentRefused,
    ContextTooLong,
    ModelError,
    ModelTimedOut,
    Overloaded,
    RateLimited,
)
from .retry_after import retry_after

QUOTE_LIMIT = 300
"""Characters of a server's own words that an error quotes."""

_STATUS = re.compile("[1-5][0-9][0-9]")
_STATUS_OF_TYPE = {
    "authentication_error": 401,
    "permission_error": 403,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_TOO_LONG = re.compile("context[ _](length|window|size)|(prompt|input) is too long|too many (input )?tokens", re.I)
_REFUSED = re.compile("content[ _](filter|policy|management)|moderation|flagged|ResponsibleAI", re.I)


@dataclass(frozen=True, slots=True)
class HttpErrors:
    """Makes the errors of one model."""

    place: str
    """The model's name and address, for the front of each message."""
    secrets: tuple[str, ...] = field(repr=False)
    """What no message may hold."""

    @contextmanager
    def mapped(self) -> Iterator[None]:
        """Turns what httpx raises in the block into errors of this model."""
        try:
            yield
        except httpx.TimeoutException as error:
            said = self._said(f"timed out ({type(error).__name__})")
            raise ModelTimedOut(said, fault="network", may_retry=True) from error
        except (httpx.ConnectError, httpx.ProxyError) as error:
            said = self._said(f"{type(error).__name__}: {error}")
            raise ModelError(said, fault="network", may_retry=True) from error
        except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
            said = self._said(f"the reply broke off, or is no HTTP: {error or type(error).__name__}")
            raise BrokenStream(said, fault="network", may_retry=True) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            said = self._said(f"{type(error).__name__}: {error}")
            raise ModelError(said, fault="caller", may_retry=False) from error

    def of_status(self, status: int, body: bytes, headers: Mapping[str, str]) -> ModelError:
        """The error of a reply with another status than 200."""
        try:
            data = json.loads(body)
            words, kind = _words(data), _kind(data)
        except (ValueError, RecursionError):
            words, kind = body.decode(errors="replace"), ""
        text = f"HTTP {status}: {words}" if words.strip() else f"HTTP {status}"
        return self._of(status, text, kind, retry_after(headers))

    def of_body(self, body: dict[str, Any]) -> ModelError:
        """The error of a reply with status 200 whose body, or one of its events, holds an `error`."""
        error, kind = body.get("error"), _kind(body)
        code = str(error.get("code")) if isinstance(error, dict) else ""
        known = _STATUS_OF_TYPE.get(kind, 400 if "invalid" in kind else 500)
        status = int(code) if _STATUS.fullmatch(code) else known
        return self._of(status, f"the server reports an error: {_words(body)}", kind)

    def broken(self, text: str, *, may_retry: bool = False) -> BrokenStream:
        """The error of a server that does not keep to the protocol."""
        return BrokenStream(self._said(text), fault="server", may_retry=may_retry)

    def refused(self, text: str) -> ContentRefused:
        """The error of a provider that gives no reply, or only half of one, for what it would say."""
        return ContentRefused(self._said(text), fault="caller", may_retry=False)

    def _of(self, status: int, text: str, kind: str, after: float | None = None) -> ModelError:
        said = self._said(text)
        match status:
            case 429:
                may_retry = kind != "insufficient_quota"
                return RateLimited(said, fault="caller", may_retry=may_retry, retry_after=after)
            case 503 | 529:
                return Overloaded(said, fault="server", may_retry=True, retry_after=after)
            case 408 | 504:
                return ModelTimedOut(said, fault="server", may_retry=True, retry_after=after)
            case _ if status >= 500:
                return ModelError(said, fault="server", may_retry=True, retry_after=after)
        return self._of_caller(status, f"{kind} {text}", said, after)

    def _of_caller(self, status: int, text: str, said: str, after: float | None) -> ModelError:
        if _REFUSED.search(text):
            return ContentRefused(said, fault="caller", may_retry=False)
        if status in (401, 403):
            return AuthenticationFailed(said, fault="caller", may_retry=False)
        if status == 413 or _TOO_LONG.search(text):
            return ContextTooLong(said, fault="caller", may_retry=False)
        return ModelError(said, fault="caller", may_retry=status == 425, retry_after=after)

    def _said(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "[secret]")
        line = "".join(character for character in " ".join(text.split()) if character.isprintable())
        return f"{self.place}: {line if len(line) <= QUOTE_LIMIT else line[:QUOTE_LIMIT] + '…'}"


def _words(body: object) -> str:
    """What an error body says, in one of the shapes that servers use, or all of it."""
    match body:
        case {"error": {"message": str(words), "param": str(about)}} if about and about not in words:
            return f"{about}: {words}"
        case {"error": {"message": str(words)}} | {"error": str(words)}:
            return words
        case {"message": str(words)} | {"detail": str(words)}:
            return words
    return json.dumps(body) if body else ""


def _kind(body: object) -> str:
    """The name that the server has for the error, such as `rate_limit_error`; empty if it gives none."""
    match body:
        case {"error": {"code": str(kind)}} if kind and not _STATUS.fullmatch(kind):
            return kind
        case {"error": {"type": str(kind)}}:
            return kind
    return ""
