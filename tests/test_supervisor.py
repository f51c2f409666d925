"""The supervisor: roles that are started and ended on the way, and conversations that hold no task while idle."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from callboard.runtime.actor import Actor
from callboard.runtime.context import LiveContext, TurnContext
from callboard.runtime.errors import DuplicateName, RequestRecalled, RoleFailed, UnknownRole
from callboard.runtime.event import ActorEnded, ActorStarted
from callboard.runtime.memory import get_role_rounds
from callboard.runtime.opening import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.post import Post

from .test_conversation import Role, Work, answers, asks, cleans_up, in_order, sends, takes, tells


class Lasting(Role):
    """Has a lifetime of its own that takes so long to leave; writes down both ends."""

    def __init__(self, name: str, seconds: float = 0, work: Work = answers, *subordinates: Actor) -> None:
        super().__init__(name, work, *subordinates)
        self.seconds = seconds
        self.log: list[str] = []

    @asynccontextmanager
    async def live(self, context: LiveContext) -> AsyncIterator[object]:
        self.log.append("in")
        yield None
        if self.seconds:
            await trio.sleep(self.seconds)
        self.log.append("out")


def starts(*actors: Actor, ask: str | None = None, reset: bool = False) -> Work:
    """Starts these, asks one of them, by default the first, and answers with its answer."""

    async def work(post: Post, context: TurnContext) -> Post:
        for actor in actors:
            assert await context.start_subordinate(actor, reset=reset) == actor.name
        return post.reply((await context.ask(ask or actors[0].name, post.message)).message)

    return work


def tasks() -> set[str]:
    """The names of all tasks under the nurseries of this task."""
    return {task.name for nursery in trio.lowlevel.current_task().child_nurseries for task in nursery.child_tasks}


async def counts_rounds(post: Post, context: TurnContext) -> Post:
    """Answers with how many posts it finds in each of its rounds."""
    rounds = await get_role_rounds(context, context.role)
    return post.reply(" ".join(str(len(round_.post_list)) for round_ in rounds))


async def test_a_role_starts_a_subordinate_and_asks_it() -> None:
    async with open_conversation(Role("root", starts(Role("worker", answers)))) as conversation:
        events = conversation.events()
        assert (await conversation.send("a")).message == "a"
        assert list(conversation.statistics().mailboxes) == ["root", "worker"]
    assert [event async for event in events if isinstance(event, ActorStarted)] == [ActorStarted("worker", "root")]


async def test_starting_the_same_name_under_the_same_superior_gives_the_one_there_is() -> None:
    first, second = Role("worker", answers), Role("worker", cleans_up(0))
    async with open_conversation(Role("root", starts(first, second))) as conversation:
        assert (await conversation.send("a")).message == "a"
        assert (await conversation.send("b")).message == "b"


async def test_a_name_of_another_superior_is_refused_with_both_origins() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        with pytest.raises(DuplicateName) as caught:
            await context.start_subordinate(Role(post.message, answers))
        return post.reply(f"{caught.value.first}, {caught.value.second}")

    other = Role("other", answers, Role("worker", answers))
    async with open_conversation(Role("root", work), other) as conversation:
        assert (await conversation.send("worker")).message == "a subordinate of other, a subordinate of root"
        assert (await conversation.send("other")).message == "the conversation's own list, a subordinate of root"
        assert (await conversation.send("memory")).message == "the runtime itself, a subordinate of root"


async def test_what_is_no_actor_is_not_started() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        nothing: Any = 3
        with pytest.raises(TypeError, match="not int"):
            await context.start_subordinate(nothing)
        with pytest.raises(UnknownRole, match="no profile 'worker' in this conversation; there are none"):
            await context.start_subordinate("worker")
        with pytest.raises(ValueError, match="letter"):
            await context.start_subordinate(Role("no name", answers))
        return post.reply()

    async with open_conversation(Role("root", work)) as conversation:
        await conversation.send("a")


async def test_all_under_a_role_is_started_with_it() -> None:
    leaf = Role("leaf", answers)
    middle = Role("middle", asks("leaf"), leaf)
    async with open_conversation(Role("root", starts(middle))) as conversation:
        assert (await conversation.send("a")).message == "a"
        assert list(conversation.statistics().mailboxes) == ["root", "middle", "leaf"]


async def test_of_a_tree_with_a_name_that_is_taken_nothing_is_started() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        with pytest.raises(DuplicateName, match="'root'"):
            await context.start_subordinate(Role("middle", answers, Role("leaf", answers), Role("root", answers)))
        with pytest.raises(DuplicateName, match="'twin'"):
            await context.start_subordinate(Role("middle", answers, Role("twin", answers), Role("twin", answers)))
        return post.reply(str(context.subordinates))

    async with open_conversation(Role("root", work)) as conversation:
        assert (await conversation.send("a")).message == "()"
        assert list(conversation.statistics().mailboxes) == ["root"]


@pytest.mark.parametrize("reset", [False, True])
async def test_a_subordinate_knows_its_earlier_rounds_unless_it_is_reset(reset: bool) -> None:
    root = Role("root", starts(Role("worker", counts_rounds), reset=reset))
    async with open_conversation(root) as conversation:
        assert (await conversation.send("a")).message == "1"
        assert (await conversation.send("b")).message == ("1" if reset else "2 1")
        assert len(conversation.transcript().rounds[0].post_list) == 4


@pytest.mark.parametrize("reset", [False, True])
async def test_a_subordinate_knows_what_its_recalled_turn_left_unless_it_is_reset(
    autojump_clock: MockClock, reset: bool
) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        reply = await counts_rounds(post, context)
        context.draft.write("so far")
        context.record("a note")
        await trio.sleep(2)
        return reply

    async with open_conversation(Role("root", starts(Role("worker", work), reset=reset))) as conversation:
        started = conversation.communicate("a")
        await trio.sleep(1)
        conversation.intervene("b", broadcast_level=2)
        # Asked, a note, its account, the intervention; then asked again.
        assert (await started.reply()).message == ("1" if reset else "5")


@pytest.mark.parametrize("steps", range(8))
async def test_an_interruption_at_any_moment_of_start_and_first_ask_changes_nothing(
    autojump_clock: MockClock, steps: int
) -> None:
    worker = Lasting("worker", 0, takes(1))
    async with open_conversation(Role("root", starts(worker))) as conversation:
        events = conversation.events()
        started = conversation.communicate("a")
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
        receipt = conversation.intervene("b", broadcast_level=-1)
        assert (await started.reply()).message.startswith("a")
        assert "root" in receipt.reached
    assert len([event async for event in events if isinstance(event, ActorStarted)]) == 1
    assert worker.log == ["in", "out"]


async def test_a_subordinate_lives_through_the_recall_of_its_turn(autojump_clock: MockClock) -> None:
    worker = Lasting("worker", 0, takes(2))
    async with open_conversation(Role("root", starts(worker))) as conversation:
        with trio.move_on_after(1):
            await conversation.send("a")
        assert list(conversation.statistics().mailboxes) == ["root", "worker"]
        assert (await conversation.send("b")).message == "b"
        assert worker.log == ["in"]


class Ender(Role):
    """Has a subordinate working, ends it on the way, and answers with what those who asked it got."""

    def __init__(self, worker: Actor) -> None:
        super().__init__("root", self.end)
        self.worker = worker
        self.ended_at = -1.0
        self.outcomes: list[Any] = []

    async def end(self, post: Post, context: TurnContext) -> Post:
        await context.start_subordinate(self.worker)
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(self.ask, context)
            await wait_all_tasks_blocked()
            await context.end_subordinate(self.worker.name)
            self.ended_at = trio.current_time()
            self.outcomes.append(context.subordinates)
            await context.start_subordinate(Role(self.worker.name, answers))
        return post.reply((await context.ask(self.worker.name, "again")).message)

    async def ask(self, context: TurnContext) -> None:
        try:
            await context.ask(self.worker.name, "first")
        except RequestRecalled as error:
            self.outcomes.append(error.role)


async def test_an_ended_role_is_recalled_answered_left_and_its_name_free(autojump_clock: MockClock) -> None:
    worker = Lasting("worker", 2, cleans_up(5))
    root = Ender(worker)
    async with open_conversation(root) as conversation:
        events = conversation.events()
        assert (await conversation.send("a")).message == "again"
    assert root.outcomes == ["worker", "worker", ()]
    assert (root.ended_at, worker.log) == (7, ["in", "out"])
    names = [type(event).__name__ async for event in events if isinstance(event, ActorStarted | ActorEnded)]
    assert names == ["ActorStarted", "ActorEnded", "ActorStarted"]


async def test_a_role_without_a_task_is_ended_at_once() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        await context.start_subordinate(Role("worker", answers))
        await context.end_subordinate("worker")
        with pytest.raises(UnknownRole):
            await context.ask("worker")
        return post.reply(str(context.subordinates))

    async with open_conversation(Role("root", work)) as conversation:
        assert (await conversation.send("a")).message == "()"


async def test_only_its_own_subordinates_can_be_ended_by_a_role() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        for name in ("leaf", "other", "root", "nobody"):
            with pytest.raises(UnknownRole):
                await context.end_subordinate(name)
        return post.reply((await context.ask("leaf", "still there")).message)

    root = Role("root", work, Role("middle", answers, Role("leaf", answers)))
    async with open_conversation(root, Role("other", answers)) as conversation:
        assert (await conversation.send("a")).message == "still there"


async def test_all_under_an_ended_role_is_ended_too(autojump_clock: MockClock) -> None:
    leaf = Lasting("leaf", 0, cleans_up(0))
    middle = Role("middle", asks("leaf"), leaf)

    async def work(post: Post, context: TurnContext) -> Post:
        await context.start_subordinate(middle)
        await context.tell("middle")
        await wait_all_tasks_blocked()
        await context.end_subordinate("middle")
        return post.reply()

    async with open_conversation(Role("root", work)) as conversation:
        await conversation.send("a")
        await conversation.wait_idle()
        assert list(conversation.statistics().mailboxes) == ["root"]
        assert leaf.log == ["in", "out"]


async def test_a_start_waits_until_the_last_turn_of_an_ended_role_has_ended(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        await context.start_subordinate(Role("worker", cleans_up(5)))
        await context.tell("worker")
        await wait_all_tasks_blocked()
        with trio.move_on_after(1):
            await context.end_subordinate("worker")
        with pytest.raises(UnknownRole):
            await context.ask("worker")
        await context.start_subordinate(Role("worker", answers))
        return post.reply(f"{trio.current_time()} {(await context.ask('worker', 'new')).message}")

    async with open_conversation(Role("root", work)) as conversation:
        assert (await conversation.send("a")).message == "5.0 new"


async def test_an_ended_role_that_cannot_be_left_says_why() -> None:
    class Broken(Role):
        @asynccontextmanager
        async def live(self, context: LiveContext) -> AsyncIterator[object]:
            yield None
            raise OSError("stuck")

    async def work(post: Post, context: TurnContext) -> Post:
        await context.start_subordinate(Broken("worker", answers))
        await context.ask("worker")
        with pytest.raises(RoleFailed, match="stuck"):
            await context.end_subordinate("worker")
        return post.reply()

    async with open_conversation(Role("root", work)) as conversation:
        await conversation.send("a")


async def test_ending_a_role_waits_for_all_under_it(autojump_clock: MockClock) -> None:
    leaf = Lasting("leaf", 3)
    middle = Role("middle", asks("leaf"), leaf)

    async def work(post: Post, context: TurnContext) -> Post:
        await context.start_subordinate(middle)
        await context.ask("middle")
        await context.end_subordinate("middle")
        return post.reply(str(trio.current_time()))

    async with open_conversation(Role("root", work)) as conversation:
        reply = await conversation.send("a")
        await trio.sleep(9)
    assert reply.message == "3.0"


async def test_a_tree_that_was_ended_can_be_started_again(autojump_clock: MockClock) -> None:
    middle = Role("middle", asks("leaf"), Lasting("leaf", 3))

    async def work(post: Post, context: TurnContext) -> Post:
        for _ in range(2):
            await context.start_subordinate(middle)
            await context.ask("middle")
            with trio.move_on_after(1):
                await context.end_subordinate("middle")
        return post.reply("twice")

    async with open_conversation(Role("root", work)) as conversation, trio.open_nursery() as nursery:
        outcomes = await in_order(nursery, *sends(conversation, "a"))
        await trio.sleep(9)
    assert [str(getattr(outcome, "message", outcome)) for outcome in outcomes] == ["twice"]


async def test_leaving_the_block_while_a_role_is_being_ended_waits_for_it(autojump_clock: MockClock) -> None:
    worker = Lasting("worker", 13)

    async def work(post: Post, context: TurnContext) -> Post:
        await context.start_subordinate(worker)
        await context.ask("worker")
        with trio.move_on_after(1):
            await context.end_subordinate("worker")
        return post.reply()

    # Long enough for all other tasks to have ended: with one of them alive the block hangs for ever.
    async with open_conversation(Role("root", work), options=ConversationOptions(idle_after=1)) as conversation:
        await conversation.send("a")
        await trio.sleep(9)
        assert tasks() == {"callboard:worker"}
    assert (trio.current_time(), worker.log) == (13, ["in", "out"])


async def test_a_role_that_is_being_ended_starts_nobody(autojump_clock: MockClock) -> None:
    raised: list[str] = []

    async def starts_late(post: Post, context: TurnContext) -> Post:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                try:
                    await context.start_subordinate(Role("late", answers))
                except Exception as error:
                    raised.append(type(error).__name__)
        raise AssertionError("it sleeps for ever")

    async def work(post: Post, context: TurnContext) -> Post:
        await context.start_subordinate(Role("worker", starts_late))
        await context.tell("worker")
        await wait_all_tasks_blocked()
        await context.end_subordinate("worker")
        return post.reply()

    async with open_conversation(Role("root", work)) as conversation:
        await conversation.send("a")
        assert raised == ["UnknownRole"]
        assert list(conversation.statistics().mailboxes) == ["root"]


async def test_a_conversation_that_was_not_spoken_to_has_no_task() -> None:
    async with open_conversation(Role("root", answers, Lasting("worker"))):
        await wait_all_tasks_blocked()
        assert tasks() == set()


async def test_an_idle_conversation_has_no_task(autojump_clock: MockClock) -> None:
    root = Role("root", asks("worker"), Role("worker", counts_rounds))
    async with open_conversation(root) as conversation:
        await conversation.send("a")
        assert tasks() == {"callboard:root", "callboard:worker", "callboard:memory", "callboard:watch"}
        await trio.sleep(29)
        assert "callboard:root" in tasks()
        await trio.sleep(2)
        assert tasks() == set()
        assert (await conversation.send("b")).message == "2 1"


async def test_the_time_without_work_counts_from_the_last_turn(autojump_clock: MockClock) -> None:
    options = ConversationOptions(idle_after=10)
    async with open_conversation(Role("root", takes(6)), options=options) as conversation:
        for _ in range(3):
            await conversation.send("a")
            await trio.sleep(9)
            assert "callboard:root" in tasks()
        await trio.sleep(2)
        assert tasks() == set()


async def test_told_work_keeps_the_tasks(autojump_clock: MockClock) -> None:
    root = Role("root", tells("worker"), Role("worker", takes(100)))
    async with open_conversation(root) as conversation:
        await conversation.send("a")
        await trio.sleep(99)
        assert "callboard:worker" in tasks()
        await trio.sleep(40)
        assert tasks() == set()


async def test_a_role_with_a_lifetime_of_its_own_keeps_its_task(autojump_clock: MockClock) -> None:
    worker = Lasting("worker")
    async with open_conversation(Role("root", asks("worker"), worker)) as conversation:
        await conversation.send("a")
        await trio.sleep(60)
        assert tasks() == {"callboard:worker"}
        assert (await conversation.send("b")).message == "b"
    assert worker.log == ["in", "out"]


@pytest.mark.parametrize("seconds", [29, 30, 31, 60])
@pytest.mark.parametrize("steps", range(4))
async def test_a_post_at_the_very_step_in_which_a_task_ends_is_served(
    autojump_clock: MockClock, seconds: int, steps: int
) -> None:
    root = Role("root", asks("worker"), Role("worker", counts_rounds))
    async with open_conversation(root) as conversation:
        for reply in ("1", "2 1", "2 2 1"):
            assert (await conversation.send("a")).message == reply
            await trio.sleep(seconds)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("lasting", [False, True])
async def test_closing_while_a_task_is_being_started_ends_it(
    autojump_clock: MockClock, steps: int, lasting: bool
) -> None:
    worker = Lasting("worker", 0, takes(9)) if lasting else Role("worker", takes(9))
    async with open_conversation(Role("root", asks("worker"), worker)) as conversation:
        conversation.communicate("a")
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
    assert (trio.current_time(), tasks()) == (0, set())
    assert not isinstance(worker, Lasting) or worker.log in ([], ["in", "out"])


async def test_a_role_ended_while_its_task_is_being_started_is_gone(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        await context.start_subordinate(Role("worker", takes(9)))
        await context.tell("worker")
        await context.end_subordinate("worker")
        await context.start_subordinate(Role("worker", answers))
        return post.reply((await context.ask("worker", "new")).message)

    async with open_conversation(Role("root", work)) as conversation, trio.open_nursery() as nursery:
        (reply,) = await in_order(nursery, *sends(conversation, "a"))
        assert (reply.message, trio.current_time()) == ("new", 0)
