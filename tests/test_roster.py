"""The roster: subordinates that roles start as they go and end again, from profiles too, and how many there may be."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from callboard.runtime.actor import Actor
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.errors import (
    CallboardError,
    LimitReached,
    RoleFailed,
)
from callboard.runtime.event import ActorEnded, ActorStarted
from callboard.runtime.limits import Limits
from callboard.runtime.memory import get_role_rounds
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post
from callboard.runtime.testing import every_interrupt_point

from .injections import INJECTIONS
from .scenarios import Worker, heard, scenario
from .test_conversation import Role, Work, answers, asks, cleans_up, fails, takes


class Helper(Actor):
    """Answers with its name and the number of its rounds that hold something."""

    def __init__(self, name: str = "helper", *subordinates: Actor) -> None:
        self.name = name
        self.subordinates = subordinates

    async def receive(self, post: Post, context: TurnContext) -> Post:
        rounds = await get_role_rounds(context, context.role)
        return post.reply(f"{context.role} {sum(bool(round_.post_list) for round_ in rounds)}")


def does(work: Callable[[TurnContext], Any], *subordinates: Actor, name: str = "root") -> Role:
    """A role that does something with its context, and answers with what that gives."""

    async def receive(post: Post, context: TurnContext) -> Post:
        return post.reply(str(await work(context)))

    return Role(name, receive, *subordinates)


def profiles(**made: Callable[[], Any]) -> ConversationOptions:
    """Options with these profiles."""
    return ConversationOptions(profiles=made)


async def raised(call: Any) -> str:
    """Which error an awaited call raises, and what it says."""
    try:
        return f"gave {await call}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


async def said(root: Actor, options: ConversationOptions | None = None, times: int = 1) -> str:
    """The last answer of a conversation."""
    async with open_conversation(root, options=options) as conversation:
        for _ in range(times):
            answer = (await conversation.send("go")).message
        return answer


# By instance, by profile, under another name


async def test_a_profile_makes_a_new_actor_for_each_name() -> None:
    made: list[Actor] = []

    def helper() -> Actor:
        made.append(Helper())
        return made[-1]

    async def work(context: TurnContext) -> list[str]:
        names = [await context.start_subordinate("helper", name=name) for name in ("", "second", "third")]
        return [(await context.ask(name)).message for name in names]

    assert await said(does(work), profiles(helper=helper)) == "['helper 1', 'second 1', 'third 1']"
    assert len({id(actor) for actor in made}) == 3 and {actor.name for actor in made} == {"helper"}


async def test_one_instance_may_be_started_under_several_names_and_keeps_its_own() -> None:
    helper = Helper()

    async def work(context: TurnContext) -> list[str]:
        for name in ("one", "two"):
            assert await context.start_subordinate(helper, name=name) == name
        return [*context.subordinates, (await context.ask("two")).message]

    assert await said(does(work)) == "['one', 'two', 'two 1']"
    assert helper.name == "helper"


async def test_a_name_that_is_there_gives_the_role_there_is_whatever_made_it() -> None:
    async def work(context: TurnContext) -> str:
        await context.start_subordinate(Helper("helper"))
        assert await context.start_subordinate("helper") == "helper"
        assert await context.start_subordinate("other", name="helper") == "helper"
        return (await context.ask("helper")).message

    made = profiles(helper=Helper, other=lambda: Worker("other"))
    assert await said(does(work), made, times=3) == "helper 3"


@pytest.mark.parametrize("reset", [False, True])
async def test_a_role_that_is_started_again_forgets_its_rounds_if_it_is_reset(reset: bool) -> None:
    async def work(context: TurnContext) -> str:
        name = await context.start_subordinate("helper", name="h", reset=reset)
        return (await context.ask(name)).message

    assert await said(does(work), profiles(helper=Helper), times=3) == ("h 1" if reset else "h 3")


async def test_a_role_that_was_ended_and_started_again_knows_its_rounds_unless_reset() -> None:
    async def work(context: TurnContext) -> list[str]:
        found = []
        for reset in (False, False, True):
            await context.start_subordinate(Helper(), reset=reset)
            found.append((await context.ask("helper")).message)
            await context.end_subordinate("helper")
        return [*found, *context.subordinates]

    assert await said(does(work)) == "['helper 1', 'helper 1', 'helper 1']"
    assert await said(does(work), times=2) == "['helper 2', 'helper 2', 'helper 1']"


async def test_several_started_at_once_work_at_once(autojump_clock: MockClock) -> None:
    async def work(context: TurnContext) -> list[str]:
        found: list[str] = []

        async def use(number: int) -> None:
            name = await context.start_subordinate("slow", name=f"slow{number}")
            found.append(f"{(await context.ask(name, name)).message} at {trio.current_time():g}")
            await context.end_subordinate(name)

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(use, number)
        return [*sorted(found), *context.subordinates]

    made = profiles(slow=lambda: Role("slow", takes(2)))
    assert await said(does(work), made) == str([f"slow{number} at 2" for number in range(4)])


async def test_the_same_name_started_at_once_is_started_once() -> None:
    async def work(context: TurnContext) -> int:
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(context.start_subordinate, Helper())
        return len(context.subordinates)

    async with open_conversation(does(work)) as conversation:
        events = conversation.events()
        assert (await conversation.send("go")).message == "1"
    assert [event.role async for event in events if isinstance(event, ActorStarted)] == ["helper"]


# What is refused, and that nothing else breaks


def broken() -> Actor:
    raise OSError("no such model")


class Odd(Helper):
    """Cannot say who is under it."""

    @property
    def subordinates(self) -> Any:
        raise OSError("cannot say")

    @subordinates.setter
    def subordinates(self, value: Any) -> None:
        return None


@pytest.mark.parametrize(
    ("profile", "name", "expected"),
    [
        ("broken", "", "OSError: no such model"),
        ("none", "", "TypeError: the profile 'none' made NoneType, not an Actor"),
        ("a class", "", "TypeError: the profile 'a class' made ABCMeta, not an Actor"),
        ("nameless", "", "ValueError: a role's name is a letter, then letters, digits, _ and -, not ''"),
        ("helper", "not a name", "ValueError: a role's name is a letter, then letters, digits, _ and -, not 'not a n"),
        ("helper", "User", "DuplicateName: two actors are called 'User': the runtime itself and a subordinate of root"),
        ("helper", "root", "DuplicateName: two actors are called 'root': the conversation's own list and a subordin"),
        ("helper", "peer", "DuplicateName: two actors are called 'peer': the conversation's own list and a subordin"),
        ("taken", "", "DuplicateName: two actors are called 'peer'"),
        ("taken below", "", "DuplicateName: two actors are called 'root'"),
        ("twice below", "", "DuplicateName: two actors are called 'twin'"),
        ("no actor below", "", "TypeError: a role is an Actor, not str"),
        ("odd", "", "OSError: cannot say"),
        ("unknown", "", "UnknownRole: no profile 'unknown' in this conversation; there are helper, broken, none, "),
    ],
)
async def test_what_cannot_be_started_raises_where_it_was_asked_for_and_breaks_nothing(
    profile: str, name: str, expected: str
) -> None:
    made: dict[str, Callable[[], Any]] = {
        "helper": Helper,
        "broken": broken,
        "none": lambda: None,
        "a class": lambda: Helper,
        "nameless": lambda: Helper(""),
        "taken": lambda: Helper("peer"),
        "taken below": lambda: Helper("helper", Helper("root")),
        "twice below": lambda: Helper("helper", Helper("twin"), Helper("twin")),
        "no actor below": lambda: Helper("helper", "text"),  # type: ignore[arg-type]  # what is refused here
        "odd": Odd,
    }

    async def work(context: TurnContext) -> str:
        error = await raised(context.start_subordinate(profile, name=name))
        assert context.subordinates == ()
        await context.start_subordinate("helper")
        assert (await context.ask("helper")).message.startswith("helper")
        await context.end_subordinate("helper")
        return error

    options = ConversationOptions(profiles=made)
    async with open_conversation(does(work), Helper("peer"), options=options) as conversation:
        assert (await conversation.send("go")).message.startswith(expected)
        await conversation.send("again")
        assert list(conversation.statistics().mailboxes) == ["root", "peer"]


async def test_a_profile_that_raises_fails_the_round_only_if_nobody_handles_it() -> None:
    async def work(context: TurnContext) -> str:
        return await context.start_subordinate("broken")

    async with open_conversation(does(work), options=profiles(broken=broken)) as conversation:
        for _ in range(2):
            with pytest.raises(RoleFailed, match="root failed: OSError: no such model"):
                await conversation.send("go")


async def test_a_profile_that_stops_the_round_ends_it() -> None:
    async def work(context: TurnContext) -> str:
        return await context.start_subordinate("stopping")

    def stopping() -> Actor:
        conversation.stop("the profile has seen enough")
        return Helper()

    async with open_conversation(does(work), options=profiles(stopping=stopping)) as conversation:
        with pytest.raises(CallboardError):
            await conversation.send("go")
        await conversation.wait_idle()
        assert not conversation.statistics().turns


# How deep and how many


class Digger(Actor):
    """Starts one more under itself and asks it, until it may not; answers with how deep that went."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def receive(self, post: Post, context: TurnContext) -> Post:
        depth = int(post.message)
        try:
            name = await context.start_subordinate(Digger(f"digger{depth + 1}"))
        except LimitReached as error:
            return post.reply(f"{depth}: {error}")
        return post.reply((await context.ask(name, str(depth + 1))).message)


