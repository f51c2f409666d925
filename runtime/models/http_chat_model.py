"""A model behind HTTP: the chat completions of OpenAI, which most servers of models speak, as a stream.

The rule to know: httpx must never queue. Its pool loses a slot for each request that is cancelled while it waits for
one, so the pool has no limit and a limiter of trio's stands before it.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Any, TypedDict, Unpack

import httpx
import trio

from ..chat_model import ChatRequest, Delta, ImagePart, Message, Part
from ..value import value
from .body import closing, drain, start_of_body
from .delta_stream import DeltaStream
from .http_error import HttpErrors

KEY_VARIABLE = "CALLBOARD_API_KEY"
"""The environment variable that holds the API key if none is given."""

_SHORTEST_SECRET = 8


class HttpOptions(TypedDict, total=False):
    """The options of an HttpChatModel: three for the connection, all others for the server, as it names them.

    The common ones are listed; at run time any name is taken.
    """

    headers: Mapping[str, str]
    """Headers to send besides its own."""
    client: httpx.AsyncClient
    """A client to use and leave open, in place of one of its own. It must not limit its connections; if it keeps
    cookies, all conversations send them."""
    temperature: float
    top_p: float
    seed: int
    max_tokens: int
    max_completion_tokens: int
    stop: str | Sequence[str]
    frequency_penalty: float
    presence_penalty: float
    reasoning_effort: str
    response_format: Mapping[str, Any]
    stream_options: Mapping[str, Any]
    user: str


@value
class HttpModelStatistics:
    """The requests of a model at one moment."""

    limit: int
    streaming: int
    waiting: int


class HttpChatModel:
    """A ChatModel at `base_url`, such as `http://localhost:8000/v1`: `async with HttpChatModel(...) as model`.

    `timeout` is how many seconds it may take to connect, and may pass without a byte; at most `limit` requests run at
    once, others wait. The key is `api_key` or the environment's CALLBOARD_API_KEY. No request is made twice.
    """

    def __init__(
        self,
        base_url: str,
        *,
        name: str,
        api_key: str | None = None,
        timeout: float = 60.0,
        limit: int = 64,
        **options: Unpack[HttpOptions],
    ) -> None:
        self._name = name
        self._url = _endpoint(base_url)
        key = (os.environ.get(KEY_VARIABLE, "") if api_key is None else api_key).strip()
        given = dict(options.pop("headers", {}))
        self._headers = _headers(key, given)
        long = [text for text in given.values() if len(text) >= _SHORTEST_SECRET]
        self._errors = HttpErrors(
            f"{name} at {self._url.scheme}://{self._url.netloc.decode()}", tuple(text for text in [key, *long] if text)
        )
        self._timeout = httpx.Timeout(timeout, pool=None)
        self._limiter = trio.CapacityLimiter(limit)
        self._given_client = options.pop("client", None)
        self._client: httpx.AsyncClient | None = None
        self._options = dict(options)
        json.dumps(self._options, allow_nan=False)

    @property
    def name(self) -> str:
        """The model's name, which is sent to the server and stands in events and logs."""
        return self._name

    def statistics(self) -> HttpModelStatistics:
        """How many requests run, and how many wait for one to end."""
        now = self._limiter.statistics()
        return HttpModelStatistics(int(now.total_tokens), now.borrowed_tokens, now.tasks_waiting)

    async def __aenter__(self) -> HttpChatModel:
        if self._client is not None:
            raise RuntimeError("this model has been entered already")
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=int(self._limiter.total_tokens))
        await trio.lowlevel.checkpoint()
        self._client = self._given_client or httpx.AsyncClient(limits=limits, cookies=_no_cookies())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        if client is not None and client is not self._given_client:
            await client.aclose()

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Delta]]:
        """The deltas of the reply, as the server sends them.

        Cancelled, or the block left early: the connection is closed at once. Raises ModelError.
        """
        if self._client is None:
            raise RuntimeError("a model is used inside `async with model`")
        borrower = object()  # not the task, which may have several streams open
        await self._limiter.acquire_on_behalf_of(borrower)
        try:
            async with self._response(self._client, request) as response, closing(response.aiter_raw()) as chunks:
                deltas = DeltaStream(chunks, self._errors)
                yield deltas
                if deltas.ended:
                    await drain(chunks)
        finally:
            self._limiter.release_on_behalf_of(borrower)

    def __repr__(self) -> str:
        return f"<HttpChatModel {self._errors.place}>"

    @asynccontextmanager
    async def _response(self, client: httpx.AsyncClient, request: ChatRequest) -> AsyncIterator[httpx.Response]:
        """The server's answer, looked at up to its body."""
        with self._errors.mapped():
            sent = client.build_request(
                "POST", self._url, content=self._body(request), headers=self._headers, timeout=self._timeout
            )
            response = await client.send(sent, stream=True, follow_redirects=False)
        try:
            with self._errors.mapped():
                await self._check(response)
            yield response
        finally:
            await response.aclose()

    def _body(self, request: ChatRequest) -> bytes:
        body = {"stream_options": {"include_usage": True}, **self._options, "model": self._name, "stream": True}
        body["messages"] = [_message(message) for message in request.messages]
        return json.dumps(body).encode()

    async def _check(self, response: httpx.Response) -> None:
        """Raises ModelError unless the answer is a stream of events."""
        coding = response.headers.get("content-encoding", "identity")
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code == 200 and kind == "text/event-stream" and coding == "identity":
            return
        body = await start_of_body(response) if coding == "identity" else b""
        if response.status_code != 200:
            raise self._errors.of_status(response.status_code, body)
        with suppress(ValueError, RecursionError):
            data = json.loads(body)
            if isinstance(data, dict) and data.get("error"):
                raise self._errors.of_body(data)
        raise self._errors.broken(f"the reply is {kind or 'of no type'} in {coding}, not plain text/event-stream")


def _message(message: Message) -> dict[str, Any]:
    if not message.parts:
        return {"role": message.role, "content": message.content}
    text = [{"type": "text", "text": message.content}] if message.content else []
    return {"role": message.role, "content": [*text, *map(_part, message.parts)]}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": part.url}}
    return {"type": "file", "file": {"filename": part.name, "file_data": part.url}}


def _no_cookies() -> CookieJar:
    """A jar that keeps none: by a cookie the server would take all conversations for one client's session."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))


def _endpoint(base_url: str) -> httpx.URL:
    """Where to post. Raises ValueError, without the address, for one that may hold a password."""
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        raise ValueError("the base_url is no URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("the base_url must begin with http:// or https:// and name a host")
    if url.userinfo:
        raise ValueError("the base_url holds a password, which logs would show; give it in headers")
    return url.copy_with(path=url.path.rstrip("/") + "/chat/completions")


def _headers(key: str, given: Mapping[str, str]) -> httpx.Headers:
    """The headers of each request. Raises ValueError, without its text, for one that cannot be sent."""
    for name, text in {"Authorization": key, **given}.items():
        if not (text.isascii() and text.isprintable()):
            raise ValueError(
                f"the header {name} (the API key, if Authorization) has a character that no header may have"
            )
    headers = httpx.Headers({"Accept": "text/event-stream", "Content-Type": "application/json"})
    # A compressed stream may be held back until a block is full.
    headers["Accept-Encoding"] = "identity"
    if key:
        headers["Authorization"] = f"Bearer {key}"
    headers.update(given)
    return headers
