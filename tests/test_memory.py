"""Memory: what its answers hold, in which order, what they share, and that a record wakes nobody."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
import trio
from trio.abc import Instrument
from trio.testing import MockClock

from callboard.runtime.attachment import Attachment
from callboard.runtime.context import TurnContext
from callboard.runtime.errors import CallboardError
from callboard.runtime.event import Event
from callboard.runtime.memory import Memory, _RoleRounds, get_role_rounds, get_shared_memory_entries
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Marks, Post
from callboard.runtime.round import Round, RoundState
from callboard.runtime.shared_memory import EntryScope, SharedMemoryEntry
from callboard.runtime.subscription import Publisher
from callboard.runtime.transcript import Transcript
from callboard.runtime.user_message import UserMessage

from .test_conversation import Role, answers, asks

ROLES = ("User", "root", "planner", "worker")


def memory_of(*rounds: tuple[str, RoundState, tuple[str, ...]]) -> Memory:
    """A memory of rounds, each of a query, a state, and its posts as `from>to`."""
    events: Publisher[Event] = Publisher()
    memory = Memory("conv-1", events)
    for query, state, routes in rounds:
        memory.begin_round(f"round-{query}", query)
        for route in routes:
            memory.record(post_on(route))
        if state != "created":
            memory.end_round(state)
    return memory


def post_on(route: str, *attachments: Attachment) -> Post:
    """A post along `from>to`."""
    send_from, send_to = route.split(">")
    return Post.create(route, send_from, send_to, attachments)


def routes_of(rounds: tuple[Round, ...]) -> list[list[str]]:
    """The routes of each round's posts."""
    return [[post.message for post in round_.post_list] for round_ in rounds]


def entry_on(role: str, content: str, scope: EntryScope = "conversation") -> Post:
    """A note with a plan that the role shares."""
    entry = SharedMemoryEntry.create("plan", content, scope)
    return post_on(f"{role}>{role}", Attachment.create("shared_memory_entry", "", extra=entry))


def shared_in(*rounds: list[Post], last: RoundState = "finished") -> list[str]:
    """The contents of the plans that hold after finished rounds and a last one."""
    memory = memory_of()
    for number, noted in enumerate(rounds, 1):
        memory.begin_round(f"round-{number}", "")
        for post in noted:
            memory.record(post)
        memory.end_round("finished" if number < len(rounds) else last)
    return [entry.content for entry in memory.shared_entries("plan")]


def test_the_rounds_of_a_role_hold_the_posts_from_and_to_it_in_order() -> None:
    memory = memory_of(("a", "finished", ("User>P", "P>C", "C>C", "C>D", "D>C", "C>P", "P>User")))
    assert routes_of(memory.role_rounds("C")) == [["P>C", "C>C", "C>D", "D>C", "C>P"]]
    assert routes_of(memory.role_rounds("P")) == [["User>P", "P>C", "C>P", "P>User"]]
    assert routes_of(memory.role_rounds("D")) == [["C>D", "D>C"]]


def test_a_round_without_a_match_is_kept_empty() -> None:
    memory = memory_of(("a", "finished", ("User>P",)), ("b", "created", ("User>P", "P>C")))
    rounds = memory.role_rounds("C")
    assert routes_of(rounds) == [[], ["P>C"]]
    assert [(round_.id, round_.user_query, round_.state) for round_ in rounds] == [
        ("round-a", "a", "finished"),
        ("round-b", "b", "created"),
    ]


def test_failed_rounds_are_left_out_unless_asked_for() -> None:
    memory = memory_of(("a", "failed", ("User>P",)), ("b", "stopped", ()), ("c", "created", ()))
    assert [round_.state for round_ in memory.role_rounds("P")] == ["stopped", "created"]
    assert [round_.state for round_ in memory.role_rounds("P", True)] == ["failed", "stopped", "created"]


def test_no_usable_round_gives_an_empty_tuple() -> None:
    for memory in (memory_of(), memory_of(("a", "failed", ()))):
        answer = memory._rounds_of("P", False)
        assert isinstance(answer, tuple) and not answer


