"""Usage: what a conversation has used, by role and round, whatever became of the work."""

import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.context import TurnContext
from callboard.runtime.errors import LimitReached, RoleFailed, RoundStopped
from callboard.runtime.limits import Limits
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.usage import Ledger, Price, Usage

from .test_conversation import Role, Work, answers, asks, fails, takes, tells

PRICES = {"large": Price(3.0, 15.0), "small": Price(0.5, 1.0)}
PRICED = ConversationOptions(prices=PRICES)


def calls(model: str, input_tokens: int, output_tokens: int, then: Work = answers) -> Work:
    """One call of a model, then work."""

    async def work(post: Post, context: TurnContext) -> Post | None:
        context.spend(model=model, model_calls=1, input_tokens=input_tokens, output_tokens=output_tokens)
        return await then(post, context)

    return work


# Amounts and prices


def test_amounts_add_up() -> None:
    first = Usage(replies=1, model_calls=2, input_tokens=3, output_tokens=4, cost=0.5)
    assert first + Usage(output_tokens=6, cost=0.25) == Usage(
        replies=1, model_calls=2, input_tokens=3, output_tokens=10, cost=0.75
    )
    assert (first + first).tokens == 14


@pytest.mark.parametrize("amount", [-1, 1.5, True, "1", None, math.inf])
@pytest.mark.parametrize("kind", ["replies", "model_calls", "input_tokens", "output_tokens"])
def test_a_count_is_a_whole_number_from_0_on(kind: str, amount: Any) -> None:
    with pytest.raises(ValueError, match=f"{kind} is a whole number from 0 on, not "):
        Usage(**{kind: amount})


@pytest.mark.parametrize("cost", [-0.1, True, "1", None, math.inf, math.nan])
def test_a_cost_and_a_price_are_numbers_from_0_on(cost: Any) -> None:
    with pytest.raises(ValueError, match="cost is a number from 0 on, not "):
        Usage(cost=cost)
    with pytest.raises(ValueError, match="input is a number from 0 on, not "):
        Price(cost, 1)
    with pytest.raises(ValueError, match="output is a number from 0 on, not "):
        Price(1, cost)


def test_a_price_is_for_a_million_tokens() -> None:
    assert Price(3, 15).of(2_000_000, 100_000) == 7.5
    assert Price(0, 0).of(1, 1) == 0


@pytest.mark.parametrize("price", [3.0, (3.0, 15.0), None])
def test_what_is_no_price_is_refused_at_the_options(price: Any) -> None:
    with pytest.raises(TypeError, match="the price of 'large' is a Price, not "):
        ConversationOptions(prices={"large": price})


def test_a_report_does_not_change_afterwards() -> None:
    ledger = Ledger()
    ledger.count("r", "a", Usage(model_calls=1))
    before = ledger.report()
    ledger.count("r", "a", Usage(model_calls=1))
    ledger.count_reply("r", "b")
    assert before.total == Usage(model_calls=1) and "b" not in before.by_role
    assert ledger.report().by_role == {"a": Usage(model_calls=2), "b": Usage(replies=1)}


# Of a conversation


async def test_usage_is_counted_by_role_and_by_round_with_its_cost() -> None:
    root = Role("root", calls("large", 1000, 100, asks("a")), Role("a", calls("small", 2000, 1000)))
    async with open_conversation(root, options=PRICED) as conversation:
        await conversation.send("go")
        root.work = answers
        await conversation.send("again")
        usage = conversation.usage
        first, second = (round_.id for round_ in conversation.transcript().rounds)
        large = Usage(replies=1, model_calls=1, input_tokens=1000, output_tokens=100, cost=0.0045)
        small = Usage(replies=1, model_calls=1, input_tokens=2000, output_tokens=1000, cost=0.002)
        assert usage.by_round_and_role == {
            (first, "root"): large,
            (first, "a"): small,
            (second, "root"): Usage(replies=1),
        }
        assert usage.by_role == {"root": large + Usage(replies=1), "a": small}
        assert usage.by_round == {first: large + small, second: Usage(replies=1)}
        assert usage.total == large + small + Usage(replies=1)


