"""Typed answers: what the root is told, what counts as an answer, and how it is asked again."""

import dataclasses
import datetime
import enum
import json
from typing import Annotated, Any, Literal, assert_type

import pydantic
import pytest
import trio
from trio.testing import MockClock

from callboard.actors.role import Role as ModelRole
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import InsideTurn, InvalidAnswer, RequestRecalled, RoleFailed, RoundStopped
from callboard.runtime.limits import Limits
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.scripted_model import ScriptedModel
from callboard.runtime.testing import Watch, every_interrupt_point
from callboard.runtime.typed_answer import SCHEMA, TypedAnswer
from callboard.runtime.user_message import UserMessage

from .roles import Does, Work


class Report(pydantic.BaseModel):
    """What most of these questions ask for."""

    title: str
    pages: int


GOOD = '{"title": "Suppliers", "pages": 3}'
VALUE = Report(title="Suppliers", pages=3)


def says(*texts: str, seconds: float = 0) -> Work:
    """Answers with one text after the other, and with the last one from then on."""
    left = list(texts)

    async def work(post: Post, context: TurnContext) -> str:
        await trio.sleep(seconds)
        return left.pop(0) if len(left) > 1 else left[0]

    return work


def log(conversation: Conversation) -> list[str]:
    """All posts of the last round."""
    return [f"{post.send_from}: {post.message}" for post in conversation.transcript().rounds[-1].post_list]


async def test_the_answer_is_a_value_of_the_type() -> None:
    async with open_conversation(Does("root", says(GOOD))) as conversation:
        report = await conversation.send("q", returns=Report)
        assert_type(report, Report)
        assert report == VALUE
        assert log(conversation) == ["User: q", f"root: {GOOD}"]


async def test_what_is_sent_without_a_type_is_a_post() -> None:
    async with open_conversation(Does("root", says(GOOD))) as conversation:
        assert_type(post := await conversation.send("q"), Post)
        assert post.message == GOOD


async def test_the_root_is_told_the_schema_beside_what_else_it_is_told() -> None:
    asked = []

    async def work(post: Post, context: TurnContext) -> str:
        asked.append(post)
        return GOOD

    message = UserMessage("q", system_message=("Be brief.",), extra={"reason": "test"}, id="one")
    async with open_conversation(Does("root", work)) as conversation:
        await conversation.send(message, returns=Report)
    marks = asked[0].marks
    assert marks.extra == {"reason": "test", SCHEMA: Report.model_json_schema()}
    assert (marks.system_message[0], marks.words) == ("Be brief.", "one")
    assert json.loads(marks.system_message[1].partition("schema, and nothing else: ")[2]) == Report.model_json_schema()


@dataclasses.dataclass
class Point:
    """A dataclass is a type too."""

    x: int


class Colour(enum.Enum):
    """An enumeration too."""

    RED = "red"


@pytest.mark.parametrize(
    ("returns", "said", "value"),
    [
        (Report, GOOD, VALUE),
        (Report, f"  {GOOD}\n", VALUE),
        (Report, f"```json\n{GOOD}\n```", VALUE),
        (Report, f"```\n{GOOD}\n```", VALUE),
        (Report, f"Here it is:\n\n```JSON\n{GOOD}\n```\nGood luck!", VALUE),
        (Report, f'For example:\n```json\n{{"title": "x", "pages": 1}}\n```\nSo:\n```json\n{GOOD}\n```', VALUE),
        (Report, f"```json\n{GOOD}\n```\nTo see it:\n```\nopen it\n```", VALUE),
        (list[Report], f"[{GOOD}, {GOOD}]", [VALUE, VALUE]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Point, '{"x": 1}', Point(1)),
        (int, "42", 42),
        (bool, "true", True),
        (str, "just words", "just words"),
        (str, "42", "42"),
        (str, '"quoted"', "quoted"),
        (datetime.date, "2025-01-31", datetime.date(2025, 1, 31)),
        (Colour, "red", Colour.RED),
        (Literal["yes", "no"], "yes", "yes"),
        (Report | None, "null", None),
        (Annotated[int, pydantic.Field(gt=3)], "4", 4),
    ],
)
def test_what_counts_as_an_answer(returns: Any, said: str, value: object) -> None:
    assert TypedAnswer(returns).read(Post.create(said, "root", "User")) == value


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("forty", "Invalid JSON"),
        ("", "Invalid JSON"),
        ('{"title": "x"}', "pages: Field required"),
        ('{"title": "x", "pages": "many"}', "pages: Input should be a valid integer"),
        ("[" * 10_000, "Invalid JSON"),
        ('{"title": "x", "pages": 1}{}', "trailing characters"),
        ('{"title": "x", "pages": ' + "9" * 5000 + "}", "out of range"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(said: str, problem: str) -> None:
    with pytest.raises(InvalidAnswer) as invalid:
        TypedAnswer(Report).read(Post.create(said, "root", "User"))
    assert problem in invalid.value.problem
    assert len(invalid.value.problem) < 300
    assert (invalid.value.said, invalid.value.role) == (said, "root")


def test_of_many_errors_the_first_are_told() -> None:
    with pytest.raises(InvalidAnswer, match="and 95 more") as invalid:
        TypedAnswer(list[int]).read(Post.create(json.dumps(["x" * 999] * 100), "root", "User"))
    assert len(str(invalid.value)) < 1500


async def test_a_root_whose_answer_is_none_is_told_why_and_asked_again_in_the_same_round() -> None:
    async with open_conversation(Does("root", says("forty", '{"title": "x"}', GOOD))) as conversation:
        replies = conversation.replies()
        assert await conversation.send("q", returns=Report) == VALUE
        first, second, third, *rest = [line for line in log(conversation) if line.startswith("User")]
        assert (first, rest) == ("User: q", [])
        assert "Invalid JSON" in second
        assert "pages: Field required" in third
        asked = [post for post in conversation.transcript().rounds[0].post_list if post.send_from == "User"]
        assert all(post.marks.extra[SCHEMA] == Report.model_json_schema() for post in asked)
        assert [one.state for one in conversation.transcript().rounds] == ["finished"]
        assert (await anext(replies)).message == GOOD


async def test_after_three_answers_that_are_none_the_sender_learns_what_was_wrong() -> None:
    async with open_conversation(Does("root", says("one", "two", "three", GOOD))) as conversation:
        with pytest.raises(
            InvalidAnswer, match=r"root gave no valid answer: .*Invalid JSON.*; it said: three"
        ) as invalid:
            await conversation.send("q", returns=Report)
        assert invalid.value.post_id == conversation.transcript().rounds[0].post_list[-1].id
        assert [one.state for one in conversation.transcript().rounds] == ["finished"]
        assert await conversation.send("q", returns=Report) == VALUE


async def test_who_stands_in_line_waits_for_the_last_answer(autojump_clock: MockClock) -> None:
    async with open_conversation(Does("root", says("no", "no", GOOD, "next", seconds=1))) as conversation:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: conversation.send("q", returns=Report))
            await trio.sleep(0.5)
            assert (await conversation.send("r")).message == "next"
        assert trio.current_time() == 4


