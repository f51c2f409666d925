"""The errors of a model behind HTTP: every failure becomes one ModelError, made here.

The rule to know: what a server wrote is quoted as one short printable line, without the model's secrets, which it may
have echoed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from ..errors import ModelError

QUOTE_LIMIT = 300
"""Characters of a server's own words that an error quotes."""

_STATUS = re.compile("[1-5][0-9][0-9]")
_MAY_RETRY = frozenset({408, 425, 429})


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
            raise self._network(f"timed out ({type(error).__name__})") from error
        except (httpx.NetworkError, httpx.ProxyError) as error:
            raise self._network(f"{type(error).__name__}: {error}") from error
        except httpx.RemoteProtocolError as error:
            raise self._network(f"the reply broke off, or is no HTTP: {error}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._caller(f"{type(error).__name__}: {error}") from error

    def of_status(self, status: int, body: bytes) -> ModelError:
        """The error of a reply with another status than 200."""
        try:
            words = _words(json.loads(body))
        except (ValueError, RecursionError):
            words = body.decode(errors="replace")
        return self._of_status(status, f"HTTP {status}: {words}" if words.strip() else f"HTTP {status}")

    def of_body(self, body: dict[str, Any]) -> ModelError:
        """The error of a reply with status 200 whose body, or one of its events, holds an `error`."""
        error = body.get("error")
        code, kind = (str(error.get("code")), str(error.get("type"))) if isinstance(error, dict) else ("", "")
        status = int(code) if _STATUS.fullmatch(code) else 400 if "invalid" in kind else 500
        return self._of_status(status, f"the server reports an error: {_words(body)}")

    def broken(self, text: str, *, may_retry: bool = False) -> ModelError:
        """The error of a server that does not keep to the protocol."""
        return ModelError(self._said(text), fault="server", may_retry=may_retry)

    def _of_status(self, status: int, text: str) -> ModelError:
        if status >= 500:
            return self.broken(text, may_retry=True)
        return self._caller(text, may_retry=status in _MAY_RETRY)

    def _caller(self, text: str, *, may_retry: bool = False) -> ModelError:
        return ModelError(self._said(text), fault="caller", may_retry=may_retry)

    def _network(self, text: str) -> ModelError:
        return ModelError(self._said(text), fault="network", may_retry=True)

    def _said(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "[secret]")
        line = "".join(character for character in " ".join(text.split()) if character.isprintable())
        return f"{self.place}: {line if len(line) <= QUOTE_LIMIT else line[:QUOTE_LIMIT] + '…'}"


def _words(body: object) -> str:
    """What an error body says, in one of the shapes that servers use."""
    match body:
        case {"error": {"message": str(words)}} | {"error": str(words)}:
            return words
        case {"message": str(words)} | {"detail": str(words)}:
            return words
    return ""
