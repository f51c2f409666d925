"""The errors of callboard: one root, and a name that says whose fault it is and what to do.

    CallboardError
    ├── InvalidFile           a file, or data shaped like one, cannot be read
    ├── DuplicateName         two actors under one name
    ├── UnknownRole           nobody has this name
    ├── AskCycle              the ask would wait for itself
    ├── NoReply               the asked role returned None
    ├── InvalidAnswer         the answer is none of the type that was asked for
    ├── RequestRecalled       the asker stopped waiting
    ├── AttemptEnded          the context belongs to an attempt that is over
    ├── InsideTurn            the verb would wait for the turn it is called from
    ├── NobodyToAsk           the question has nobody who could answer it
    ├── PostRefused           the host's hook let a post not pass
    ├── RoleFailed            the asked role raised; its error is the ``__cause__``
    ├── LimitReached          a limit was reached: the ``__cause__`` of a RoleFailed
    ├── ToolFailed            a tool raised, or took too long
    ├── ModelError            a model gave no reply
    │   ├── RateLimited           more was asked than is granted
    │   ├── AuthenticationFailed  the key is wrong
    │   ├── ContextTooLong        the messages are too long for the model
    │   ├── ContentRefused        the provider gives no reply to this
    │   ├── Overloaded            the server has too much to do
    │   ├── ModelTimedOut         nothing came for too long
    │   └── BrokenStream          the reply broke off, or is none of the protocol's
    ├── Missed                the words met nobody
    ├── ConversationClosed    the conversation is gone
    ├── RoundStopped          somebody stopped the round
    ├── BoardClosed           the board is gone, or goes
    └── BoardFull             the board holds as many conversations as it may

The rule to know: an error keeps what it was made from as attributes, and survives pickle and copy with them.
"""

from __future__ import annotations

from .callboard_error import CallboardError as CallboardError
from .callboard_error import CausedError
from .callboard_error import describe as describe
from .invalid_answer import InvalidAnswer as InvalidAnswer
from .invalid_file import InvalidFile as InvalidFile
from .model_error import AuthenticationFailed as AuthenticationFailed
from .model_error import BrokenStream as BrokenStream
from .model_error import ContentRefused as ContentRefused
from .model_error import ContextTooLong as ContextTooLong
from .model_error import ModelError as ModelError
from .model_error import ModelTimedOut as ModelTimedOut
from .model_error import Overloaded as Overloaded
from .model_error import RateLimited as RateLimited


class DuplicateName(CallboardError):
    """The caller's fault: `first` and `second` say where both came from; rename one of them."""

    def __init__(self, name: str, first: str, second: str) -> None:
        super().__init__(name, first, second)
        self.name = name
        self.first = first
        self.second = second

    def __str__(self) -> str:
        return f"two actors are called {self.name!r}: {self.first} and {self.second}; rename one of them"


class UnknownRole(CallboardError):
    """The caller's fault: nobody here is called `name`; check the spelling, or start the role first."""

    def __init__(self, name: str, message: str | None = None) -> None:
        super().__init__(name, message)
        self.name = name
        self.message = message or f"no role is called {name!r}"

    def __str__(self) -> str:
        return self.message


class AskCycle(CallboardError):
    """The asker's fault: the last of `roles` waits for the first; tell instead, or ask somebody else."""

    def __init__(self, roles: tuple[str, ...]) -> None:
        super().__init__(roles)
        self.roles = roles

    def __str__(self) -> str:
        asker, asked, *waiting = self.roles + self.roles[:1]
        chain = "".join(f", which waits for {role}" for role in waiting)
        return f"{asker} asked {asked}{chain}: no answer could ever come"


class NoReply(CallboardError):
    """The fault of `role`: asked with the post `post_id`, it returned None; let it return a reply."""

    def __init__(self, role: str, post_id: str) -> None:
        super().__init__(role, post_id)
        self.role = role
        self.post_id = post_id

    def __str__(self) -> str:
        return f"{self.role} was asked ({self.post_id}) and returned None; return post.reply(...)"


class RequestRecalled(CallboardError):
    """Nobody's fault: whoever asked `role` stopped waiting, so its work on `post_id` is not needed."""

    def __init__(self, role: str, post_id: str) -> None:
        super().__init__(role, post_id)
        self.role = role
        self.post_id = post_id

    def __str__(self) -> str:
        return f"the request to {self.role} ({self.post_id}) was recalled by its asker"


