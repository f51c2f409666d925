"""BlockingBridge: how code that blocks calls into trio's thread, and what Ctrl-C does meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ParamSpec, TypeVar

from ..conversation import Conversation
from ..errors import ConversationClosed
from .job import Job, SyncJob
from .trio_thread import TrioThread

T = TypeVar("T")
P = ParamSpec("P")

KEYBOARD = "interrupted from the keyboard"
"""The reason of a round that Ctrl-C has stopped."""


class BlockingBridge:
    """Any thread may call, but trio's own: it would wait for itself."""

    def __init__(self, thread: TrioThread, conversation: Conversation | None = None) -> None:
        self.thread = thread
        self._conversation = conversation
        """Whose round an interruption stops."""

    def stopping(self, conversation: Conversation) -> BlockingBridge:
        """One whose calls, when they are interrupted, stop this conversation's round."""
        return BlockingBridge(self.thread, conversation)

    def run(self, function: Callable[P, Awaitable[T]], *arguments: P.args, **options: P.kwargs) -> T:
        """What an async function gives that is called in trio's thread, with the caller's context variables.

        KeyboardInterrupt: the call is cancelled, and that leaves here when its clean-up is done; a second one leaves at
        once. Raises what the function raises, that very object; ConversationClosed if the host is closed.
        """
        return self._outcome(Job(partial(function, *arguments, **options)))

    def call(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """As `run`, for a function that cannot wait."""
        return self._outcome(SyncJob(partial(function, *arguments, **options)))

    def perform(self, job: Job[T], decided: threading.Event | None = None) -> threading.Event:
        """Gives a job to trio's thread, waits until it has ended or set `decided`, and gives the event of its end.

        Interrupted, at whatever moment: the job is cancelled, and that leaves here when its clean-up is done. Raises
        ConversationClosed if the host is closed, RuntimeError in trio's own thread.
        """
        if self.thread.is_current():
            raise RuntimeError("a role called a blocking verb: it would wait for its own thread")
        ended = threading.Event()
        decided = decided or ended
        job.on_ended = partial(_set_both, ended, decided)
        try:
            self.thread.submit(job)
            decided.wait()
        except ConversationClosed:
            raise
        except BaseException:
            if self._conversation is not None:
                self.thread.soon(self._conversation.stop, KEYBOARD)
            if self.thread.soon(job.cancel):
                ended.wait()
            raise
        return ended

    def _outcome(self, job: Job[T]) -> T:
        self.perform(job)
        return job.unwrap()


def _set_both(ended: threading.Event, decided: threading.Event) -> None:
    ended.set()
    decided.set()


def wait_through(event: threading.Event) -> BaseException | None:
    """Waits for an event through one interruption, and gives it; a second one leaves at once."""
    try:
        event.wait()
    except BaseException as interruption:
        event.wait()
        return interruption
    return None
