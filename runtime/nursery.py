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
                cancelled, others = _split(error)
                # The others are raised again below: the nursery would make a group of one, too.
                failures += others
                nursery.cancel_scope.cancel(reason="the block failed")
                if cancelled is not None:
                    raise cancelled from None  # only in here is the scope that catches it
    except BaseExceptionGroup as crash:
        failures += crash.exceptions
    raise_failures(failures)


def _split(error: BaseException) -> tuple[BaseException | None, list[BaseException]]:
    if isinstance(error, trio.Cancelled):
        return error, []
    if not isinstance(error, BaseExceptionGroup):
        return None, [error]
    cancelled, others = error.split(trio.Cancelled)
    return cancelled, [others] if others is not None else []


def raise_failures(failures: list[BaseException]) -> None:
    """Raises one as itself, several as a group, none not at all.

    Beside others a Cancelled says nothing: they brought it about, or it comes again at the next checkpoint.
    """
    others = [failure for failure in failures if not isinstance(failure, trio.Cancelled)]
    if len(others) > 1:
        raise BaseExceptionGroup("several failed together", others)
    for failure in others or failures:
        raise failure
