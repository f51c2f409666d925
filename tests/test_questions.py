"""Questions back to whoever waits: who answers, whom an interruption reaches meanwhile, and what becomes of them."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import AskCycle, NobodyToAsk, RequestRecalled, RoleFailed, RoundStopped
from callboard.runtime.post import Post
from callboard.runtime.testing import every_interrupt_point
from callboard.runtime.transcript import Transcript
from tests.injections import INJECTIONS
from tests.roles import Does, Work, asking, at_work, cut_off, log, posts, sleeping, stepping
from tests.scenarios import SCENARIOS


def curious(before: float = 1, after: float = 1) -> Work:
    """Asks its superior after so many seconds, then works on for so many."""

    async def work(post: Post, context: TurnContext) -> str:
        await trio.sleep(before)
        answer = await context.ask_superior("Which year?")
        await trio.sleep(after)
        return f"{context.role} {answer.message}{[words.message for words in context.user_words]}"

    return work


def thinking(seconds: float) -> Work:
    """Answers after so many seconds of which the draft tells."""

    async def answer(post: Post, context: TurnContext) -> str:
        context.draft.write(f"attempt {context.attempt} at {post.message};")
        await trio.sleep(seconds)
        context.draft.take()
        return f"2025{[words.message for words in context.user_words]}"

    return answer


def three(answers: Work | None = None) -> Does:
    """boss, then planner, then a worker that asks after a second; the planner answers."""
    return Does(
        "boss", asking("planner"), Does("planner", asking("worker"), Does("worker", curious()), answers=answers)
    )


def outcomes_of(conversation: Conversation, message: str) -> list[str]:
    """How each post with this message was answered."""
    asked = {post.id for post in posts(conversation) if post.message == message}
    answers = [
        post for post in posts(conversation) if post.marks.in_reply_to in asked and post.send_to != post.send_from
    ]
    return [post.marks.kind if post.marks.state == "whole" else post.marks.state for post in answers]


async def test_a_question_is_answered_in_the_ask_that_waits(autojump_clock: MockClock) -> None:
    async with at_work(three(thinking(2)), seconds=2) as (conversation, started):
        assert (await started.reply()).message == "boss[][\"planner[]['worker 2025[][]']\"]"
        assert trio.current_time() == 4
    assert log(conversation)[3:6] == [
        "worker > planner question Which year?",
        "planner > worker reply 2025[]",
        "worker > planner reply worker 2025[][]",
    ]


async def test_the_question_and_its_answer_are_in_both_roles_rounds_and_in_the_file(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_work(three(thinking(2))) as (conversation, started):
        await started.reply()
        for role in ("planner", "worker"):
            said = " / ".join(post.message for post in conversation.rounds(role)[-1].post_list)
            assert "do / Which year? / 2025[] / worker 2025[][]" in said
        assert not [post for post in conversation.rounds("boss")[-1].post_list if post.message == "Which year?"]
        conversation.transcript().save(tmp_path / "transcript.yaml")
    restored = Transcript.restore_yaml(tmp_path / "transcript.yaml").rounds[-1].post_list
    kinds = [(post.marks.kind, post.message) for post in restored[3:5]]
    assert kinds == [("question", "Which year?"), ("reply", "2025[]")]
    assert restored[4].marks.in_reply_to == restored[3].id


@pytest.mark.parametrize(
    "level, top, recalled",
    [
        (1, "planner", ()),
        (2, "worker", ("planner",)),
        (3, "planner", ("planner", "worker")),
        (-1, "boss", ("planner", "worker", "planner")),
    ],
)
async def test_an_interruption_of_the_answering_reaches_so_many_levels_up(
    level: int, top: str, recalled: tuple[str, ...], autojump_clock: MockClock
) -> None:
    async with at_work(three(thinking(2)), seconds=2) as (conversation, started):
        receipt = conversation.intervene("x", broadcast_level=level)
        assert receipt.interrupted == (top,)
        assert receipt.recalled == tuple(dict.fromkeys(recalled))
        assert await receipt.seen()
        await started.reply()
    assert cut_off(conversation) == ["attempt 1 at Which year?;"]
    assert outcomes_of(conversation, "Which year?") == (["reply"] if level == 1 else ["partial", "reply"])


async def test_level_one_starts_the_answering_again_and_nothing_else(autojump_clock: MockClock) -> None:
    async with at_work(three(thinking(2)), seconds=2) as (conversation, started):
        conversation.intervene("x")
        await started.reply()
        assert trio.current_time() == 5
    assert log(conversation)[4:7] == [
        "planner > planner note partial attempt 1 at Which year?;",
        "User > planner intervention x",
        "planner > worker reply 2025['x']",
    ]


async def test_two_in_a_row_while_a_question_is_answered_are_both_read_in_order(autojump_clock: MockClock) -> None:
    async with at_work(three(thinking(2)), seconds=2) as (conversation, started):
        first, second = conversation.intervene("x"), conversation.intervene("y")
        await started.reply()
        assert await first.seen() and await second.seen()
    assert "planner > worker reply 2025['x', 'y']" in log(conversation)


async def test_a_nudge_starts_the_answering_again(autojump_clock: MockClock) -> None:
    async with at_work(three(thinking(2)), seconds=2) as (conversation, started):
        assert conversation.nudge().interrupted == ("planner",)
        await started.reply()
        assert trio.current_time() == 5
    assert outcomes_of(conversation, "Which year?") == ["reply"]


async def test_after_a_step_the_answering_is_cut_between_its_steps(autojump_clock: MockClock) -> None:
    async with at_work(three(stepping(2, 2)), seconds=2) as (conversation, _):
        receipt = conversation.intervene("x", delivery="after_step")
        await receipt.stopped()
        assert (trio.current_time(), receipt.interrupted) == (3, ("planner",))
    assert not cut_off(conversation)


async def test_after_a_turn_the_words_reach_who_asked_back(autojump_clock: MockClock) -> None:
    async with at_work(three(thinking(2)), seconds=2) as (conversation, _):
        receipt = conversation.intervene("x", delivery="after_turn")
        await receipt.stopped()
        assert (trio.current_time(), receipt.interrupted) == (3, ("worker",))
    assert outcomes_of(conversation, "Which year?") == ["reply", "reply"]


async def test_stop_ends_the_question_with_everything(autojump_clock: MockClock) -> None:
    async with at_work(three(thinking(2)), seconds=2) as (conversation, started):
        conversation.stop("enough")
        with pytest.raises(RoundStopped):
            await started.reply()
        assert trio.current_time() == 2
    assert outcomes_of(conversation, "Which year?") == ["partial"]


async def test_two_of_three_workers_ask_and_each_gets_its_answer(autojump_clock: MockClock) -> None:
    workers = Does("a", curious(1)), Does("b", curious(1)), Does("c", sleeping(9))
    boss = Does("boss", asking("a", "b", "c"), *workers, answers=thinking(2))
    async with at_work(boss, seconds=2) as (conversation, started):
        receipt = conversation.intervene("x")
        assert sorted(receipt.reached) == ["boss", "c"]
        reply = (await started.reply()).message
        assert reply.count("2025['x']") == 2
    assert outcomes_of(conversation, "Which year?") == ["reply", "reply"]
    assert [line for line in log(conversation) if "inter" in line].count("User > boss intervention x") == 1


async def test_an_ask_that_is_cancelled_ends_the_questions_that_were_not_begun(autojump_clock: MockClock) -> None:
    ends: list[str] = []

    async def ask_twice(post: Post, context: TurnContext) -> str:
        async def ask(text: str) -> None:
            try:
                await context.ask_superior(text)
            except RequestRecalled:
                ends.append(text)

        async with context.uninterruptible(grace=9), trio.open_nursery() as nursery:
            nursery.start_soon(ask, "first")
            await trio.sleep(0.1)
            nursery.start_soon(ask, "second")
        return "worker"

    boss = Does("boss", asking("worker"), Does("worker", ask_twice), answers=thinking(5))
    async with at_work(boss, seconds=2) as (conversation, _):
        await conversation.intervene("x", role="boss").stopped()
        assert (trio.current_time(), sorted(ends)) == (2, ["first", "second"])
        assert outcomes_of(conversation, "first") == ["partial"]
        assert outcomes_of(conversation, "second") == ["not_started"]


async def nobody(post: Post, context: TurnContext) -> str:
    """Asks and says who was there."""
    try:
        return (await context.ask_superior("Which year?")).message
    except NobodyToAsk:
        context.record("nobody to ask")
        return "nobody"


async def in_2025(question: Post) -> str:
    """A host that answers."""
    return f"2025, {question.send_from}"


async def test_the_root_asks_the_host(autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", nobody)) as (_, started):
        assert (await started.reply()).message == "nobody"
    async with at_work(Does("boss", nobody), on_question=in_2025) as (conversation, started):
        assert (await started.reply()).message == "2025, boss"
    assert log(conversation)[1:3] == ["boss > User question Which year?", "User > boss reply 2025, boss"]


@pytest.mark.parametrize("way", ["told", "background"])
async def test_work_that_nobody_waits_for_has_nobody_to_ask(way: str, autojump_clock: MockClock) -> None:
    async def start(post: Post, context: TurnContext) -> str:
        if way == "told":
            await context.tell("worker", "do")
        elif post.send_from != "worker":
            context.start_background("worker", "do")
        return "boss"

    boss = Does("boss", start, Does("worker", nobody), answers=thinking(1))
    async with at_work(boss, on_question=in_2025) as (conversation, _):
        await conversation.wait_idle()
    assert "worker > worker note nobody to ask" in log(conversation)


async def test_by_default_a_question_goes_on_up_to_the_host(autojump_clock: MockClock) -> None:
    async with at_work(three(), on_question=in_2025) as (conversation, started):
        assert "worker 2025, boss" in (await started.reply()).message
    assert [line for line in log(conversation) if "question" in line or "2025" in line][:6] == [
        "worker > planner question Which year?",
        "planner > boss question Which year?",
        "boss > User question Which year?",
        "User > boss reply 2025, boss",
        "boss > planner reply 2025, boss",
        "planner > worker reply 2025, boss",
    ]


async def test_without_a_host_that_answers_who_asked_gets_an_error(autojump_clock: MockClock) -> None:
    async with at_work(three()) as (_, started):
        with pytest.raises(RoleFailed) as failure:
            await started.reply()
    errors: list[type] = []
    at = failure.value.__cause__
    while at is not None:
        errors, at = [*errors, type(at)], at.__cause__
    assert errors[-1] is NobodyToAsk


async def test_a_question_that_goes_on_up_is_recalled_with_the_one_it_serves(autojump_clock: MockClock) -> None:
    boss = Does(
        "boss", asking("planner"), Does("planner", asking("worker"), Does("worker", curious())), answers=thinking(5)
    )
    async with at_work(boss, seconds=2) as (conversation, _):
        receipt = conversation.intervene("x", role="worker")
        assert receipt.interrupted == ("worker",)
        assert receipt.recalled == ("boss", "planner")
    assert outcomes_of(conversation, "Which year?") == ["partial", "partial", "reply", "reply"]


async def test_the_one_who_answers_cannot_ask_the_one_who_waits(autojump_clock: MockClock) -> None:
    async def ask_back(post: Post, context: TurnContext) -> str:
        with pytest.raises(AskCycle) as circle:
            await context.ask("worker", "What did you mean?")
        return " > ".join(circle.value.roles)

    async with at_work(three(ask_back)) as (conversation, started):
        await started.reply()
    assert "planner > worker reply planner > worker" in log(conversation)


async def test_the_one_who_answers_can_ask_others(autojump_clock: MockClock) -> None:
    async def look_up(post: Post, context: TurnContext) -> str:
        return (await context.ask("clerk", post.message)).message

    async with at_work(three(look_up), Does("clerk", sleeping(5)), seconds=2) as (conversation, started):
        receipt = conversation.intervene("x", broadcast_level=3)
        assert (receipt.interrupted, receipt.recalled) == (("worker",), ("clerk", "planner"))
        assert "worker clerk[]" in (await started.reply()).message


@pytest.mark.parametrize("wrong", [OSError("no disk"), 5, None])
async def test_what_a_handler_gets_wrong_is_told_to_who_asked(wrong: object, autojump_clock: MockClock) -> None:
    async def answer(post: Post, context: TurnContext) -> object:
        context.draft.write("so far;")
        if isinstance(wrong, Exception):
            raise wrong
        return wrong

    async def work(post: Post, context: TurnContext) -> str:
        try:
            await context.ask_superior("Which year?")
        except Exception as error:
            return type(error).__name__
        return "answered"

    async with at_work(Does("boss", asking("worker"), Does("worker", work), answers=answer)) as (conversation, started):
        expected = "NoReply" if wrong is None else "RoleFailed"
        assert (await started.reply()).message == f"boss[]['{expected}']"
    assert cut_off(conversation) == ["so far;"]
    assert outcomes_of(conversation, "Which year?") == ["error"]


@pytest.mark.parametrize("wrong", [OSError("no disk"), 5])
async def test_what_the_host_gets_wrong_is_told_to_who_asked(wrong: object, autojump_clock: MockClock) -> None:
    async def answer(question: Post) -> str:
        if isinstance(wrong, Exception):
            raise wrong
        return wrong  # type: ignore[return-value]  # what is refused here

    async with at_work(Does("boss", nobody), on_question=answer) as (conversation, started):
        with pytest.raises(RoleFailed):
            await started.reply()
    assert outcomes_of(conversation, "Which year?") == ["error"]


async def test_the_hosts_handler_is_cancelled_by_an_interruption(autojump_clock: MockClock) -> None:
    cancelled: list[float] = []

    async def answer(question: Post) -> str:
        try:
            await trio.sleep(3)
        except trio.Cancelled:
            cancelled.append(trio.current_time())
            raise
        return "2025"

    async with at_work(Does("boss", nobody), on_question=answer) as (conversation, started):
        conversation.intervene("x")
        assert (await started.reply()).message == "2025"
    assert cancelled == [0.5]
    assert outcomes_of(conversation, "Which year?") == ["not_started", "reply"]


async def test_a_question_of_a_role_that_a_request_was_handed_on_to_reaches_its_first_asker(
    autojump_clock: MockClock,
) -> None:
    async def hand_on(post: Post, context: TurnContext) -> Post:
        return post.forward(to="clerk")

    boss = Does("boss", asking("desk"), Does("desk", hand_on), Does("clerk", curious()), answers=thinking(1))
    async with at_work(boss) as (conversation, started):
        assert (await started.reply()).message == "boss[]['clerk 2025[][]']"
    assert "boss > clerk reply 2025[]" in log(conversation)


async def test_what_the_answering_has_recorded_is_there_for_its_next_attempt(autojump_clock: MockClock) -> None:
    async def answer(post: Post, context: TurnContext) -> str:
        if context.attempt == 1:
            context.record("looked it up")
            context.draft.write("so far;")
            await trio.sleep(9)
        rounds = conversation.rounds("planner")
        return str([one.message for one in rounds[-1].post_list if one.marks.in_reply_to == post.id])

    async with at_work(three(answer), seconds=2) as (conversation, started):
        conversation.intervene("x")
        await started.reply()
    assert "planner > worker reply ['looked it up', 'so far;']" in log(conversation)


@pytest.mark.parametrize("name", ["questions", "a question passed on", "a question to the host"])
def test_every_injection_holds_at_sampled_moments_of_a_question(name: str) -> None:
    for inject in INJECTIONS.values():
        assert every_interrupt_point(SCENARIOS[name], inject, sample=2, limit=60).runs == 2