async def test_asking_again_can_be_interrupted_and_the_words_are_read(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        await trio.sleep(1)
        return GOOD if context.user_words else "no"

    async with open_conversation(Does("root", work)) as conversation, trio.open_nursery() as nursery:
        nursery.start_soon(lambda: conversation.send("q", returns=Report))
        await trio.sleep(1.5)
        receipt = conversation.intervene("JSON!")
        assert (receipt.interrupted, await receipt.seen()) == (("root",), True)
        assert (await receipt.reply()).message == GOOD


async def test_a_stop_and_a_cancellation_end_it_while_it_is_asked_again(autojump_clock: MockClock) -> None:
    async with open_conversation(Does("root", says("no", seconds=1))) as conversation:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop_later, conversation)
            with pytest.raises(RoundStopped):
                await conversation.send("q", returns=Report)
        with trio.move_on_after(1.5):
            await conversation.send(UserMessage("q", id="one"), returns=Report)
        with pytest.raises(RequestRecalled):
            await conversation.send(UserMessage("q", id="one"), returns=Report)
        assert [one.state for one in conversation.transcript().rounds] == ["stopped", "stopped"]
        assert trio.current_time() == 3


async def _stop_later(conversation: Conversation) -> None:
    await trio.sleep(1.5)
    conversation.stop("enough")


async def test_asking_again_uses_up_the_rounds_limits(autojump_clock: MockClock) -> None:
    root = Does("root", says("one", "two", GOOD, seconds=1))
    options = ConversationOptions(limits=Limits(replies=2))
    async with open_conversation(root, options=options) as conversation:
        with pytest.raises(InvalidAnswer, match="it said: two"):
            await conversation.send("q", returns=Report)
    options = ConversationOptions(limits=Limits(seconds=1.5))
    async with open_conversation(Does("root", says("one", GOOD, seconds=1)), options=options) as conversation:
        with pytest.raises(RoleFailed, match=r"limit of 1\.5 seconds"):
            await conversation.send("q", returns=Report)


async def test_a_question_that_the_hosts_hook_refuses_is_not_put_again() -> None:
    def refuse(post: Post) -> None:
        if "no valid answer" in post.message:
            raise PermissionError("not twice")

    options = ConversationOptions(on_post=refuse)
    async with open_conversation(Does("root", says("no", GOOD)), options=options) as conversation:
        with pytest.raises(InvalidAnswer):
            await conversation.send("q", returns=Report)
        assert log(conversation) == ["User: q", "root: no"]


async def test_the_role_that_answered_for_the_root_is_the_one_that_is_asked_again() -> None:
    async def hand_on(post: Post, context: TurnContext) -> Post:
        return post.forward(to="expert")

    async with open_conversation(Does("root", hand_on), Does("expert", says("no", GOOD))) as conversation:
        assert await conversation.send("q", returns=Report) == VALUE
        assert [line.partition(":")[0] for line in log(conversation)] == ["User", "root", "expert", "User", "expert"]