@pytest.mark.parametrize("depth", [1, 3, 5])
async def test_roles_are_started_so_deep_and_no_deeper(depth: int) -> None:
    options = ConversationOptions(max_depth=depth)
    async with open_conversation(Digger("digger1"), options=options) as conversation:
        answer = (await conversation.send("1")).message
        assert answer.startswith(f"{depth}: the limit of {depth} depth is reached; to raise it, set max_depth= in")


async def test_the_depth_is_five_unless_the_host_says_otherwise() -> None:
    async with open_conversation(Digger("digger1")) as conversation:
        assert (await conversation.send("1")).message.startswith("5: ")


async def test_a_tree_counts_with_all_its_levels() -> None:
    async def work(context: TurnContext) -> str:
        three = Helper("one", Helper("two", Helper("three")))
        assert "LimitReached" in await raised(context.start_subordinate(three))
        return str(await context.start_subordinate(Helper("one", Helper("two"), Helper("too"))))

    assert await said(does(work), ConversationOptions(max_depth=3)) == "one"


async def test_what_the_host_gives_at_the_opening_may_be_deeper() -> None:
    async def work(context: TurnContext) -> str:
        return await raised(context.start_subordinate(Helper()))

    root = Role("a", asks("b"), Role("b", asks("c"), does(work, name="c")))
    async with open_conversation(root, options=ConversationOptions(max_depth=2)) as conversation:
        assert "the limit of 2 depth is reached" in (await conversation.send("go")).message