def test_finished_rounds_are_the_same_objects_in_every_answer() -> None:
    memory = memory_of(("a", "finished", ("User>P",)), ("b", "finished", ()), ("c", "created", ("User>P",)))
    first = memory.role_rounds("P")
    memory.record(post_on("P>P"))
    second = memory.role_rounds("P", True)
    assert (second[0] is first[0], second[1] is first[1]) == (True, True)
    assert first[0].post_list[0] is memory.transcript().rounds[0].post_list[0]


def test_an_answer_does_not_change_with_later_posts() -> None:
    memory = memory_of(("a", "created", ("User>P",)))
    before = memory.role_rounds("P")
    memory.record(post_on("P>User"))
    memory.end_round("finished")
    assert (routes_of(before), before[0].state) == ([["User>P"]], "created")
    after = memory.role_rounds("P")
    assert (routes_of(after), after[0].state) == ([["User>P", "P>User"]], "finished")


def test_an_answer_is_frozen() -> None:
    (round_,) = memory_of(("a", "created", ("User>P",))).role_rounds("P")
    with pytest.raises(FrozenInstanceError):
        round_.post_list[0].message = "other"  # type: ignore[misc]  # that it cannot be set is the test
    assert isinstance(round_.post_list, tuple)


def test_a_view_that_begins_anew_leaves_out_what_was_before() -> None:
    memory = memory_of(("a", "finished", ("P>C", "C>P")), ("b", "created", ("P>C",)))
    assert len(memory.role_rounds("C")) == 2
    memory.begin_view("C")
    memory.record(post_on("C>P"))
    assert routes_of(memory.role_rounds("C")) == [["C>P"]]
    assert routes_of(memory.role_rounds("P")) == [["P>C", "C>P"], ["P>C", "C>P"]]
    assert len(memory.transcript().rounds[1].post_list) == 2


def test_a_view_that_began_anew_goes_on_in_later_rounds() -> None:
    memory = memory_of(("a", "created", ("P>C",)))
    memory.begin_view("C")
    memory.end_round("finished")
    memory.begin_round("round-b", "b")
    memory.record(post_on("P>C"))
    assert routes_of(memory.role_rounds("C")) == [[], ["P>C"]]


def test_of_conversation_entries_of_one_role_only_the_last_holds() -> None:
    assert shared_in(*([entry_on("P", content)] for content in ("one", "two", "three"))) == ["three"]
    assert shared_in([entry_on("P", "one"), entry_on("P", "two")]) == ["two"]


def test_a_round_entry_holds_in_its_round_only() -> None:
    assert shared_in([entry_on("P", "one", "round")]) == ["one"]
    assert shared_in([entry_on("P", "one", "round")], []) == []


def test_of_round_entries_of_one_role_only_the_last_holds() -> None:
    assert shared_in(*([entry_on("P", content, "round")] for content in ("one", "two", "three"))) == ["three"]


def test_entries_of_several_roles_hold_side_by_side() -> None:
    first, second, third = entry_on("P", "one"), entry_on("P", "two", "round"), entry_on("D", "three", "round")
    assert shared_in([first], [second], [third]) == ["one", "three"]


def test_entries_of_several_roles_stand_newest_last() -> None:
    one, two, three = entry_on("P", "one"), entry_on("Q", "two"), entry_on("P", "three")
    assert shared_in([one, two]) == ["one", "two"]
    assert shared_in([one, two], [three]) == ["two", "three"]


def test_a_round_entry_hides_the_conversation_entry_in_that_round_only() -> None:
    first = [entry_on("P", "always"), entry_on("Q", "other")]
    second = [entry_on("P", "now", "round"), entry_on("P", "always, later")]
    assert shared_in(first, second) == ["other", "now"]
    assert shared_in(first, second, []) == ["other", "always, later"]


@pytest.mark.parametrize("state", ["failed", "stopped"])
def test_entries_of_rounds_that_came_to_nothing_are_dropped(state: RoundState) -> None:
    assert shared_in([entry_on("P", "kept")], [entry_on("P", "dropped")], last=state) == ["kept"]