async def test_what_subordinates_answer_may_be_anything() -> None:
    async def work(post: Post, context: TurnContext) -> str:
        await context.tell("other", "do")
        await context.ask("worker", "do")
        return GOOD

    root = Does("root", work, Does("worker", says("words")), Does("other", says("more words")))
    async with open_conversation(root) as conversation:
        assert await conversation.send("q", returns=Report) == VALUE
        await conversation.wait_idle()
        assert [line for line in log(conversation) if line.startswith("User")] == ["User: q"]


async def test_a_root_that_stops_its_round_and_returns_is_not_asked_again() -> None:
    async def work(post: Post, context: TurnContext) -> str:
        conversation.stop("enough")
        return "no"

    async with open_conversation(Does("root", work)) as conversation:
        with pytest.raises(InvalidAnswer):
            await conversation.send("q", returns=Report)
        assert log(conversation) == ["User: q", "root: no"]


async def test_a_root_that_is_asked_again_still_knows_who_waits_for_it() -> None:
    async def inner(post: Post, context: TurnContext) -> str:
        if post.message == "q":
            return "no"
        with pytest.raises(InsideTurn):
            await conversation.send("a round that would wait for this one")
        return GOOD

    async def outer(post: Post, context: TurnContext) -> str:
        async with open_conversation(Does("inner", inner)) as nested:
            return (await nested.send("q", returns=Report)).title

    async with open_conversation(Does("root", outer)) as conversation:
        assert (await conversation.send("a")).message == VALUE.title


async def test_a_message_that_was_said_before_is_read_as_the_type_and_not_asked_again() -> None:
    async with open_conversation(Does("root", says(GOOD, "no"))) as conversation:
        post = await conversation.send(UserMessage("q", id="one"))
        assert post.message == GOOD
        assert await conversation.send(UserMessage("q", id="one"), returns=Report) == VALUE
        with pytest.raises(InvalidAnswer):
            await conversation.send(UserMessage("q", id="one"), returns=int)
        assert len(conversation.transcript().rounds) == 1


async def test_a_question_without_an_id_is_not_kept_in_mind() -> None:
    async with open_conversation(Does("root", says(GOOD))) as conversation:
        for question in ("q", UserMessage("q")):
            await conversation.send(question, returns=Report)
        assert len(conversation._spoken._words) == 0
        await conversation.send(UserMessage("q", id="one"), returns=Report)
        assert list(conversation._spoken._words) == ["one"]


async def test_a_type_without_a_schema_is_refused_before_anything_begins() -> None:
    async with open_conversation(Does("root", says(GOOD))) as conversation:
        for impossible in (trio.Event, type(lambda: None)):
            with pytest.raises(TypeError, match="no answer can be told to be"):
                await conversation.send("q", returns=impossible)
        assert conversation.transcript().rounds == ()


async def test_what_a_broken_validation_raises_is_the_senders_and_the_round_ends() -> None:
    def broken(value: int) -> int:
        raise ZeroDivisionError

    async with open_conversation(Does("root", says("3"))) as conversation:
        with pytest.raises(ZeroDivisionError):
            await conversation.send("q", returns=Annotated[int, pydantic.AfterValidator(broken)])
        assert [one.state for one in conversation.transcript().rounds] == ["finished"]


async def test_the_error_of_the_round_is_that_of_the_sender() -> None:
    async def fail(post: Post, context: TurnContext) -> str:
        raise OSError("no disk")

    async with open_conversation(Does("root", fail)) as conversation:
        with pytest.raises(RoleFailed, match="no disk"):
            await conversation.send("q", returns=Report)


class Reporter(ModelRole):
    """A role with a model: what it says is JSON, and so is its message."""

    name = "Reporter"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply((await self.reply(post, context)).message)


async def test_a_role_with_a_model_reads_the_schema_and_what_was_wrong_in_its_messages() -> None:
    replies = [
        json.dumps({"response": {"message": said}}) for said in ("three pages", {"title": "Suppliers", "pages": 3})
    ]
    with ScriptedModel({"Reporter": replies}) as model:
        async with open_conversation(Reporter(model)) as conversation:
            assert await conversation.send("q", returns=Report) == VALUE
        first, second = [request.messages[-1].content for request in model.requests]
        assert '\\"pages\\"' in first
        assert "This was no valid answer: the answer: Invalid JSON" in second


def stop(conversation: Conversation) -> None:
    """An injection that ends the round."""
    conversation.stop("enough")


@pytest.mark.parametrize("inject", [None, stop], ids=["intervene", "stop"])
def test_every_moment_of_a_typed_round_can_be_interrupted(inject: Any) -> None:
    async def work(post: Post, context: TurnContext) -> str:
        return (await context.ask("worker", post.message)).message

    async def scenario(watch: Watch) -> None:
        root = Does("root", work, Does("worker", says("no", "no", GOOD, seconds=1)))
        async with open_conversation(root) as conversation:
            try:
                assert await watch(conversation).send("q", returns=Report) == VALUE
            except (RoundStopped, InvalidAnswer):  # the latter when an answer that was none came with the stop
                assert inject is not None

    assert every_interrupt_point(scenario, inject).runs > 60
