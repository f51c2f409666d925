"""Nursery: trio's, but one exception leaves its block as itself, and only several leave as a group."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def open_nursery() -> AsyncIterator[trio.Nursery]:
    """Tasks end with the block; an exception in the block cancels them."""
    failures: list[BaseException] = []
    try:
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            except BaseException as error:
                # Raised again below: the nursery would make a group of it.
                failures.append(error)
                nursery.cancel_scope.cancel(reason="the block failed")
    except BaseExceptionGroup as crash:
        failures += crash.exceptions
    raise_failures(failures)


def raise_failures(failures: list[BaseException]) -> None:
    """Raises one as itself, several as a group, none not at all.

    Beside others a Cancelled says nothing: they brought it about, or it comes again at the next checkpoint.
    """
    others = [failure for failure in failures if not isinstance(failure, trio.Cancelled)]
    if len(others) > 1:
        raise BaseExceptionGroup("several failed together", others)
    for failure in others or failures:
        raise failure