class AttemptEnded(CallboardError):
    """The role's fault: it used the context of an attempt that is over; use the one handed to `receive`."""

    def __init__(self, role: str, attempt: int) -> None:
        super().__init__(role, attempt)
        self.role = role
        self.attempt = attempt

    def __str__(self) -> str:
        return f"attempt {self.attempt} of {self.role} has ended; its context cannot be used any more"


class InsideTurn(CallboardError):
    """The role's fault: `verb` would wait for the turn that calls it; leave it to the host."""

    def __init__(self, verb: str, role: str) -> None:
        super().__init__(verb, role)
        self.verb = verb
        self.role = role

    def __str__(self) -> str:
        return f"{self.verb} was called from inside a turn of {self.role} and would wait for itself"


class RoleFailed(CausedError):
    """The fault of `role` while it worked on `post_id`: see ``__cause__``, or ask somebody else."""

    def __init__(self, role: str, post_id: str, cause: BaseException | None = None) -> None:
        super().__init__(role, post_id, cause=cause)
        self.role = role
        self.post_id = post_id

    def __str__(self) -> str:
        return self.because(f"{self.role} failed")


class ToolFailed(CausedError):
    """The fault of `tool` in the call `call`: see ``__cause__``, or call it otherwise."""

    def __init__(self, tool: str, call: str, cause: BaseException | None = None) -> None:
        super().__init__(tool, call, cause=cause)
        self.tool = tool
        self.call = call

    def __str__(self) -> str:
        return self.because(f"{self.tool} failed")


class NobodyToAsk(CallboardError):
    """The fault of `role`: nobody waits for its answer, and no host answers questions; decide without asking."""

    def __init__(self, role: str) -> None:
        super().__init__(role)
        self.role = role

    def __str__(self) -> str:
        return f"{self.role} has nobody to ask: no superior waits for it, and the conversation has no on_question"


class PostRefused(CausedError):
    """The fault of the post from `sender` to `recipient`, as the host sees it: `on_post` raised ``__cause__``."""

    def __init__(self, sender: str, recipient: str, cause: BaseException | None = None) -> None:
        super().__init__(sender, recipient, cause=cause)
        self.sender = sender
        self.recipient = recipient

    def __str__(self) -> str:
        return self.because(f"a post from {self.sender} to {self.recipient} was refused")


class LimitReached(CallboardError):
    """The fault of a limit too low, or of nobody: `which` is used up, what was done is kept; raise it to go on."""

    def __init__(self, which: str, limit: float) -> None:
        super().__init__(which, limit)
        self.which = which
        self.limit = limit

    def __str__(self) -> str:
        raised = _RAISED_BY.get(self.which, f"limits=Limits({self.which}=...) in the conversation's options")
        return f"the limit of {self.limit:g} {self.which.replace('_', ' ')} is reached; to raise it, set {raised}"


_RAISED_BY = {"depth": "max_depth= in the conversation's options", "actors": "fan_out= in the conversation's options"}


class Missed(CallboardError):
    """Nobody's fault: when the words `words_id` came, nothing ran that could read them; send them."""

    def __init__(self, words_id: str) -> None:
        super().__init__(words_id)
        self.words_id = words_id

    def __str__(self) -> str:
        return f"the words {self.words_id} met nobody; send them to start a round"


class ConversationClosed(CallboardError):
    """The caller's fault, or time's: the conversation has ended; open one again."""

    def __init__(self, message: str = "the conversation is closed") -> None:
        super().__init__(message)


class RoundStopped(CallboardError):
    """Nobody's fault: somebody stopped the round for `reason`; its work so far is kept, send again."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the round was stopped: {self.reason}"


class BoardClosed(CallboardError):
    """The caller's fault, or time's: the board takes no more conversations; open another board."""

    def __init__(self, message: str = "the board is closed") -> None:
        super().__init__(message)


class BoardFull(CallboardError):
    """Nobody's fault, or that of a limit too low: the board, or `tenant` on it, holds `limit` conversations; wait."""

    def __init__(self, limit: int, tenant: str | None = None) -> None:
        super().__init__(limit, tenant)
        self.limit = limit
        self.tenant = tenant

    def __str__(self) -> str:
        who, which = ("it", "limit") if self.tenant is None else (f"tenant {self.tenant!r}", "tenant_limit")
        return f"the board is full: {who} holds {self.limit} conversations; to hold more, set Board(..., {which}=...)"
