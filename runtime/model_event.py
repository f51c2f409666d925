"""Events of models: what their calls took, and what they are shown in place of what was said."""

from __future__ import annotations

from .event import Event
from .value import value


@value
class ModelCalled(Event):
    """A model call has ended, whatever ended it: how long it took, and what it used."""

    role: str
    model: str
    """The model that replied, or was called last."""
    first_delta: float | None
    """Seconds until something came, waits between calls included; None if nothing did."""
    seconds: float
    """Until the call ended."""
    input_tokens: int | None
    """None, as the other counts of tokens, if the provider did not say."""
    output_tokens: int | None
    cached_tokens: int | None
    """Of the input, those that the provider had kept from an earlier call."""
    cost: float
    """By the host's price for the model, as it counts against the limits."""


@value
class ModelRetried(Event):
    """A model call failed before anything came, and is made again after so many seconds."""

    role: str
    model: str
    reason: str
    seconds: float


@value
class ModelReplaced(Event):
    """A model call failed before anything came, and is made to another model."""

    role: str
    model: str
    reason: str
    by: str
    """The name of the other model."""


@value
class RoundsSummarized(Event):
    """From now on a summary stands for rounds of these roles: those from `first` to `upto`, and all before."""

    roles: tuple[str, ...]
    first: str
    upto: str


@value
class SummaryFailed(Event):
    """There is no summary of these rounds: they are shown as they are, and it is tried again in a later round."""

    roles: tuple[str, ...]
    first: str
    upto: str
    problem: str