async def test_a_model_without_a_price_costs_nothing_and_a_cost_that_is_given_stands() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        context.spend(model="unknown", input_tokens=1000)
        context.spend(model="large", input_tokens=1000, cost=0.25)
        context.spend(input_tokens=1000)
        return post.reply("done")

    async with open_conversation(Role("root", work), options=PRICED) as conversation:
        await conversation.send("go")
        assert (conversation.usage.total.cost, conversation.usage.total.tokens) == (0.25, 3000)


async def test_a_limit_of_cost_is_reached_by_the_prices() -> None:
    options = ConversationOptions(prices=PRICES, limits=Limits(cost=0.01))
    async with open_conversation(Role("root", calls("large", 0, 1000)), options=options) as conversation:
        with pytest.raises(RoleFailed, match=r"the limit of 0\.01 cost is reached") as caught:
            await conversation.send("go")
        assert isinstance(caught.value.__cause__, LimitReached)
        assert conversation.usage.total == Usage(model_calls=1, output_tokens=1000, cost=0.015)


async def test_failed_work_counts() -> None:
    root = Role("root", calls("large", 10, 10, asks("a")), Role("a", calls("small", 20, 20, fails(OSError()))))
    async with open_conversation(root, options=PRICED) as conversation:
        with pytest.raises(RoleFailed):
            await conversation.send("go")
        (round_,) = conversation.transcript().rounds
        assert conversation.usage.by_round[round_.id].tokens == 60
        assert conversation.usage.total.replies == 0


async def test_interrupted_recalled_and_stopped_work_counts_for_each_attempt(autojump_clock: MockClock) -> None:
    root = Role("root", calls("large", 10, 0, asks("a")), Role("a", calls("small", 1, 0, takes(5))))
    async with open_conversation(root, options=PRICED) as conversation:
        started = conversation.communicate("go")
        for level in (1, 2):
            await trio.sleep(1)
            conversation.intervene("x", broadcast_level=level)
        await trio.sleep(1)
        conversation.stop("enough")
        with pytest.raises(RoundStopped):
            await started.reply()
        usage = conversation.usage
        assert {role: used.model_calls for role, used in usage.by_role.items()} == {"root": 2, "a": 3}
        assert usage.total.tokens == 23 and usage.total.replies == 0


async def test_told_work_counts_in_the_round_that_runs_when_it_is_used(autojump_clock: MockClock) -> None:
    async def late(post: Post, context: TurnContext) -> Post | None:
        await trio.sleep(5)
        return await calls("small", 7, 0)(post, context)

    root = Role("root", tells("a"), Role("a", late))
    async with open_conversation(root, options=PRICED) as conversation:
        await conversation.send("go")
        root.work = takes(9)
        await conversation.send("again")
        rounds = [round_.id for round_ in conversation.transcript().rounds]
        assert [conversation.usage.by_round[id].tokens for id in rounds] == [0, 7]


async def test_a_role_reads_what_is_left_of_each_kind(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        await trio.sleep(2)
        context.spend(model="large", model_calls=1, output_tokens=100)
        return post.reply(str(dict(sorted(context.limits.items()))))

    limits = Limits(replies=3, seconds=10, model_calls=5, tokens=1000, cost=1.0)
    options = ConversationOptions(prices=PRICES, limits=limits)
    async with open_conversation(Role("root", work), options=options) as conversation:
        left = {"cost": 0.9985, "model_calls": 4, "replies": 3, "seconds": 8.0, "tokens": 900}
        assert (await conversation.send("go")).message == str(left)


async def test_a_conversation_that_was_not_used_has_used_nothing() -> None:
    async with open_conversation(Role("root", answers)) as conversation:
        assert conversation.usage.total == Usage() and conversation.usage.by_role == {}


async def test_each_answer_of_a_role_counts() -> None:
    async def asks_thrice(post: Post, context: TurnContext) -> Post:
        for _ in range(3):
            await context.ask("a")
        return post.reply("done")

    async with open_conversation(Role("root", asks_thrice, Role("a", answers))) as conversation:
        await conversation.send("go")
        assert {role: used.replies for role, used in conversation.usage.by_role.items()} == {"root": 1, "a": 3}


def test_what_the_provider_had_kept_has_a_price_of_its_own_if_the_host_gives_one() -> None:
    assert Price(2, 5).of(1_000_000, 0, 400_000) == 2
    assert Price(2, 5, cached=0.5).of(1_000_000, 1_000_000, 400_000) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 5)
    with pytest.raises(ValueError, match="cached"):
        Price(2, 5, cached=-1)
