"""Remote: what a model and an embedder behind HTTP have in common, their name and their endpoint's opening and end."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from .endpoint import Endpoint


class Remote:
    """Something of a provider's: `async with` opens its connections, and closes them."""

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self._name = name
        self._endpoint = endpoint

    @property
    def name(self) -> str:
        """The model's name, which is sent to the server and stands in events and logs."""
        return self._name

    async def __aenter__(self) -> Self:
        await self._endpoint.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._endpoint.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._endpoint.errors.place}>"
