"""The bodies of httpx: that of a request, and of a response its start, its end, and leaving it in between.

The rule to know: whoever reads a body does it inside `closing`, and reads it raw. The decoders of httpx may fail in
the middle of its nested generators, which would then be left open.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx
import trio

_ERROR_LIMIT = 1 << 16
_ERROR_SECONDS = 5.0
_DRAIN_SECONDS = 0.5


class SentBody(httpx.AsyncByteStream):
    """The body of a request. httpx has an async generator for it, which is left open by a request that is cut in it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Once([self._content])


class _Once:
    """An async iterator over what is there already."""

    def __init__(self, items: list[bytes]) -> None:
        self._items = items

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._items:
            raise StopAsyncIteration
        return self._items.pop(0)


async def start_of_body(response: httpx.Response) -> bytes:
    """As much as comes soon of a body that says what went wrong."""
    body = bytearray()
    async with closing(response.aiter_raw()) as chunks:
        with trio.move_on_after(_ERROR_SECONDS), suppress(httpx.HTTPError):
            async for chunk in chunks:
                body += chunk
                if len(body) > _ERROR_LIMIT:
                    break
    return bytes(body[:_ERROR_LIMIT])


async def drain(chunks: AsyncIterator[bytes]) -> None:
    """Reads the end of a body behind the complete reply: only then is the connection used again."""
    with trio.move_on_after(_DRAIN_SECONDS), suppress(httpx.HTTPError):
        async for _ in chunks:
            pass


@asynccontextmanager
async def closing(chunks: AsyncIterator[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
    """Ends the nested generators of httpx when the block is left.

    `aclose` would end the outermost alone. Cancelled while it reads, all of them end; nothing is waited for.
    """
    try:
        yield chunks
    finally:
        with trio.CancelScope(shield=True) as scope, suppress(httpx.HTTPError):
            scope.cancel(reason="the reply is not read any further")
            async for _ in chunks:
                pass
