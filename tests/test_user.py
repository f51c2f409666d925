"""User: the person as a role that others ask, and the channel on which the person sees and answers questions."""

import pytest
import trio
from trio.testing import MockClock

from callboard.actors import Questions, User
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import RoleFailed
from callboard.runtime.limits import Limits
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.testing import Watch, every_interrupt_point

from .roles import Does, at_work


async def ask(post: Post, context: TurnContext) -> str:
    """Asks the person."""
    words = [said.message for said in context.user_words]
    return f"{(await context.ask('Person', 'Which year?')).message}{words}"


async def year(post: Post) -> str:
    """The person's answer to anything."""
    await trio.sleep(0.1)
    return "2025"


async def test_a_role_asks_the_person_and_the_hosts_function_answers(autojump_clock: MockClock) -> None:
    async with at_work(Does("boss", ask, User()), on_question=year) as (_, started):
        assert (await started.reply()).message == "2025[]"


async def test_deadlines_stand_still_while_the_person_thinks(autojump_clock: MockClock) -> None:
    questions = Questions()
    boss = Does("boss", ask, User())
    async with at_work(boss, on_question=questions, limits=Limits(seconds=5)) as (_, started):
        question = await anext(questions)
        await trio.sleep(100)
        assert question.answer("2025")
        assert (await started.reply()).message == "2025[]"
        assert question.state == "answered"


async def test_an_interruption_withdraws_the_question_and_the_role_asks_again(autojump_clock: MockClock) -> None:
    questions = Questions()
    async with at_work(Does("boss", ask, User()), on_question=questions) as (conversation, started):
        first = await anext(questions)
        conversation.intervene("quickly", broadcast_level=-1)
        second = await anext(questions)
        assert await first.wait_settled() == "withdrawn"
        assert questions.open == (second,)
        second.answer("2024")
        assert (await started.reply()).message == "2024['quickly']"


async def test_a_question_that_nobody_took_is_gone_when_it_is_withdrawn(autojump_clock: MockClock) -> None:
    questions = Questions()
    async with at_work(Does("boss", ask, User()), on_question=questions) as (conversation, started):
        conversation.stop("enough")
        await conversation.wait_idle()
        with trio.move_on_after(1) as waited:
            await anext(questions)
        assert waited.cancelled_caught and not questions.open
        assert started.action == "started"


async def test_without_a_host_that_answers_the_asker_is_told(autojump_clock: MockClock) -> None:
    async with open_conversation(Does("boss", ask, User())) as conversation:
        with pytest.raises(RoleFailed, match="has nobody to ask"):
            await conversation.send("go")


async def test_several_conversations_ask_one_person(autojump_clock: MockClock) -> None:
    questions, answers = Questions(), []
    options = ConversationOptions(on_question=questions)
    boss = Does("boss", ask, User())
    async with open_conversation(boss, options=options) as one, open_conversation(boss, options=options) as other:
        asked = [one.communicate("go"), other.communicate("go")]
        for number in range(2):
            (await anext(questions)).answer(f"{number}")
        answers = [(await receipt.reply()).message for receipt in asked]
    assert sorted(answers) == ["0[]", "1[]"]


async def scenario(watch: Watch) -> None:
    """A person who answers each question that is open a while later."""
    questions = Questions()

    async def person() -> None:
        async for question in questions:
            await trio.sleep(0.1)
            assert question.answer("2025") == (question.state == "answered")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(person)
        options = ConversationOptions(on_question=questions, limits=Limits())
        async with open_conversation(Does("boss", ask, User()), options=options) as conversation:
            assert (await watch(conversation).send("go")).message.startswith("2025")
        assert not questions.open
        nursery.cancel_scope.cancel()


def test_no_moment_of_an_interruption_leaves_a_question_open() -> None:
    assert every_interrupt_point(scenario, sample=15).outcomes["seen"]


@pytest.mark.slow
def test_nor_does_any_other_moment() -> None:
    assert every_interrupt_point(scenario, seeds=range(3)).outcomes["seen"]
