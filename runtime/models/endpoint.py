"""Endpoint: an address of a provider's to which requests are posted, with its connections, key and errors.

The rule to know: httpx must never queue. Its pool loses a slot for each request that is cancelled while it waits for
one, so the pool has no limit and a limiter of trio's stands before it.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, TypedDict

import httpx
import trio

from .body import SentBody, start_of_body
from .http_error import HttpErrors
from .line_reader import LINE_LIMIT

REPLY_LIMIT = 1 << 26
"""Bytes that the body of a reply may have: far beyond the longest, with all that is around its words."""

_SHORTEST_SECRET = 8


class ConnectionOptions(TypedDict, total=False):
    """How requests are sent; all of it has defaults that are the common case."""

    headers: Mapping[str, str]
    """Headers to send besides its own."""
    client: httpx.AsyncClient
    """A client to use and leave open, in place of one of its own. It must not limit its connections; if it keeps
    cookies, all conversations send them."""
    line_limit: int
    """Bytes that a line of a stream may have, and the data of an event."""
    reply_limit: int
    """Bytes that the body of a reply may have."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key, and the header in which it goes to the server; an empty one is not sent."""

    value: str = field(repr=False)
    header: str = "Authorization"
    scheme: str = "Bearer "

    @property
    def headers(self) -> dict[str, str]:
        """What is sent."""
        return {self.header: self.scheme + self.value} if self.value else {}


def key_of(given: str | None, variable: str) -> str:
    """The key that was given, else that of the environment; empty for none."""
    return (os.environ.get(variable, "") if given is None else given).strip()


def checked_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options for the server. Raises ValueError, or TypeError, for what JSON cannot hold."""
    json.dumps(options, allow_nan=False)
    return options


class Connection:
    """How an endpoint is reached: `timeout` and `limit` as HttpChatModel has them, and what `options` holds for it.

    What it takes it takes out of `options`: the rest is for the server.
    """

    def __init__(self, timeout: float, limit: int, options: dict[str, Any]) -> None:
        self.timeout = httpx.Timeout(timeout, pool=None)
        self.limit = limit
        self.headers: dict[str, str] = dict(options.pop("headers", {}))
        self.client: httpx.AsyncClient | None = options.pop("client", None)
        self.line_limit: int = options.pop("line_limit", LINE_LIMIT)
        self.reply_limit: int = options.pop("reply_limit", REPLY_LIMIT)


class Endpoint:
    """Where one model's requests go: `async with endpoint`, then `post`. Raises ValueError for what cannot be used."""

    def __init__(self, base_url: str, path: str, name: str, key: ApiKey, connection: Connection) -> None:
        self.connection = connection
        self._url = _address(base_url, path)
        self._headers = _headers(key, connection.headers)
        given = [text for text in connection.headers.values() if len(text) >= _SHORTEST_SECRET]
        place = f"{name} at {self._url.scheme}://{self._url.netloc.decode()}"
        self.errors = HttpErrors(place, tuple(text for text in [key.value, *given] if text))
        self.limiter = trio.CapacityLimiter(connection.limit)
        self._client: httpx.AsyncClient | None = None

    async def open(self) -> None:
        """Makes the client. Raises RuntimeError if that has been done."""
        if self._client is not None:
            raise RuntimeError("this model has been entered already")
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=int(self.limiter.total_tokens))
        await trio.lowlevel.checkpoint()
        self._client = self.connection.client or httpx.AsyncClient(
            limits=limits, verify=_trusted(), cookies=_no_cookies()
        )

    async def close(self) -> None:
        """Closes the client, unless it was given."""
        client, self._client = self._client, None
        if client is not None and client is not self.connection.client:
            await client.aclose()

    @asynccontextmanager
    async def post(self, body: Mapping[str, Any], kind: str) -> AsyncIterator[httpx.Response]:
        """The server's answer of that content type, looked at up to its body.

        At most `limit` run at once, others wait. Cancelled, or the block left early: the connection is closed at once.
        Raises ModelError.
        """
        if self._client is None:
            raise RuntimeError("a model is used inside `async with model`")
        content = json.dumps(body).encode()
        borrower = object()  # not the task, which may have several streams open
        await self.limiter.acquire_on_behalf_of(borrower)
        try:
            async with self._response(self._client, content, kind) as response:
                yield response
        finally:
            self.limiter.release_on_behalf_of(borrower)

    def __repr__(self) -> str:
        return f"<Endpoint {self.errors.place}{self._url.path}>"

    @asynccontextmanager
    async def _response(self, client: httpx.AsyncClient, content: bytes, kind: str) -> AsyncIterator[httpx.Response]:
        with self.errors.mapped():
            headers, timeout = self._headers.copy(), self.connection.timeout
            headers["Accept"] = kind
            sent = client.build_request("POST", self._url, content=content, headers=headers, timeout=timeout)
            sent.stream = SentBody(content)
            response = await client.send(sent, stream=True, follow_redirects=False)
        try:
            with self.errors.mapped():
                await self._check(response, kind)
            yield response
        finally:
            await response.aclose()

    async def _check(self, response: httpx.Response, kind: str) -> None:
        """Raises ModelError unless the answer is of that content type."""
        coding = response.headers.get("content-encoding", "identity")
        found = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code == 200 and found == kind and coding == "identity":
            return
        body = await start_of_body(response) if coding == "identity" else b""
        if response.status_code != 200:
            raise self.errors.of_status(response.status_code, body, response.headers)
        with suppress(ValueError, RecursionError):
            data = json.loads(body)
            if isinstance(data, dict) and data.get("error"):
                raise self.errors.of_body(data)
        raise self.errors.broken(f"the reply is {found or 'of no type'} in {coding}, not plain {kind}")


@cache
def _trusted() -> ssl.SSLContext:
    """The certificates of this machine, read once for all clients: it takes 40 ms and blocks the loop."""
    return httpx.create_ssl_context()


def _no_cookies() -> CookieJar:
    """A jar that keeps none: by a cookie the server would take all conversations for one client's session."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))


def _address(base_url: str, path: str) -> httpx.URL:
    """Where to post. Raises ValueError, without the address, for one that may hold a password."""
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        raise ValueError("the base_url is no URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("the base_url must begin with http:// or https:// and name a host")
    if url.userinfo:
        raise ValueError("the base_url holds a password, which logs would show; give it in headers")
    return url.copy_with(path=url.path.rstrip("/") + path)


def _headers(key: ApiKey, given: Mapping[str, str]) -> httpx.Headers:
    """The headers of each request. Raises ValueError, without its text, for one that cannot be sent."""
    for name, text in {key.header: key.value, **given}.items():
        if not (text.isascii() and text.isprintable()):
            whose = f"{name} (the API key)" if name == key.header else name
            raise ValueError(f"the header {whose} has a character that no header may have")
    # A compressed stream may be held back until a block is full.
    headers = httpx.Headers({"Content-Type": "application/json", "Accept-Encoding": "identity"})
    headers.update({**key.headers, **given})
    return headers
