"""Material: all that a prompt is composed of, as plain values.

The rule to know: nothing here is looked up while composing, no clock and no file; the same material gives the same
messages.
"""

from __future__ import annotations

from collections.abc import Sequence

from callboard.runtime.round import Round
from callboard.runtime.summary import Summary as Summary
from callboard.runtime.value import value


@value
class Aside:
    """Text for the present round alone, such as lessons that fit it; with the next round it is gone."""

    text: str
    after: str = ""
    """The id of the post behind which it stands; empty: at the head of the round.

    What is added between two calls of a round names the newest post that there was: it then stands behind all that
    the earlier call was sent. An aside whose post is not in the present round is not shown.
    """


@value
class Example:
    """A conversation that is shown in the midst of a round, for how it goes; with the next round it is gone."""

    rounds: tuple[Round, ...]
    after: str
    """The id of the post behind which it stands, as that of an `Aside`."""


@value
class Material:
    """What one role's model is to be shown."""

    system: str
    """The system message: the same for the conversation's life, if the provider's cache is to hold."""
    role: str
    rounds: Sequence[Round] = ()
    """What memory holds for the role, oldest first. The last one is the present round."""
    lessons: tuple[Aside, ...] = ()
    examples: tuple[tuple[Round, ...], ...] = ()
    """Other conversations, for how they go; each as its rounds. The same for all calls of a round."""
    temporal: tuple[Aside, ...] = ()
    """What holds for the moment only, such as the state of a plan that others work on."""
    summaries: tuple[Summary, ...] = ()
    """In the order of their ranges."""
    requirements: str = ""
    """What every reply is to keep to: the end of the system message, or in TaskWeaver's order of the last message."""
    now: str = ""
    """The time, as the model is to read it; one text for all calls of a round. Empty: no time is told."""
    later_examples: tuple[Example, ...] = ()
    """Examples that were found in the midst of the round."""