def starts_many(count: int, below: str = "helper") -> Callable[[TurnContext], Any]:
    """Starts so many; how many that went well, and what was said to the first that did not."""

    async def work(context: TurnContext) -> str:
        for number in range(count):
            error = await raised(context.start_subordinate(Helper(f"{below}{number}")))
            if not error.startswith("gave"):
                return f"{number}, {error}"
        return str(count)

    return work


async def test_so_many_are_started_over_the_whole_tree_and_no_more() -> None:
    root = Role("root", asks("a"), does(starts_many(50, "of_a"), name="a"), Helper("given"))
    options = ConversationOptions(fan_out=3)
    async with open_conversation(root, options=options) as conversation:
        answer = (await conversation.send("go")).message
        assert answer.startswith("3, LimitReached: the limit of 3 actors is reached; to raise it, set fan_out= in")
        root.work = does(starts_many(1)).work
        assert (await conversation.send("again")).message.startswith("0, LimitReached")


async def test_there_may_be_32_unless_the_host_says_otherwise() -> None:
    assert (await said(does(starts_many(50)))).startswith("32, LimitReached")


async def test_a_tree_needs_room_for_all_of_it() -> None:
    async def work(context: TurnContext) -> list[str]:
        two = Helper("one", Helper("two"))
        refused = await raised(context.start_subordinate(Helper("more", two)))
        return [refused.split(":")[0], await context.start_subordinate(two), *context.subordinates]

    assert await said(does(work), ConversationOptions(fan_out=2)) == "['LimitReached', 'one', 'one']"


