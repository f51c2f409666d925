"""What errors say, and that they survive a journey."""

import copy
import pickle

import pytest

from callboard.runtime import errors
from callboard.runtime.errors import (
    AskCycle,
    AttemptEnded,
    AuthenticationFailed,
    BoardClosed,
    BoardFull,
    BrokenStream,
    CallboardError,
    ContentRefused,
    ContextTooLong,
    ConversationClosed,
    DuplicateName,
    InsideTurn,
    InvalidAnswer,
    InvalidFile,
    LimitReached,
    Missed,
    ModelError,
    ModelTimedOut,
    NobodyToAsk,
    NoReply,
    Overloaded,
    PostRefused,
    RateLimited,
    RequestRecalled,
    RoleFailed,
    RoundStopped,
    ToolFailed,
    UnknownRole,
    describe,
)

ONE_OF_EACH = [
    InvalidFile("no text", path="notes.yaml", line=12, key="rounds[0]", remedy="put it in quotes"),
    DuplicateName("Planner", "the root", "the second of others"),
    UnknownRole("Nobody"),
    AskCycle(("A", "B")),
    NoReply("Writer", "post-1"),
    InvalidAnswer("Writer", "post-1", "forty", "it is no JSON"),
    RequestRecalled("Writer", "post-1"),
    AttemptEnded("Writer", 2),
    InsideTurn("send", "Writer"),
    RoleFailed("Writer", "post-1", ValueError("no ink")),
    ToolFailed("search", "call-1", OSError("no disk")),
    LimitReached("tokens", 1000),
    NobodyToAsk("Writer"),
    PostRefused("Writer", "Planner", ValueError("a secret")),
    ModelError("too many requests", fault="server", may_retry=True),
    RateLimited("slow down", fault="caller", may_retry=True, retry_after=2.5),
    AuthenticationFailed("no key", fault="caller", may_retry=False),
    ContextTooLong("too long", fault="caller", may_retry=False),
    ContentRefused("no", fault="caller", may_retry=False),
    Overloaded("busy", fault="server", may_retry=True),
    ModelTimedOut("silence", fault="network", may_retry=True),
    BrokenStream("half a reply", fault="network", may_retry=True),
    Missed("words-1"),
    ConversationClosed(),
    RoundStopped("enough"),
    BoardClosed(),
    BoardFull(3),
]


@pytest.fixture(params=ONE_OF_EACH, ids=lambda error: type(error).__name__)
def error(request: pytest.FixtureRequest) -> CallboardError:
    found: CallboardError = request.param
    return found


def everything(error: BaseException) -> tuple[object, ...]:
    return type(error), str(error), vars(error), repr(error.__cause__)


def test_an_error_survives_pickle(error: CallboardError) -> None:
    assert everything(pickle.loads(pickle.dumps(error))) == everything(error)


def test_an_error_survives_copy(error: CallboardError) -> None:
    assert everything(copy.copy(error)) == everything(error)
    assert everything(copy.deepcopy(error)) == everything(error)


def test_every_error_of_the_module_is_in_these_tests_and_in_the_tree() -> None:
    values = vars(errors).items()
    names = {name for name, value in values if isinstance(value, type) and issubclass(value, Exception)}
    assert names == {type(error).__name__ for error in ONE_OF_EACH} | {"CallboardError", "CausedError"}
    assert all(f" {name} " in (errors.__doc__ or "") for name in names - {"CallboardError", "CausedError"})


def test_every_error_says_in_one_line_whose_fault_it_is(error: CallboardError) -> None:
    said = type(error).__doc__ or ""
    assert "fault" in said
    assert "\n" not in said


def test_an_invalid_file_reads_from_the_place_to_the_remedy() -> None:
    error = InvalidFile("is no text", path="notes.yaml", line=12, key="rounds[0].state", remedy="quote it")
    assert str(error) == "notes.yaml, line 12, rounds[0].state: is no text; do: quote it"


def test_an_invalid_file_says_only_what_it_knows() -> None:
    assert str(InvalidFile("is no text")) == "is no text"
    assert str(InvalidFile("is no text", key="state")) == "state: is no text"


def test_a_duplicate_name_says_where_both_came_from() -> None:
    said = str(DuplicateName("Planner", "the root", "a profile"))
    assert "'Planner'" in said
    assert "the root and a profile" in said


def test_an_unknown_role_says_its_name_or_what_it_is_told_to_say() -> None:
    assert str(UnknownRole("Nobody")) == "no role is called 'Nobody'"
    assert str(UnknownRole("Nobody", "Nobody has left")) == "Nobody has left"


def test_a_circle_is_told_from_the_asker_on_and_closed() -> None:
    said = str(AskCycle(("A", "B", "C")))
    assert said.startswith("A asked B, which waits for C, which waits for A:")


def test_a_circle_of_one_asks_itself() -> None:
    assert str(AskCycle(("A",))).startswith("A asked A:")


def test_a_failed_role_has_the_cause_and_says_its_type_and_text_alone() -> None:
    cause = ValueError("no ink")
    error = RoleFailed("Writer", "post-1", cause)
    assert error.__cause__ is cause
    assert str(error) == "Writer failed: ValueError: no ink"


def test_a_failed_role_takes_its_cause_from_raise_too() -> None:
    with pytest.raises(RoleFailed, match=r"Writer failed: ZeroDivisionError$") as caught:
        raise RoleFailed("Writer", "post-1") from ZeroDivisionError()
    assert isinstance(pickle.loads(pickle.dumps(caught.value)).__cause__, ZeroDivisionError)


def test_a_failed_role_may_have_no_cause() -> None:
    assert str(RoleFailed("Writer", "post-1")) == "Writer failed"


class Unspeakable(Exception):
    """An error that raises when it is asked what it is."""

    def __str__(self) -> str:
        raise ValueError("no")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such file"), "ValueError: no such file"),
        (KeyError(), "KeyError"),
        (OSError("half \ud800"), "OSError: half \\ud800"),
        (Unspeakable(), "Unspeakable: it cannot say what it is"),
    ],
)
def test_what_any_error_says_can_be_recorded(error: Exception, said: str) -> None:
    assert describe(error) == said
    assert str(RoleFailed("Worker", "post-1", error)) == f"Worker failed: {said}"
