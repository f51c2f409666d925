"""The errors of model calls, drawn in `errors`.

The rule to know: the class says what happened, for hosts that want to treat it apart; `fault`, `may_retry` and
`retry_after` say what to do about it, and are all that the runtime looks at.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, TypeAlias

from .callboard_error import CallboardError

Fault: TypeAlias = Literal["caller", "server", "network"]


class ModelError(CallboardError):
    """A model gave no whole reply; `fault` says whose fault it is, `may_retry` whether the same call may do better."""

    def __init__(self, message: str, *, fault: Fault, may_retry: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fault = fault
        self.may_retry = may_retry
        self.retry_after = retry_after
        """Seconds after which the server wants to be asked again, if it said so."""

    def __reduce__(self) -> tuple[object, ...]:
        made = partial(type(self), fault=self.fault, may_retry=self.may_retry, retry_after=self.retry_after)
        return made, (self.message,)


class RateLimited(ModelError):
    """The caller's fault: more was asked than the provider grants; wait `retry_after`, or, without `may_retry`, pay."""


class AuthenticationFailed(ModelError):
    """The caller's fault: the key is missing, wrong or not allowed to do this; give another."""


class ContextTooLong(ModelError):
    """The caller's fault: the messages are longer than the model takes; send fewer, or take another model."""


class ContentRefused(ModelError):
    """The caller's fault, as the provider sees it: it gives no reply to this; ask otherwise."""


class Overloaded(ModelError):
    """The server's fault: it has more to do than it can; try again later."""


class ModelTimedOut(ModelError):
    """The fault of the server, or the network: nothing came for too long; try again."""


class BrokenStream(ModelError):
    """The fault of the server, or the network: the reply broke off, or is none of the protocol's."""