@pytest.mark.parametrize("with_task", [False, True])
async def test_what_is_ended_frees_its_place_with_all_under_it(with_task: bool) -> None:
    async def work(context: TurnContext) -> str:
        for number in range(4):
            name = await context.start_subordinate(Helper(f"helper{number}", Helper(f"below{number}")))
            if with_task:
                await context.ask(name)
                await context.ask(f"below{number}")
            await context.end_subordinate(name)
            await context.end_subordinate(name)
        return str(context.subordinates)

    assert await said(does(work), ConversationOptions(fan_out=2)) == "()"


async def test_a_place_is_free_when_the_last_turn_has_ended_and_not_before(autojump_clock: MockClock) -> None:
    async def work(context: TurnContext) -> str:
        async with trio.open_nursery() as nursery:
            await context.start_subordinate(Role("slow", cleans_up(5)))
            await context.tell("slow")
            await trio.sleep(1)
            nursery.start_soon(context.end_subordinate, "slow")
            await trio.sleep(1)
            early = await raised(context.start_subordinate(Helper()))
        return f"{early.split(':')[0]}, {await context.start_subordinate(Helper())} at {trio.current_time():g}"

    assert await said(does(work), ConversationOptions(fan_out=1)) == "LimitReached, helper at 6"


async def test_events_say_who_was_started_and_ended() -> None:
    async def work(context: TurnContext) -> None:
        await context.start_subordinate(Helper("one", Helper("two")))
        await context.end_subordinate("one")

    async with open_conversation(does(work)) as conversation:
        events = conversation.events()
        await conversation.send("go")
    found = [event async for event in events if isinstance(event, ActorStarted | ActorEnded)]
    assert [(type(event).__name__, event.role) for event in found] == [
        ("ActorStarted", "one"),
        ("ActorStarted", "two"),
        ("ActorEnded", "two"),
        ("ActorEnded", "one"),
    ]


# Interruptions


class Hiring(Actor):
    """Hires two from a profile, at once, asks each, lets the first go, and keeps the second."""

    name = "hiring"

    async def receive(self, post: Post, context: TurnContext) -> Post | None:
        words = await heard(context)
        found: list[str] = []

        async def hire(name: str) -> None:
            started = await context.start_subordinate("worker", name=name)
            assert started == name and name in context.subordinates
            found.append((await context.ask(name, "do", limits=Limits(seconds=30))).message)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(hire, "first")
            nursery.start_soon(hire, "second")
        await context.end_subordinate("first")
        assert context.subordinates == ("second",)
        return post.reply(f"{words}{sorted(found)}")


async def hire_twice(conversation: Conversation) -> None:
    """Two rounds; in the end one of the two is there."""
    for _ in range(2):
        await conversation.send("q")
    await conversation.wait_idle()
    assert set(conversation.statistics().mailboxes) == {"hiring", "second"}


def hires(injection: str, sample: int | None) -> None:
    """The injection at so many moments of a conversation that starts, asks and ends."""
    made = {"worker": lambda: Worker("worker", 1)}
    run = scenario(Hiring, host=hire_twice, profiles=made, fan_out=2, limits=Limits(replies=100))
    assert every_interrupt_point(run, INJECTIONS[injection], sample=sample).outcomes["seen"]


