"""AsyncioBridge: how tasks of an asyncio loop call into trio's thread, and how cancellation crosses, both ways."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ParamSpec, TypeVar

from .job import Job, SyncJob
from .outbox import Outbox
from .trio_thread import TrioThread

T = TypeVar("T")
P = ParamSpec("P")

Future = asyncio.Future[None]


class AsyncioBridge:
    """Belongs to the loop that runs when it is made; its coroutines are for tasks of that loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._outbox = Outbox(self._loop)
        self.thread = TrioThread("callboard-trio")
        self._outbox.on_loop_gone = self.thread.close
        self.ended, self.thread.on_ended = self.future()

    def future(self) -> tuple[Future, Callable[[], None]]:
        """A future, and what any thread may call to end it, at any time."""
        future = self._loop.create_future()
        return future, partial(self._outbox.put, partial(_settle, future))

    def submit(self, job: Job[T]) -> Future:
        """Gives a job to trio's thread, and the future that ends with it. Raises ConversationClosed, and RuntimeError
        in another loop than the host's."""
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("a TrioHost is used in the loop that opened it; for other threads there is BlockingHost")
        ended, job.on_ended = self.future()
        self.thread.submit(job)
        return ended

    async def run(self, function: Callable[P, Awaitable[T]], *arguments: P.args, **options: P.kwargs) -> T:
        """What an async function gives that is called in trio's thread, with the caller's context variables.

        Cancelled: so is the call, and this returns when its clean-up is done. Raises what the function raises, that
        very object; ConversationClosed if the host is closed.
        """
        return await self._outcome(Job(partial(function, *arguments, **options)))

    async def call(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """As `run`, for a function that cannot wait: cancelled, it has been called or never will be."""
        return await self._outcome(SyncJob(partial(function, *arguments, **options)))

    async def _outcome(self, job: Job[T]) -> T:
        ended = self.submit(job)
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            self.thread.soon(job.cancel)
            await wait_through(ended)
            if job.error is not None:
                job.unwrap()
            raise
        return job.unwrap()


async def wait_through(future: Future) -> bool:
    """Waits for a future whatever happens; whether the waiting task was cancelled meanwhile, which is then due."""
    cancelled = False
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            cancelled = True
    return cancelled


def _settle(future: Future) -> None:
    if not future.done():
        future.set_result(None)
