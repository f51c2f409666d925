"""TrioThread: the one thread in which a host's conversations run. Any thread may give it jobs.

The rule to know: every job that was taken ends before the thread does, and a job that was not taken is refused.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import trio

from ..errors import ConversationClosed
from .job import Job, SyncJob
from .reader import Reader

T = TypeVar("T")


class TrioThread:
    """Started and closed once. Jobs begin in the order in which they were submitted.

    An interpreter that ends with the thread still there closes it and waits.
    """

    def __init__(self, name: str) -> None:
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._token: trio.lowlevel.TrioToken | None = None
        self._waiting: deque[Job[Any]] = deque()
        """Jobs that were taken and wait until the one before them has taken hold."""
        self._beginning = False
        """Whether the first step of one that was begun is still to come."""
        self._conversations: trio.Nursery | None = None
        self._others: trio.Nursery | None = None
        """Holds what keeps no conversation."""
        self._readers: weakref.WeakSet[Reader[Any]] = weakref.WeakSet()
        self._over = False
        self.error: BaseException | None = None
        """What ended the thread before it was closed."""
        self.on_ready: Callable[[], None] = lambda: None
        """Called in trio's thread once it takes jobs."""
        self.ended = threading.Event()
        """Set when all jobs have ended, and readers have what was left for them."""
        self.on_ended: Callable[[], None] = lambda: None
        """Called in trio's thread right after."""

    def start(self) -> None:
        """Starts the thread; returns at once."""
        atexit.register(self._close_at_exit)
        self._thread.start()

    def is_current(self) -> bool:
        """Whether this is called in trio's thread itself."""
        return threading.current_thread() is self._thread

    def submit(self, job: Job[Any]) -> None:
        """Gives it a job. Raises ConversationClosed if the host is closed."""
        if not self.soon(self._take, job):
            raise ConversationClosed("the host is closed")

    def soon(self, function: Callable[..., object], *arguments: Any) -> bool:
        """Calls a function in trio's thread, after what was asked for before; False if that has ended."""
        if self._token is None:
            return False
        try:
            self._token.run_sync_soon(function, *arguments)
        except trio.RunFinishedError:
            return False
        return True

    def open_reader(self, reader: Reader[T], subscribe: Callable[[], AsyncIterator[T]]) -> None:
        """Subscribes, in trio's thread; when the host is closed the reader gets what is left."""
        reader.open(subscribe)
        self._readers.add(reader)

    def close(self) -> None:
        """Takes no more jobs and ends those there are: conversations first, then what else runs. Safe to repeat."""
        self.soon(self._end)

    def join(self) -> None:
        """Waits for the thread's end, in the blocking way; raises what ended it before it was closed."""
        self._thread.join()
        atexit.unregister(self._close_at_exit)
        if self.error is not None:
            raise self.error

    def _close_at_exit(self) -> None:
        self.close()
        self._thread.join()

    def _run(self) -> None:
        try:
            trio.run(self._main)
        except BaseException as error:
            self.error = error
        self.ended.set()
        self.on_ended()

    async def _main(self) -> None:
        async with trio.open_nursery() as self._others:
            async with trio.open_nursery() as self._conversations:
                self._token = trio.lowlevel.current_trio_token()
                self.on_ready()
                try:
                    await trio.sleep_forever()
                finally:
                    self._over = True
                    self._refuse_waiting()
            for reader in list(self._readers):
                await reader.finish()
            self._others.cancel_scope.cancel(reason="the host is closed")

    def _take(self, job: Job[Any]) -> None:
        job.taken = True
        self._waiting.append(job)
        if self._over:
            self._refuse_waiting()
        elif not self._beginning:
            self._begin_next()

    def _begin_next(self) -> None:
        """Called when a job comes, and in the first step of each, before anything else of it.

        What cannot wait is called in a step of its own: after that first step, and after a cancellation on its way.
        """
        if self._waiting and isinstance(self._waiting[0], SyncJob):
            self._beginning = True
            self.soon(self._begin_waiting)
        else:
            self._begin_waiting()

    def _begin_waiting(self) -> None:
        """Begins jobs up to one whose first step is to come: what is begun beside that could take hold before it."""
        self._beginning = False
        while self._waiting and not self._beginning:
            job = self._waiting.popleft()
            nursery = self._conversations if job.keeps else self._others
            assert nursery is not None, "the token came after the nurseries"
            self._beginning = job.begin(nursery, self._begin_next)

    def _refuse_waiting(self) -> None:
        while self._waiting:
            self._waiting.popleft().refuse()

    def _end(self) -> None:
        assert self._conversations is not None, "the token came after the nursery"
        self._conversations.cancel_scope.cancel(reason="the host is closed")