@pytest.mark.parametrize("injection", ["level 1", "level 2", "1, 2", "after step", "nudge"])
def test_an_interruption_of_start_ask_or_end_starts_nobody_twice_and_loses_nobody(injection: str) -> None:
    hires(injection, sample=12)


@pytest.mark.slow
@pytest.mark.parametrize("injection", ["level 1", "level 2", "1, 2", "after step", "nudge"])
def test_an_interruption_at_any_moment_of_start_ask_or_end_starts_nobody_twice(injection: str) -> None:
    hires(injection, sample=None)


# Failing roles


async def test_a_failing_role_fails_its_ask_with_its_name_its_post_and_its_cause() -> None:
    found: list[RoleFailed] = []

    async def work(context: TurnContext) -> str:
        with pytest.raises(RoleFailed) as caught:
            await context.ask("helper", "do")
        found.append(caught.value)
        return "went on"

    async with open_conversation(does(work, Role("helper", fails(OSError("no disk"))))) as conversation:
        assert (await conversation.send("go")).message == "went on"
        (asked, answer) = conversation.transcript().rounds[0].post_list[1:3]
    assert (found[0].role, found[0].post_id) == ("helper", asked.id)
    assert isinstance(found[0].__cause__, OSError)
    assert (answer.marks.kind, answer.message) == ("error", "helper failed: OSError: no disk")


def asks_at_once(*names: str) -> Work:
    """Asks all of them in a nursery of its own."""

    async def work(post: Post, context: TurnContext) -> Post:
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(context.ask, name, "do")
        return post.reply("done")

    return work


def fails_with(bell: trio.Event, error: Exception) -> Work:
    """Fails when the bell rings."""

    async def work(post: Post, context: TurnContext) -> Post:
        await bell.wait()
        raise error

    return work


async def test_two_that_fail_together_are_a_group_whose_text_says_both(autojump_clock: MockClock) -> None:
    bell = trio.Event()
    below = [Role("a", fails_with(bell, KeyError("x"))), Role("b", fails_with(bell, ValueError("y")))]
    async with open_conversation(Role("root", asks_at_once("a", "b"), *below)) as conversation:
        started = conversation.communicate("go")
        await trio.sleep(1)
        bell.set()
        with pytest.raises(RoleFailed) as caught:
            await started.reply()
        assert "a failed: KeyError: 'x'" in str(caught.value) and "b failed: ValueError: y" in str(caught.value)
        assert isinstance(caught.value.__cause__, ExceptionGroup)
        assert {getattr(error, "role", "") for error in caught.value.__cause__.exceptions} == {"a", "b"}
        assert not conversation.statistics().turns


async def test_one_that_fails_beside_others_is_itself_and_the_others_are_recalled(autojump_clock: MockClock) -> None:
    below = [Role("a", fails(KeyError("x"))), Role("b", takes(9))]
    async with open_conversation(Role("root", asks_at_once("a", "b"), *below)) as conversation:
        with pytest.raises(RoleFailed) as caught:
            await conversation.send("go")
        assert isinstance(caught.value.__cause__, RoleFailed) and caught.value.__cause__.role == "a"
        assert trio.current_time() == 0 and not conversation.statistics().turns


async def test_the_limit_that_two_reach_together_is_said_in_the_rounds_failure() -> None:
    below = [Role("a", answers), Role("b", answers)]
    options = ConversationOptions(limits=Limits(replies=1))
    async with open_conversation(Role("root", asks_at_once("a", "b"), *below), options=options) as conversation:
        with pytest.raises(RoleFailed, match=r"set limits=Limits\(replies=\.\.\.\)"):
            await conversation.send("go")


async def test_a_conversation_is_usable_after_a_round_that_failed() -> None:
    helper = Role("helper", fails(OSError()))
    async with open_conversation(Role("root", asks("helper"), helper)) as conversation:
        for _ in range(3):
            with pytest.raises(RoleFailed):
                await conversation.send("go")
        helper.work = answers
        assert (await conversation.send("once more")).message == "once more"