def test_entries_are_answered_by_type() -> None:
    memory = memory_of(("a", "created", ()))
    entry = SharedMemoryEntry.create("experience_sub_path", "sales", "conversation")
    memory.record(post_on("P>P", Attachment.create("shared_memory_entry", "", extra=entry)))
    assert (memory.shared_entries("plan"), memory.shared_entries("experience_sub_path")) == ((), (entry,))


def test_the_last_round_is_the_current_one_whatever_became_of_it() -> None:
    memory = memory_of(("a", "finished", ("User>P",)))
    memory.record(post_on("P>P"))
    assert routes_of(memory.role_rounds("P")) == [["User>P", "P>P"]]
    memory.begin_round("round-b", "b")
    memory.end_round("failed")
    memory.record(post_on("User>P"))
    assert routes_of(memory.role_rounds("P")) == [["User>P", "P>P"]]
    assert routes_of(memory.role_rounds("P", True)) == [["User>P", "P>P"], ["User>P"]]


async def test_a_role_that_is_started_anew_has_no_earlier_rounds() -> None:
    async def counts(post: Post, context: TurnContext) -> Post:
        rounds = await get_role_rounds(context, "worker")
        return post.reply(str([len(round_.post_list) for round_ in rounds]))

    async def work(post: Post, context: TurnContext) -> Post:
        await context.start_subordinate(Role("worker", counts), reset=post.message == "anew")
        return post.reply((await context.ask("worker")).message)

    async with open_conversation(Role("root", work)) as conversation:
        said = [(await conversation.send(word)).message for word in ("a", "b", "anew", "c")]
    assert said == ["[1]", "[2, 1]", "[1]", "[2, 1]"]


async def test_a_shared_entry_survives_the_file(tmp_path: Path) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        context.share("plan", "1. think", "conversation", "a note")
        return post.reply()

    async with open_conversation(Role("root", work)) as conversation:
        await conversation.send("a")
    conversation.transcript().save(tmp_path / "notes.yaml")
    restored = Transcript.restore_yaml(tmp_path / "notes.yaml")
    assert restored == conversation.transcript()
    (attachment,) = restored.rounds[0].post_list[1].attachment_list
    assert isinstance(attachment.extra, SharedMemoryEntry)
    assert (attachment.content, attachment.extra.content) == ("a note", "1. think")


async def test_a_role_reads_all_that_was_recorded_before_it_asked() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        answers: list[str] = []
        for number in range(3):
            context.record(str(number))
            context.share("plan", f"plan {number}")
            (round_,) = await get_role_rounds(context, "root")
            (entry,) = await get_shared_memory_entries(context, "plan")
            answers.append(f"{round_.post_list[-2].message} of {len(round_.post_list)}, {entry.content}")
        return post.reply("; ".join(answers))

    async with open_conversation(Role("root", work)) as conversation:
        assert (await conversation.send("a")).message == "0 of 3, plan 0; 1 of 5, plan 1; 2 of 7, plan 2"


async def test_partial_work_and_interventions_stand_in_the_order_in_which_they_happened(
    autojump_clock: MockClock,
) -> None:
    read: list[list[str]] = []

    async def work(post: Post, context: TurnContext) -> Post:
        (round_,) = await get_role_rounds(context, "root")
        read.append([one.message for one in round_.post_list])
        context.draft.write(f"draft {context.attempt}")
        await trio.sleep(2)
        return post.reply("done")

    async with open_conversation(Role("root", work)) as conversation:
        conversation.communicate("a")
        await trio.sleep(1)
        conversation.intervene("b")
        conversation.intervene("c")
        await trio.sleep(1)
        conversation.intervene(UserMessage("d"))
        await conversation.wait_idle()
    everything = ["a", "draft 1", "b", "c", "draft 2", "d"]
    assert read == [everything[:1], everything[:4], everything]
    assert routes_of(conversation.rounds("root")) == [[*everything, "done"]]


