"""Held: a trio context manager that a host enters and leaves, in one task of trio's thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Generic, TypeVar

import trio

T = TypeVar("T")


class Held(Generic[T]):
    """`hold` is to be run as a job; it lasts until `leave`, or until the job is cancelled."""

    def __init__(self, manager: AbstractAsyncContextManager[T]) -> None:
        self._manager = manager
        self._left = trio.Event()
        self._value: tuple[T] | None = None
        self.on_entered: Callable[[], None] = lambda: None
        """Called in trio's thread once there is a value."""

    @property
    def entered(self) -> bool:
        """Whether there is a value."""
        return self._value is not None

    @property
    def value(self) -> T:
        """What entering gave."""
        assert self._value is not None, "read before it was entered"
        return self._value[0]

    async def hold(self) -> None:
        """Enters, waits, and leaves. Raises what the manager raises."""
        async with self._manager as value:
            self._value = (value,)
            self.on_entered()
            await self._left.wait()

    def leave(self) -> None:
        """Lets `hold` go on, in trio's thread. Safe to repeat."""
        self._left.set()


@asynccontextmanager
async def made_there(make: Callable[[], AbstractAsyncContextManager[T]]) -> AsyncIterator[T]:
    """A manager that is made where it is entered."""
    async with make() as value:
        yield value
