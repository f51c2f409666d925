"""Job: one call that a host makes into trio's thread, and what becomes of it.

The rule to know: a job ends once, in trio's thread, whatever happens to either side; whoever made it may rely on that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Generic, TypeVar

import trio

from ..errors import ConversationClosed

T = TypeVar("T")


class Job(Generic[T]):
    """An async function, called in a task of its own, with the context variables of whoever made the job."""

    def __init__(self, function: Callable[[], Awaitable[T]], *, keeps: bool = False) -> None:
        self._function = function
        self._context = copy_context()
        self._scope = trio.CancelScope()
        self._result: tuple[T] | None = None
        self.keeps = keeps
        """Whether it keeps a conversation open: on shutdown these end before all others."""
        self.taken = False
        """Whether it has come to trio's thread."""
        self.ended = False
        self.error: BaseException | None = None
        """What the function raised, but for its cancellation."""
        self.on_ended: Callable[[], None] = lambda: None
        """Called once, in trio's thread."""

    def begin(self, nursery: trio.Nursery, begin_next: Callable[[], None]) -> bool:
        """Starts the call, in trio's thread; whether its first step is to come, in which `begin_next` is called."""
        self._context.run(nursery.start_soon, self._run, begin_next)
        return True

    def cancel(self) -> None:
        """Ends the call, in trio's thread; `on_ended` follows when its clean-up is done. Safe to repeat.

        One that has not come to the thread ends here: whoever was to bring it may have been interrupted.
        """
        if self.taken:
            self._scope.cancel(reason="the host stopped waiting")
        else:
            self.refuse()

    def refuse(self) -> None:
        """Ends a job that was never begun, in trio's thread."""
        if not self.ended:
            self._end()

    def unwrap(self) -> T:
        """What the function returned, or raised; ConversationClosed if it was cancelled."""
        if self._result is not None:
            return self._result[0]
        try:
            raise self.error or ConversationClosed("the host is closed")
        finally:
            del self  # the error's traceback holds this frame

    async def _run(self, begin_next: Callable[[], None]) -> None:
        begin_next()
        try:
            with self._scope:
                self._result = (await self._function(),)
        except BaseException as error:
            cancelled, self.error = _split(error)
            if cancelled is not None:
                raise cancelled from None
        finally:
            self._end()

    def _end(self) -> None:
        self.ended = True
        self.on_ended()


class SyncJob(Job[T]):
    """A function that cannot wait: it is called between two steps of everything else."""

    def __init__(self, function: Callable[[], T]) -> None:
        async def call() -> T:
            return function()

        super().__init__(call)
        self._call = function

    def begin(self, nursery: trio.Nursery, begin_next: Callable[[], None]) -> bool:
        """Calls it here and now, unless it was cancelled before."""
        if self._scope.cancel_called:
            self.refuse()
            return False
        try:
            self._result = (self._context.run(self._call),)
        except BaseException as error:  # the caller's, whatever it is: it must not end the other calls
            self.error = error
        self._end()
        return False


def _split(error: BaseException) -> tuple[BaseException | None, BaseException | None]:
    """The cancellation in an error, and the rest; an error without one stays the object it is."""
    if isinstance(error, trio.Cancelled):
        return error, None
    cancelled, rest = error.split(trio.Cancelled) if isinstance(error, BaseExceptionGroup) else (None, error)
    return (None, error) if cancelled is None else (cancelled, rest)