async def test_words_count_as_seen_once_their_own_role_has_read_its_rounds(autojump_clock: MockClock) -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        await get_role_rounds(context, "root" if context.attempt > 1 else "nobody")
        await trio.sleep(1)
        return post.reply()

    async with open_conversation(Role("root", work)) as conversation:
        conversation.communicate("a")
        await trio.sleep(0.5)
        receipt = conversation.intervene("b")
        conversation.rounds("root")
        assert await receipt.seen()
        assert trio.current_time() == 0.5
        second = conversation.intervene("c", role="root")
        assert await second.seen()


def test_words_that_a_role_was_to_forget_do_not_count_as_seen() -> None:
    memory = memory_of(("a", "created", ()))
    read: list[str] = []
    memory.on_read = lambda role, words: read.extend(words)
    for number in range(2):
        memory.record(Post.create("", "User", "P", marks=Marks(kind="intervention", words=f"words {number}")))
        memory.begin_view("P")
    memory.record(Post.create("", "User", "P", marks=Marks(kind="intervention", words="the last")))
    memory._answer(_RoleRounds("P", False, "P"))
    assert read == ["the last"]


async def test_words_that_only_others_read_were_told(autojump_clock: MockClock) -> None:
    async def reads_others(post: Post, context: TurnContext) -> Post:
        await get_role_rounds(context, "root")
        await trio.sleep(1)
        return post.reply()

    root = Role("root", asks("worker"), Role("worker", reads_others))
    async with open_conversation(root) as conversation:
        conversation.communicate("a")
        await trio.sleep(0.5)
        receipt = conversation.intervene("b", broadcast_level=2)
        conversation.rounds("root")
        assert not await receipt.seen()
        assert receipt.action == "intervened"


async def test_three_roles_each_read_their_own_part_of_each_round() -> None:
    root = Role("root", asks("planner"), Role("planner", asks("worker")), Role("worker", answers))
    async with open_conversation(root) as conversation:
        for word in ("a", "b"):
            await conversation.send(word)
    lengths = {name: [len(round_.post_list) for round_ in conversation.rounds(name)] for name in ROLES}
    assert lengths == {"User": [2, 2], "root": [4, 4], "planner": [4, 4], "worker": [2, 2]}


async def test_a_failed_round_is_read_by_a_role_only_if_it_asks_for_it() -> None:
    async def work(post: Post, context: TurnContext) -> Post:
        if post.message == "fail":
            raise ValueError
        kept, every = [len(await get_role_rounds(context, "root", failures)) for failures in (False, True)]
        return post.reply(f"{kept} of {every}")

    async with open_conversation(Role("root", work)) as conversation:
        with pytest.raises(CallboardError):
            await conversation.send("fail")
        assert (await conversation.send("b")).message == "1 of 2"


async def test_memory_answers_while_another_role_works_and_has_what_that_role_just_noted(
    autojump_clock: MockClock,
) -> None:
    async def works(post: Post, context: TurnContext) -> None:
        async with context.uninterruptible():
            for number in range(3):
                context.record(str(number))
                await trio.sleep(1)

    async def looks(post: Post, context: TurnContext) -> Post:
        await context.tell("worker")
        newest: list[tuple[float, str]] = []
        for _ in range(3):
            await trio.sleep(0.9)
            asked = trio.current_time()
            (round_,) = await get_role_rounds(context, "worker")
            assert trio.current_time() == asked
            newest.append((round(asked, 1), round_.post_list[-1].message))
        return post.reply(str(newest))

    async with open_conversation(Role("root", looks, Role("worker", works))) as conversation:
        assert (await conversation.send("a")).message == "[(0.9, '0'), (1.8, '1'), (2.7, '2')]"


class Steps(Instrument):
    """Counts the steps of all tasks."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


async def steps_of(notes: int) -> int:
    """How many task steps a round takes in which so many notes are recorded."""

    async def work(post: Post, context: TurnContext) -> Post:
        for _ in range(notes):
            context.record("note")
        return post.reply()

    steps = Steps()
    async with open_conversation(Role("root", work)) as conversation:
        await conversation.send("the tasks are started")
        trio.lowlevel.add_instrument(steps)
        await conversation.send("a")
        trio.lowlevel.remove_instrument(steps)
    return steps.count


async def test_a_record_wakes_nobody() -> None:
    assert await steps_of(100) == await steps_of(0) > 0
